"""Shows the plan of a restore: what goes first, whole folders as one line, the summary last."""

from collections.abc import Iterable, Iterator

from gitcp import Checkpoint
from gitcp.checkpoints.not_captured import not_in_it
from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.cli.emit import Output, one_line, safe, safe_path
from gitcp.cli.layout import age
from gitcp.cli.render import count, headline, provenance
from gitcp.ledger.call import show_call
from gitcp.project.workspace import Workspace
from gitcp.trust.withheld import HELD
from gitcp.worktree.plan import (
    CHMOD,
    DELETE,
    MAKE_DIR,
    REMOVE_DIR,
    FilePlan,
    FileStep,
    Left,
)

_SINCE = 5
_COLORS = {"delete": "red", "overwrite": "yellow", "create": "green", "mode": "cyan"}
# What can be lost comes first.
_ORDER = tuple(_COLORS)


def not_captured(target: Checkpoint) -> list[Left]:
    """Returns what a checkpoint says it does not hold."""
    return [Left(path, not_in_it(reason)) for path, reason in target.skipped()]


def stays(
    workspace: Workspace, target: Checkpoint, steps: FilePlan
) -> tuple[list[Left], list[Left]]:
    """Returns what a restore leaves as it is, and what neither it nor the disk has."""
    known = {item.path for item in steps.left}
    left, absent = list(steps.left), []
    with workspace.root() as root:
        for item in not_captured(target):
            try:
                there = root.lstat(item.path) is not None
            except PermissionError:
                there = True
            if not there:
                absent.append(item)
            elif item.path not in known:
                left.append(item)
    return left, absent


def describe(
    out: Output, workspace: Workspace, plan: RestorePlan, most: int | None = None
) -> list[str]:
    """Returns the lines of a plan; of the steps at most so many."""
    steps = list(step_lines(out, plan.steps.steps))
    if most is not None and len(steps) > most:
        more = len(steps) - most
        steps = [*steps[:most], f"  … and {more:,} more lines: gitcp restore --dry-run"]
    return [*steps, *_remarks(out, workspace, plan), summary(out, plan)]


def summary(out: Output, plan: RestorePlan) -> str:
    """Returns one line: which checkpoint, of when, and how many files."""
    target = plan.target
    name = f"#{target.number}" if target.number else target.id
    note = one_line(target.note or "", 50)
    about = f' "{note}"' if note else ""
    what = []
    if plan.files:
        counts = dict.fromkeys(_ORDER, 0)
        for step in plan.steps.steps:
            if step.action not in {MAKE_DIR, REMOVE_DIR}:
                counts[_kind(step)] += 1
        said = {"delete": "deleted", "overwrite": "overwritten", "create": "created"}
        done = [
            f"{counts[kind]:,} {word}"
            for kind, word in (*reversed(said.items()), ("mode", "changed in mode"))
            if counts[kind]
        ]
        dirs = sum(step.action in {MAKE_DIR, REMOVE_DIR} for step in plan.steps.steps)
        what.append(
            ", ".join(done)
            or (count(dirs, "empty folder") if dirs else "no file changes")
        )
    if plan.conversation:
        held = target.manifest.conversation
        what.append(
            f"conversation of {count(held.messages, 'message')}"
            if held
            else "no conversation in it"
        )
    return (
        f"{out.style(name, fg='cyan', bold=True)}{about}"
        f" ({age(target.manifest.created)}): {'; '.join(what)}"
    )


def step_lines(out: Output, steps: Iterable[FileStep]) -> Iterator[str]:
    """Yields a line for each step, deletes and overwrites first; a whole folder is one."""
    listed = list(steps)
    whole = {
        action: {step.path for step in listed if step.action == action}
        for action in (MAKE_DIR, REMOVE_DIR)
    }
    folders: dict[tuple[str, bytes], int] = {}
    lines: list[tuple[int, bytes, str]] = []
    for step in listed:
        kind = _kind(step)
        made = whole[MAKE_DIR if kind == "create" else REMOVE_DIR]
        top = _top(step.path, made) if kind in {"create", "delete"} else None
        if top is not None:
            is_file = step.action not in {MAKE_DIR, REMOVE_DIR}
            folders[kind, top] = folders.get((kind, top), 0) + is_file
            continue
        lines.append((_ORDER.index(kind), step.path, safe_path(step.path)))
    for (kind, top), files in folders.items():
        behind = f"/ ({count(files, 'file')})" if files else "/"
        lines.append((_ORDER.index(kind), top, f"{safe_path(top)}{behind}"))
    for at, _, text in sorted(lines):
        kind = _ORDER[at]
        yield f"  {out.style(f'{kind:<9}', fg=_COLORS[kind])} {text}"


def _kind(step: FileStep) -> str:
    if step.action in {DELETE, REMOVE_DIR}:
        return "delete"
    if step.action == CHMOD:
        return "mode"
    if step.action == MAKE_DIR or step.before is None:
        return "create"
    return "overwrite"


def _top(path: bytes, folders: set[bytes]) -> bytes | None:
    """Returns the topmost of some folders that a path is, or lies in."""
    parts = path.split(b"/")
    for depth in range(1, len(parts) + 1):
        folder = b"/".join(parts[:depth])
        if folder in folders:
            return folder
    return None


def _remarks(out: Output, workspace: Workspace, plan: RestorePlan) -> list[str]:
    """Returns what is to be known beside the steps."""
    lines = list(provenance(out, plan.target))
    left, absent = stays(workspace, plan.target, plan.steps)
    held = [item for item in left if item.reason in HELD]
    if held:
        lines.append(
            f"  {count(len(held), 'path')} not brought from elsewhere unasked"
            " (--trust brings them):"
        )
        lines += [
            f"  {'held':<6} {safe_path(item.path)} ({item.reason})" for item in held
        ]
    others = [("left", item) for item in left if item.reason not in HELD]
    lines += [
        f"  {word:<6} {safe_path(item.path)} ({safe(item.reason)})"
        for word, item in (*others, *(("absent", item) for item in absent))
    ]
    for item in plan.obstacles:
        lines.append(f"  {'stops':<6} {safe_path(item.path)} ({item.reason})")
    for tip in plan.since:
        lines.append(f"  since  {headline(out, tip)} was saved by another session")
    for call in plan.behind.outside:
        lines.append(
            f"  stays  step {safe(show_call(call))} ({call.effect}, {call.state}"
            f" {call.intent.at[:19].replace('T', ' ')}): not taken back"
        )
    for call in plan.behind.inside[:_SINCE]:
        lines.append(f"  again  step {safe(show_call(call))} runs again when called")
    if len(plan.behind.inside) > _SINCE:
        lines.append(f"  again  and {len(plan.behind.inside) - _SINCE} more steps")
    if plan.operation:
        lines.append(f"  a {plan.operation} is under way: git's state stays as it is")
    return lines
