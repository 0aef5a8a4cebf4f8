"""`gitcp acp`: a proxy between an editor and an agent."""

import os

import click

from gitcp.cli.emit import Output
from gitcp.cli.options import command


@command("acp", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, metavar="-- AGENT [ARG]...", type=str)
def acp_command(out: Output, words: tuple[str, ...]) -> int:
    """Run an agent for an editor, with a checkpoint around each prompt.

    Speaks the Agent Client Protocol on stdin and stdout: have your editor start this
    command instead of the agent. gitcp passes all messages on unchanged. Each prompt
    waits until the previous turn is saved. After a restore, a new thread in the editor
    continues from the restored checkpoint. The exit status is the agent's.
    """
    from gitcp.acp.proxy import Proxy
    from gitcp.clients import acp_folder

    del out
    return Proxy(words, acp_folder.root(os.environ), os.environ).run()
