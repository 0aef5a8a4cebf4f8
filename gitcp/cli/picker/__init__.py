"""The picker of `gitcp ui`: looks at the timeline and chooses what is done with it.

Only the modules of this package import Textual, and only `gitcp.cli.commands.ui` imports
`app`: nothing else pays for it.
"""
