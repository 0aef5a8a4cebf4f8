"""`gitcp prune`: removes old checkpoints."""

from collections.abc import Iterable
from typing import Any

import click

from gitcp import Checkpoint
from gitcp.cli.emit import Output
from gitcp.cli.options import command, left_out, yes_option
from gitcp.cli.render import count, place, prompt_plan, size
from gitcp.errors import PartialError, UsageError
from gitcp.maintenance.prune import DEFAULT_LAST, PrunePlan, plan_prune, prune
from gitcp.names import check_typed
from gitcp.project.settings import parse_seconds, parse_size
from gitcp.project.workspace import open_workspace
from gitcp.store.retention import RetentionRules


@command("prune")
@click.option(
    "--keep-last",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Keep the last N of each branch (default {DEFAULT_LAST})",
)
@click.option(
    "--keep-within", metavar="TIME", help="Keep checkpoints of the last 24h, 7d, …"
)
@click.option(
    "--keep-labelled/--no-keep-labelled",
    default=True,
    help="Keep labelled checkpoints (the default)",
)
@click.option(
    "--max-size",
    metavar="SIZE",
    help="Remove the oldest until the rest uses at most SIZE",
)
@click.option(
    "-s",
    "--session",
    "sessions",
    multiple=True,
    metavar="SESSION[/BRANCH]",
    help="Prune only this session (repeatable)",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed")
@yes_option
def prune_command(
    out: Output,
    keep_last: int | None,
    keep_within: str | None,
    keep_labelled: bool,
    max_size: str | None,
    sessions: tuple[str, ...],
    dry_run: bool,
    yes: bool,
) -> int:
    """Remove old checkpoints; the others keep ids and numbers.

    gitcp always keeps the newest checkpoint of each branch, the checkpoints where forks
    start, and the state that the last restore replaced. If damage hides which these are, it
    keeps the whole branch. Run `gitcp gc` afterwards to free the disk space.
    """
    within = None if keep_within is None else parse_seconds(keep_within, "the time")
    limit = None if max_size is None else parse_size(max_size, "the size")
    if keep_last is None and within is None and limit is None:
        keep_last = DEFAULT_LAST
    workspace = open_workspace(out.directory)
    plan = plan_prune(
        workspace,
        RetentionRules(keep_last or 0, within, keep_labelled),
        [_where(text) for text in sessions],
        max_size=limit,
    )
    done = plan
    if not dry_run and plan.go:
        question = f"Remove {count(len(plan.go), 'checkpoint')}?"
        if not yes and not out.json:
            prompt_plan(out, _lines(out, plan))
        out.confirm(question, yes=yes)
        done = prune(workspace, plan)
    if out.json:
        out.document(_document(done, dry_run=dry_run))
    else:
        _show(out, done, dry_run=dry_run)
    status = left_out(out, done.unreadable)
    if limit is not None and done.bytes_after is not None and done.bytes_after > limit:
        raise PartialError(
            f"what remains takes {size(done.bytes_after)}, more than {size(limit)}",
            hint="it is the newest checkpoint of a branch, labelled, the start of a"
            " fork, or what you asked to keep",
        )
    return status


def _where(text: str) -> tuple[str, str | None]:
    session, slash, branch = text.partition("/")
    if not session:
        raise UsageError("a session needs a name", hint="gitcp sessions")
    check_typed(session, "session")
    return session, check_typed(branch, "branch") if slash else None


def _document(done: PrunePlan, *, dry_run: bool) -> dict[str, Any]:
    return {
        "schema": "gitcp.prune/1",
        "dry_run": dry_run,
        "removed": [
            {
                "number": checkpoint.number,
                "id": checkpoint.id,
                "commit": checkpoint.commit,
                "session": branch.session,
                "branch": branch.branch,
                "seq": checkpoint.seq,
            }
            for branch in done.branches
            for checkpoint in branch.go
        ],
        "branches": [
            {
                "session": branch.session,
                "branch": branch.branch,
                "removed": len(branch.go),
                "kept": branch.stay,
            }
            for branch in done.branches
        ],
        "threads": list(done.threads),
        "unreadable": list(done.unreadable),
        "bytes": None
        if done.bytes_before is None
        else {"before": done.bytes_before, "after": done.bytes_after},
    }


def _lines(out: Output, done: PrunePlan) -> list[str]:
    return [
        f"  {place(out, branch.session, branch.branch)}: {len(branch.go):,} of"
        f" {count(branch.stay + len(branch.go), 'checkpoint')}{_numbers(branch.go)}"
        for branch in done.branches
        if branch.go
    ]


def _numbers(checkpoints: Iterable[Checkpoint]) -> str:
    """Returns their numbers as ranges, ` (#1-#8, #10)`; the first few of them."""
    ranges: list[list[int]] = []
    for number in sorted({one.number for one in checkpoints if one.number is not None}):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [f"#{a}" if a == b else f"#{a}-#{b}" for a, b in ranges[:5]]
    listed = ", ".join(shown + (["…"] if len(ranges) > 5 else []))  # noqa: PLR2004
    return f" ({listed})" if listed else ""


def _show(out: Output, done: PrunePlan, *, dry_run: bool) -> None:
    if done.threads:
        some = count(len(done.threads), "thread")
        out.note(f"{some} of LangGraph left alone: use `GitcpSaver.prune` for these")
    if not done.go:
        out.print("Nothing to remove")
        return
    verb = "Would remove" if dry_run else "Removed"
    out.print(f"{verb} {count(len(done.go), 'checkpoint')}:")
    for line in _lines(out, done):
        out.print(line)
    if not dry_run:
        out.note("`gitcp gc` frees the disk space")
