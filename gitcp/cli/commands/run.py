"""gitcp run."""

import sys
from pathlib import Path

import click

from gitcp.cli import documents
from gitcp.cli.emit import Output
from gitcp.cli.options import command
from gitcp.cli.render import headline
from gitcp.errors import GitcpError
from gitcp.ops.run import Ran, run
from gitcp.ops.workspace import open_workspace


@command("run", context_settings={"ignore_unknown_options": True})
@click.option("-m", "note", metavar="NOTE", help="What is being tried")
@click.option(
    "--rollback-on-failure",
    is_flag=True,
    help="If it fails, put the files back as they were before",
)
@click.argument("words", nargs=-1, required=True, metavar="-- CMD [ARG]...")
def run_command(
    out: Output, note: str | None, rollback_on_failure: bool, words: tuple[str, ...]
) -> int:
    """Make a checkpoint, run a command, and keep its failure.

    If the command fails, a `test-failure` checkpoint holds the files as it left them,
    its exit status, and the end of its output as a dead end in the decision log. The
    exit status is the command's.
    """
    workspace = open_workspace(out.directory)
    sys.stdout.flush()
    ran = run(
        workspace,
        words,
        directory=Path(out.directory),
        note=note,
        rollback=rollback_on_failure,
        # With --json stdout is for the document alone.
        out=sys.stderr.fileno() if out.json else sys.stdout.fileno(),
    )
    if out.json:
        out.document(
            {
                "schema": "gitcp.run/1",
                "exit": ran.status,
                "before": documents.checkpoint(ran.before.checkpoint),
                "created": ran.before.created,
                "failed": documents.checkpoint(ran.failed),
                "restored": documents.checkpoint(
                    ran.back.checkpoint if ran.back else None
                ),
            }
        )
    else:
        _tell(out, ran)
    if ran.trouble is not None:
        _warn(out, ran.trouble)
    return ran.status


def _tell(out: Output, ran: Ran) -> None:
    """Says what became of it, on stderr: stdout is the command's."""
    if not ran.status:
        return
    out.note(f"gitcp: the command failed with exit status {ran.status}")
    if ran.failed is not None:
        out.note(f"  kept as {headline(Output(), ran.failed)}")
    if ran.back is not None:
        out.note(f"  files are back at {headline(Output(), ran.before.checkpoint)}")
    elif ran.failed is not None:
        out.note(f"  `gitcp restore {ran.before.checkpoint.id}` goes back before it")


def _warn(out: Output, trouble: GitcpError) -> None:
    out.warn(f"the command has run, but: {trouble.message}")
    if trouble.hint:
        out.note(f"  {trouble.hint}")
