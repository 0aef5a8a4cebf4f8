"""The picker of `gitcp ui`: shows the timeline, and lets the user choose an action.

Only the modules of this package import Textual, and only `gitcp.cli.commands.ui` imports
`app`: nothing else pays for it.
"""
