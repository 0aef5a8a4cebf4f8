"""`gitcp fork`: begins a branch at a checkpoint."""

from pathlib import Path

import click

from gitcp import Checkpoint
from gitcp.checkpoints import fork as ops
from gitcp.checkpoints.selectors import select
from gitcp.cli import documents
from gitcp.cli.emit import Output, safe_path
from gitcp.cli.options import command, trust_option, yes_option
from gitcp.cli.render import headline
from gitcp.cli.restoring import (
    Handed,
    carry_out,
    refuse_withheld,
    resume_line,
    say_left,
    with_trust,
    written_back,
)
from gitcp.errors import UsageError
from gitcp.names import check_typed
from gitcp.project.workspace import open_workspace
from gitcp.worktree.plan import Left


@command("fork")
@click.argument("arguments", metavar="[SEL] NAME", nargs=-1, required=True)
@click.option("--worktree", metavar="DIR", help="Into a new git worktree")
@click.option("--no-switch", is_flag=True, help="Only make the branch")
@trust_option
@yes_option
def fork_command(
    out: Output,
    arguments: tuple[str, ...],
    worktree: str | None,
    no_switch: bool,
    trust: bool,
    yes: bool,
) -> None:
    """Start a new, named branch at a checkpoint."""
    if len(arguments) > 2:  # noqa: PLR2004  SEL and NAME
        raise UsageError(
            "fork requires SEL and NAME",
            hint="for instance `gitcp fork 3 try-other-way`",
        )
    name = check_typed(arguments[-1], "branch")
    workspace = open_workspace(out.directory)
    workspace.refuse_if_interrupted()
    start = select(workspace, arguments[0] if len(arguments) > 1 else None)
    trust = with_trust(workspace, start, trust)
    if worktree is not None:
        directory = Path(out.directory, worktree)
        first, steps = ops.fork_into_worktree(
            workspace, start, name, directory, trust=trust
        )
        with written_back(
            open_workspace(directory), first, source=start, trust=trust
        ) as handed:
            _print(
                out,
                first,
                f"its files are in {safe_path(worktree)}",
                handed,
                steps.left,
            )
        refuse_withheld(steps.left)
        return
    if no_switch:
        _print(out, ops.fork_only(workspace.store, start, name), None, Handed())
        return
    plan = ops.plan_fork(workspace, start, name, trust=trust)
    if ops.at_present(plan):
        first = ops.fork_here(workspace, start, name)
        with written_back(workspace, first, source=start, trust=trust) as handed:
            _print(out, first, None, handed)
        return
    carry_out(out, workspace, plan.request, plan, yes=yes)


def _print(
    out: Output,
    first: Checkpoint,
    more: str | None,
    handed: Handed,
    left: tuple[Left, ...] = (),
) -> None:
    if out.json:
        out.document(
            {
                "schema": "gitcp.fork/1",
                "checkpoint": documents.checkpoint(first),
                "resume": handed.shown(out.directory),
                "left": documents.left(left),
            }
        )
        return
    out.print(f"Forked {headline(out, first)}")
    if more:
        out.print(f"  {more}")
    resume_line(out, handed)
    say_left(out, list(left))
