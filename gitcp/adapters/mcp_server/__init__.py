"""gitcp as a server of the Model Context Protocol (`pip install 'gitcp[mcp]'`).

See docs/how-to/mcp.md.
"""
