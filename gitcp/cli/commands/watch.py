"""`gitcp watch`: saves a checkpoint at each interval."""

import click

from gitcp.cli.emit import Output
from gitcp.cli.options import command
from gitcp.cli.render import headline
from gitcp.errors import GitcpError, UsageError
from gitcp.project.settings import parse_minutes
from gitcp.project.workspace import open_workspace


@command("watch")
@click.option(
    "--minutes", metavar="N", help="Use this interval instead of gitcp.intervalMinutes"
)
def watch_command(out: Output, minutes: str | None) -> None:
    """Save at an interval, until interrupted.

    The interval is `gitcp.intervalMinutes`. It saves only if something changed. With
    --json it prints one line for each checkpoint.
    """
    from gitcp.checkpoints.watch import watch
    from gitcp.cli import documents

    workspace = open_workspace(out.directory, lasting=True)
    fixed = None if minutes is None else parse_minutes(minutes, "--minutes")
    seconds = workspace.settings.interval if fixed is None else fixed
    if not seconds:
        raise UsageError(
            "the interval is 0, which means never",
            hint="give --minutes, or run `gitcp config intervalMinutes 30`",
        )
    out.note(f"a checkpoint every {seconds / 60:g} minutes; Ctrl-C stops it")
    for outcome in watch(workspace, fixed):
        if isinstance(outcome, GitcpError):
            # The disk may be full for now, or a restore may be running.
            out.warn(f"nothing saved this time: {outcome.message}")
        elif out.json:
            out.document(
                {"schema": "gitcp.watch/1", "checkpoint": documents.checkpoint(outcome)}
            )
        else:
            out.print(f"Saved {headline(out, outcome)}")
