"""`gitcp gc`: frees the disk space of pruned checkpoints."""

from collections.abc import Sequence
from typing import Any

import click

from gitcp.cli.emit import Output
from gitcp.cli.options import command, yes_option
from gitcp.cli.render import count, place, prompt_plan, size
from gitcp.errors import UsageError
from gitcp.maintenance.auto_gc import Upkept, run
from gitcp.maintenance.gc import Cleaned, gc
from gitcp.maintenance.lost_refs import Lost, kept
from gitcp.project.workspace import Workspace, open_workspace


@command("gc")
@click.option(
    "--drop-lost",
    is_flag=True,
    help="Also delete checkpoints whose branch has lost its ref",
)
@click.option(
    "--auto",
    is_flag=True,
    help="Do only what is due, as after a save in the background",
)
@click.option(
    "--remote",
    metavar="REMOTE",
    help="Remove packs that no branch needs from an object store instead",
)
@click.option(
    "--dry-run", is_flag=True, help="With --remote, show what would be removed"
)
@yes_option
def gc_command(
    out: Output,
    drop_lost: bool,
    auto: bool,
    remote: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Free the disk space of pruned checkpoints.

    Merges gitcp's packs into one. It removes no checkpoint, and nothing that git itself
    can reach. `gitcp verify --lost` lists what --drop-lost would remove. It also removes
    what killed processes left behind.

    With --auto it merges packs only if there are too many, for two minutes at most, and
    removes old automatic checkpoints if gitcp uses more than gitcp.maxSize.

    With --remote it changes nothing here. In that object store it removes packs that no
    branch names and that are at least a day old: those that interrupted pushes left, and
    those that were merged into others.
    """
    given = [
        name
        for name, is_set in (
            ("--auto", auto),
            ("--drop-lost", drop_lost),
            ("--remote", remote is not None),
        )
        if is_set
    ]
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} are mutually exclusive", hint="use one of them"
        )
    if dry_run and remote is None:
        raise UsageError("--dry-run needs --remote", hint="name an object store")
    workspace = open_workspace(out.directory, bare=out.directory != ".")
    if auto:
        _auto(out, run(workspace))
        return
    if remote is not None:
        _collect(out, workspace, remote, dry_run=dry_run)
        return
    if drop_lost:
        lines = kept(workspace)
        if lines and not yes and not out.json:
            prompt_plan(out, _lines(out, lines))
        if lines:
            out.confirm(f"Remove {count(len(lines), 'lost line')} for good?", yes=yes)
    done = gc(workspace, drop_lost=drop_lost)
    if out.json:
        out.document(_document(done, drop_lost=drop_lost))
    else:
        _show(out, done, drop_lost=drop_lost)


def _collect(out: Output, workspace: Workspace, remote: str, *, dry_run: bool) -> None:
    from gitcp.sync.collect import collect

    done = collect(workspace, remote, dry_run=dry_run)
    if out.json:
        out.document(
            {
                "schema": "gitcp.gc-remote/1",
                "remote": remote,
                "removed": done.removed,
                "bytes": done.size,
                "kept": done.kept,
                "waiting": done.waiting,
                "dry_run": dry_run,
            }
        )
        return
    verb = "would remove" if dry_run else "removed"
    out.print(
        f"{verb} {count(done.removed, 'pack')} ({size(done.size)}), kept {done.kept}"
    )
    if done.waiting:
        out.print(
            f"{count(done.waiting, 'pack')} that no branch needs, but less than a day"
            " old"
        )


def _auto(out: Output, done: Upkept) -> None:
    if out.json:
        out.document(
            {
                "schema": "gitcp.gc-auto/1",
                "packs": {"before": done.packs_before, "after": done.packs_after},
                "bytes": {"before": done.bytes_before, "after": done.bytes_after},
                "removed": done.removed,
            }
        )
        return
    if done.packs_after < done.packs_before:
        out.print(
            f"merged {count(done.packs_before, 'pack')} into {done.packs_after}:"
            f" {size(done.bytes_before)} became {size(done.bytes_after)}"
        )
    if done.removed:
        out.print(f"removed {count(done.removed, 'old checkpoint')}: gitcp.maxSize")
    elif done.packs_after >= done.packs_before:
        out.print("nothing is due")


def _document(done: Cleaned, *, drop_lost: bool) -> dict[str, Any]:
    return {
        "schema": "gitcp.gc/1",
        "packs": {"before": done.packs_before, "after": done.packs_after},
        "bytes": {"before": done.bytes_before, "after": done.bytes_after},
        "swept": done.swept,
        "dropped": done.dropped,
        "waiting": done.waiting,
        "lost": [
            {
                "session": lost_line.session,
                "branch": lost_line.branch,
                "checkpoint": lost_line.tip.id,
                "commit": lost_line.tip.commit,
                "seq": lost_line.tip.seq,
                "kept": not drop_lost,
            }
            for lost_line in done.lost
        ],
    }


def _show(out: Output, done: Cleaned, *, drop_lost: bool) -> None:
    if done.dropped or done.packs_after < done.packs_before:
        dropped = f", {count(done.dropped, 'object')} dropped" if done.dropped else ""
        out.print(
            f"merged {count(done.packs_before, 'pack')} into {done.packs_after}{dropped}:"
            f" {size(done.bytes_before)} became {size(done.bytes_after)}"
        )
    else:
        out.print("nothing to merge or remove")
    if done.waiting:
        out.print(
            f"kept {count(done.waiting, 'object')} that nothing needs, because git"
            " used their packs and its grace period (gc.pruneExpire) is not over"
        )
    if done.swept:
        out.print(f"removed what {done.swept} killed processes left behind")
    if done.lost and not drop_lost:
        out.warn("these checkpoints have lost their ref; they were kept:")
        for line in _lines(out, done.lost):
            out.note(line)
        out.note(
            "  `gitcp verify --lost --repair` restores them, `gitcp gc"
            " --drop-lost` deletes them"
        )


def _lines(out: Output, lines: Sequence[Lost]) -> list[str]:
    return [
        f"  {place(out, line.session, line.branch)}  {line.tip.seq} {line.tip.id}"
        for line in lines
    ]
