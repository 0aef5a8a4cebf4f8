"""Formats the plan of a restore: deletions first, a whole folder as one line, summary last."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from gitcp import Checkpoint
from gitcp.checkpoints.agreed_plan import PlanOutdatedError
from gitcp.checkpoints.not_captured import not_in_it
from gitcp.checkpoints.own_notes import note_of
from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.cli import open_clients
from gitcp.cli.emit import Output, one_line, path_line, safe_line, safe_path
from gitcp.cli.layout import age
from gitcp.cli.render import count, provenance
from gitcp.errors import GitcpError
from gitcp.format.checkpoint import BACKUP
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
_NAMED = 3
# So many files are compared to find the sessions whose work a restore takes back.
_LOOKED_AT = 200
_COLORS = {"delete": "red", "overwrite": "yellow", "create": "green", "mode": "cyan"}
# Steps that can lose content come first.
_ORDER = tuple(_COLORS)
_DONE = {
    "create": "created",
    "overwrite": "overwritten",
    "delete": "deleted",
    "mode": "changed in mode",
}
_FOLDERS = frozenset({MAKE_DIR, REMOVE_DIR})


def not_captured(target: Checkpoint) -> list[Left]:
    """Returns the paths that a checkpoint lists as not captured."""
    return [
        Left(path, not_in_it(reason))
        for path, reason in target.skipped()
        if reason != BACKUP
    ]


def stays(
    workspace: Workspace, target: Checkpoint, steps: FilePlan
) -> tuple[list[Left], list[Left]]:
    """Returns the paths that a restore leaves alone, and uncaptured paths not on disk."""
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
    """Returns the lines of a plan, with at most `most` steps."""
    steps = list(step_lines(out, plan.steps.steps))
    if most is not None and len(steps) > most:
        more = len(steps) - most
        steps = [*steps[:most], f"  … and {more:,} more lines: gitcp restore --dry-run"]
    return [*steps, *_remarks(out, workspace, plan), summary(out, plan)]


def summary(out: Output, plan: RestorePlan) -> str:
    """Returns one line: the checkpoint, its time, and the number of files."""
    target = plan.target
    name, quoted = _name(target), _quoted(target)
    about = f" {quoted}" if quoted else ""
    return (
        f"{out.style(name, fg='cyan', bold=True)}{about}"
        f" ({age(target.manifest.created)}): {outcome(plan.request, plan.steps)}"
    )


def _name(checkpoint: Checkpoint) -> str:
    return f"#{checkpoint.number}" if checkpoint.number else checkpoint.id


def _quoted(checkpoint: Checkpoint) -> str:
    note = one_line(note_of(checkpoint), 50)
    return f'"{note}"' if note else ""


def _is_folder(step: FileStep) -> bool:
    return step.action in _FOLDERS


def outcome(request: RestoreRequest, steps: FilePlan) -> str:
    """Returns the outcome of a restore: the changed files, and the conversation."""
    what = [changes_of(steps)] if request.files else []
    held = request.target.manifest.conversation if request.conversation else None
    if held is not None:
        what.append(f"conversation of {count(held.messages, 'message')}")
    return "; ".join(what) or "no conversation in it"


def changes_of(steps: FilePlan) -> str:
    """Returns the number of files that a plan changes: `13 created, 1 overwritten, 3 deleted`.

    Folders count only if no file changes, as in `log` and `show`.
    """
    counts = Counter(_kind(step) for step in steps.steps if step.action not in _FOLDERS)
    done = [f"{counts[kind]:,} {word}" for kind, word in _DONE.items() if counts[kind]]
    if done:
        return ", ".join(done)
    return count(len(steps.steps), "empty folder") if steps.steps else "no file changes"


def outdated(out: Output, changed: PlanOutdatedError) -> Iterator[str]:
    """Yields the steps of a restore that the user has not agreed to, and the new summary."""
    yield "Files have changed since the plan was shown."
    if changed.more:
        yield "The restore would now also:"
        yield from step_lines(out, changed.more)
    if changed.fewer:
        yield "It would no longer:"
        yield from step_lines(out, changed.fewer)
    yield summary(out, changed.plan)


def step_lines(out: Output, steps: Iterable[FileStep]) -> Iterator[str]:
    """Yields a line for each step or whole folder, deletes and overwrites first."""
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
            is_file = not _is_folder(step)
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
    """Returns the topmost of some folders that a path equals or lies in."""
    parts = path.split(b"/")
    for depth in range(1, len(parts) + 1):
        folder = b"/".join(parts[:depth])
        if folder in folders:
            return folder
    return None


def _remarks(out: Output, workspace: Workspace, plan: RestorePlan) -> list[str]:
    """Returns remarks beside the steps."""
    lines = list(provenance(out, plan.target))
    left, absent = stays(workspace, plan.target, plan.steps)
    held = [item for item in left if item.reason in HELD]
    if held:
        lines.append(
            f"  {count(len(held), 'path')} withheld because the checkpoint was"
            " made elsewhere (--trust restores them):"
        )
        lines += [f"  {'held':<6} {path_line(item.path, item.reason)}" for item in held]
    others = [("left", item) for item in left if item.reason not in HELD]
    lines += [
        f"  {word:<6} {path_line(item.path, item.reason)}"
        for word, item in (*others, *(("absent", item) for item in absent))
    ]
    for item in plan.obstacles:
        lines.append(f"  {'stops':<6} {path_line(item.path, item.reason)}")
    lines += _since(plan)
    for call in plan.behind.outside:
        lines.append(
            f"  stays  step {safe_line(show_call(call))} ({call.effect}, {call.state}"
            f" {call.intent.at[:19].replace('T', ' ')}): not taken back"
        )
    for call in plan.behind.inside[:_SINCE]:
        lines.append(
            f"  again  step {safe_line(show_call(call))} runs again when called"
        )
    if len(plan.behind.inside) > _SINCE:
        lines.append(f"  again  and {len(plan.behind.inside) - _SINCE} more steps")
    if plan.operation:
        lines.append(f"  a {plan.operation} is in progress: git's state stays as it is")
    lines += open_clients.before(workspace)
    return lines


def _since(plan: RestorePlan) -> Iterator[str]:
    """Yields a remark on other sessions that have saved files that a plan would change.

    The present files hold those sessions' changes, and a restore takes them back, too.
    """
    going = [step for step in plan.steps.steps if step.before and not _is_folder(step)]
    theirs = [tip for tip in plan.since if _holds_any(tip, going[:_LOOKED_AT])]
    if not theirs:
        return
    named = [
        f"{_name(tip)}{f' {quoted}' if (quoted := _quoted(tip)) else ''}"
        for tip in theirs[:_NAMED]
    ]
    if len(theirs) > _NAMED:
        named.append(f"{len(theirs) - _NAMED} more")
    one, some = len(theirs) == 1, ", ".join(named)
    later = f"later, in {'another session' if one else 'other sessions'}"
    if plan.request.undoes is not None:
        later = "after that restore"
    yield (
        f"  {some} {'was' if one else 'were'} made here {later}."
        f" {'Its' if one else 'Their'} changes to these files are taken back, too;"
        f" {'it' if one else 'they'} still {'has' if one else 'have'} them"
    )


def _holds_any(tip: Checkpoint, going: Sequence[FileStep]) -> bool:
    """Whether a checkpoint has any of some files just as they are before a restore."""
    # Damage in another session must not stop this restore.
    with suppress(GitcpError):
        return any(tip.entry(step.path) == step.before for step in going)
    return False
