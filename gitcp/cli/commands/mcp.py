"""`gitcp mcp`: the tools for clients without a shell."""

import importlib.util

from gitcp.cli.emit import Output
from gitcp.cli.options import command
from gitcp.errors import UsageError


@command("mcp")
def mcp_command(out: Output) -> None:
    """Serve checkpoints to a client of the Model Context Protocol.

    For agents without a shell: the client starts this command in the project and talks to
    it on stdin and stdout. A restore takes two tool calls: the first shows the plan, the
    second carries out exactly that plan, unless a file has changed since.
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(
            "`gitcp mcp` needs the protocol's SDK, which is not installed",
            hint="install it: `pip install 'gitcp[mcp]'`",
        )
    from gitcp.adapters.mcp_server.server import serve

    serve(out.directory)
