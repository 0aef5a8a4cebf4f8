"""Forks from the command line, and prints the new branch."""

from pathlib import Path

from gitcp import Checkpoint
from gitcp.checkpoints import fork as ops
from gitcp.cli import documents
from gitcp.cli.emit import Output, safe_path
from gitcp.cli.render import headline
from gitcp.cli.restoring import (
    Handed,
    refuse_withheld,
    resume_line,
    say_left,
    written_back,
)
from gitcp.project.workspace import Workspace, open_workspace
from gitcp.worktree.plan import Left


def fork_into_worktree(
    out: Output,
    workspace: Workspace,
    start: Checkpoint,
    name: str,
    worktree: str,
    *,
    trust: bool,
) -> Handed:
    """Forks into a new work tree, and prints how to continue its conversation."""
    directory = Path(out.directory, worktree)
    first, steps = ops.fork_into_worktree(
        workspace, start, name, directory, trust=trust
    )
    there = open_workspace(directory)
    head, _ = there.repository.head()
    base = start.manifest.base
    with written_back(there, first, source=start, trust=trust) as handed:
        more = f"its files are in {safe_path(worktree)}"
        print_fork(out, first, more, handed, steps.left)
    if base is not None and base.commit not in {None, head}:
        out.note(
            f"  HEAD is the same there as here: no branch of yours has {base.commit[:12]},"
            " which it was made on"
        )
    refuse_withheld(steps.left)
    return handed


def fork_at_present(
    out: Output, workspace: Workspace, start: Checkpoint, name: str, *, trust: bool
) -> Handed:
    """Forks at a checkpoint whose files the work tree already has."""
    first = ops.fork_here(workspace, start, name)
    with written_back(workspace, first, source=start, trust=trust) as handed:
        print_fork(out, first, None, handed)
    return handed


def print_fork(
    out: Output,
    first: Checkpoint,
    more: str | None,
    handed: Handed,
    left: tuple[Left, ...] = (),
) -> None:
    """Prints the result of a fork; `more` says where its files are."""
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
