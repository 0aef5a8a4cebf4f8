"""`gitcp run`: runs a command between two checkpoints, or as a step."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from gitcp.checkpoints.run_command import RunOutcome, run
from gitcp.cli import documents
from gitcp.cli.emit import Output
from gitcp.cli.options import command, path_inside, place_of
from gitcp.cli.render import headline
from gitcp.errors import GitcpError, UsageError
from gitcp.project.settings import parse_seconds
from gitcp.project.workspace import Workspace, open_workspace


@command("run", context_settings={"ignore_unknown_options": True})
@click.option("-m", "--message", "note", metavar="NOTE", help="What you are trying")
@click.option(
    "--rollback-on-failure",
    is_flag=True,
    help="Restore the files if it fails",
)
@click.option("--step", metavar="NAME", help="Run it only once, as a durable step")
@click.option("--undo", metavar="CMD", help="Shell command that undoes the step")
@click.option(
    "--effect",
    type=click.Choice(["none", "local", "reversible", "irreversible"]),
    help="What the step changes (with --undo reversible, else irreversible)",
)
@click.option(
    "--key", metavar="KEY", help="Scope in which it runs only once, for instance a date"
)
@click.option("--retry", type=click.IntRange(1), metavar="N", help="Try up to N times")
@click.option(
    "--timeout", metavar="TIME", help="Stop it after this time, for instance 5m"
)
@click.option(
    "--unknown",
    type=click.Choice(["retry", "ask", "fail"]),
    help="What to do if an earlier run was interrupted",
)
@click.option(
    "--reads",
    multiple=True,
    metavar="PATH",
    help="Declare that the step reads PATH (not verified)",
)
@click.option(
    "--writes",
    multiple=True,
    metavar="PATH",
    help="Declare that the step writes only PATH",
)
@click.option(
    "--after",
    multiple=True,
    metavar="NAME",
    help="Name a step that this one depends on",
)
@click.option(
    "-s",
    "--session",
    "session",
    metavar="SESSION[/BRANCH]",
    help="The session that it belongs to",
)
@click.argument("words", nargs=-1, required=True, metavar="-- CMD [ARG]...")
def run_command(
    out: Output,
    note: str | None,
    rollback_on_failure: bool,
    step: str | None,
    words: tuple[str, ...],
    **options: Any,
) -> int:
    """Run a command; save before it, and record its failure.

    If the command fails, a `test-failure` checkpoint holds the files as it left them,
    its exit status, and the end of its output as a dead end in the decision log. The
    exit status is the command's; 127 if there is no such program, 126 if it cannot be
    executed.

    With --step the command runs only once: if the ledger records that it is done, gitcp
    does not run it again and exits with 0. The command finds an idempotency key in
    `GITCP_STEP_KEY`.
    """
    workspace = open_workspace(out.directory, lasting=True)
    sys.stdout.flush()
    if step is not None:
        if note is not None or rollback_on_failure:
            raise UsageError(
                "--step cannot be combined with -m or --rollback-on-failure",
                hint="`gitcp save -m NOTE` makes a checkpoint before it",
            )
        return _run_step(out, workspace, step, words, options)
    given = [name for name, value in options.items() if value]
    if given:
        raise UsageError(f"--{given[0]} needs --step NAME", hint="name the step")
    ran = run(
        workspace,
        words,
        directory=Path(out.directory),
        note=note,
        rollback=rollback_on_failure,
        # With --json, stdout is only for the document.
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


def _run_step(
    out: Output,
    workspace: Workspace,
    name: str,
    words: tuple[str, ...],
    given: dict[str, Any],
) -> int:
    from gitcp.cli.commands.steps import ask_at_terminal, document
    from gitcp.ledger.call import OPEN
    from gitcp.steps import answers
    from gitcp.steps import command as ops
    from gitcp.steps.engine import Engine
    from gitcp.steps.model import options

    place = place_of(workspace, given["session"])
    declared = options(
        name,
        effect=given["effect"],
        undo=["sh", "-c", given["undo"]] if given["undo"] else None,
        retry=given["retry"],
        timeout=parse_seconds(given["timeout"], "--timeout")
        if given["timeout"]
        else None,
        key=given["key"],
        unknown=given["unknown"],
        reads=[_inside(out, workspace, path) for path in given["reads"]],
        writes=[_inside(out, workspace, path) for path in given["writes"]],
        after=given["after"],
    )
    engine = Engine(workspace, place, ask=ask_at_terminal(out))
    ran = ops.run(
        engine,
        declared,
        words,
        directory=Path(out.directory),
        out=sys.stderr.fileno() if out.json else sys.stdout.fileno(),
    )
    if out.json:
        out.document(
            {
                "schema": "gitcp.run/1",
                "exit": ran.status,
                "replayed": ran.replayed,
                "step": document(engine, ran.call) if ran.call else None,
            }
        )
    elif ran.replayed and ran.call is not None:
        out.note(f"gitcp: {name} was done at {ran.call.intent.at} and is not run again")
    elif ran.status:
        line = shlex.join(words)
        then = "it may run again"
        if ran.call is not None and ran.call.state == OPEN:
            command = answers.command(workspace, place, ran.call)
            then = f"it is not known whether it took effect: `{command}`"
        out.note(f"gitcp: {line} failed with exit status {ran.status}; {then}")
    return ran.status


def _inside(out: Output, workspace: Workspace, path: str) -> str:
    return os.fsdecode(path_inside(out, workspace.top, path)) or "."


def _tell(out: Output, ran: RunOutcome) -> None:
    """Reports the outcome on stderr, because stdout is the command's."""
    if not ran.status:
        return
    out.note(f"gitcp: the command failed with exit status {ran.status}")
    if ran.failed is not None:
        out.note(f"  kept as {headline(Output(), ran.failed)}")
    if ran.back is not None:
        out.note(f"  files are back at {headline(Output(), ran.before.checkpoint)}")
        out.note("  `gitcp undo` restores what the command left")
    elif ran.failed is not None:
        before = ran.before.checkpoint
        out.note(
            f"  `gitcp restore {before.number or before.id}` restores the state before"
            " it"
        )


def _warn(out: Output, trouble: GitcpError) -> None:
    out.warn(f"the command ran, but {trouble.message}")
    if trouble.hint:
        out.note(f"  {trouble.hint}")
