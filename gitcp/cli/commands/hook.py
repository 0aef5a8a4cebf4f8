"""`gitcp hook`: the command that agents' hooks call."""

import click

from gitcp.cli.emit import Output
from gitcp.cli.options import command


@command("hook")
@click.argument("agent", metavar="AGENT")
@click.argument("event", metavar="EVENT")
def hook_command(out: Output, agent: str, event: str) -> None:
    """Do what a coding agent's hook asks for.

    Called by the client. Reads the event as JSON from stdin. Always exits with 0, and
    ends within `gitcp.hookTimeout`; what went wrong is in `.git/gitcp/hooks.log`. It
    prints nothing but, as a turn begins, that a restore is open and nothing is saved, in
    the form that the client shows.
    """
    from gitcp.cli.agent_hook import run

    run(agent, event, out.directory)
