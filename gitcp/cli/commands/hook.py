"""`gitcp hook`: the command that agents' hooks call."""

import click

from gitcp.cli.emit import Output
from gitcp.cli.options import command


@command("hook")
@click.argument("agent", metavar="AGENT")
@click.argument("event", metavar="EVENT")
def hook_command(out: Output, agent: str, event: str) -> None:
    """Handle an event of a coding agent's hook.

    The client runs this command, which reads the event as JSON from stdin. It always
    exits with 0, within `gitcp.hookTimeout`; errors are in `.git/gitcp/hooks.log`. It
    prints nothing, with one exception: if a restore is unfinished when a turn begins, it
    tells the client that nothing is being saved.
    """
    from gitcp.cli.agent_hook import run

    run(agent, event, out.directory)
