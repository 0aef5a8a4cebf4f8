"""Restores files that an interrupted step left half-written.

gitcp knows the files before the interrupted run and, from its lease, when it ended. If a
path differs and was not changed later, the run wrote it (docs/decisions/0015).
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from gitcp.errors import NotFoundError, StepUnknownError
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.format.ledger import LOCAL, UNKNOWN, Record
from gitcp.ledger.call import DONE, Call, show_call
from gitcp.ledger.state import StepsBySlot
from gitcp.project.workspace import Current, Workspace
from gitcp.steps import answers, observed
from gitcp.worktree import apply, journal, leftovers, plan

# For how many seconds after its last heartbeat a run may have written: it sends one every
# half a second, if the machine lets it.
SLACK = 2.0
_SHOWN = 5


class _ChangedPaths(NamedTuple):
    """Changed paths: those the step wrote, and those of unknown origin."""

    own: list[str]
    unclear: list[str]


def tell(
    workspace: Workspace,
    current: Current,
    call: Call,
    live: StepsBySlot,
    died: float | None,
    record: Record,
) -> Record:
    """Records the files that an interrupted step wrote, and saves them in a checkpoint.

    If another process may have written some, the record has no `left`, and names them.

    Raises:
        GitcpError: the files could not be saved; nothing was changed.
    """
    note = f"step {call.name}, interrupted"
    try:
        before = observed.find(workspace, current, call.intent.before)
    except NotFoundError as exc:
        return replace(record, error=f"{record.error}; {exc.message}")
    left = observed.checkpoint(workspace, current, note)
    selects = plan.selection([path.encode() for path in call.intent.writes])
    theirs = [
        path
        for other in live.values()
        if other.effect == LOCAL and other.state == DONE and other.n > call.intent.n
        for path in (other.result.writes if other.result is not None else ())
    ]
    seen = _ChangedPaths([], [])
    for change in tree.diff(before.files_tree, left.files_tree, left.objects.files):
        if not selects(change.path):
            continue
        shown = show_path(change.path)
        mine = _by_then(workspace.top, change.path, died)
        if mine and not observed.overlaps([shown], theirs):
            seen.own.append(shown)
        else:
            seen.unclear.append(shown)
    if seen.unclear:
        return replace(
            record, error=f"{record.error}; {_list(seen.unclear)} may be another's"
        )
    return replace(record, left=left.id, writes=tuple(observed.shortened(seen.own)))


def _by_then(top: Path, path: bytes, died: float | None) -> bool:
    """Whether a path has not changed since a run ended."""
    if died is None:
        return False
    try:
        # Not the time of the last change of content: programs can easily set that.
        return os.lstat(os.fsencode(top) + b"/" + path).st_ctime <= died + SLACK
    except (FileNotFoundError, NotADirectoryError):
        # It is not known when it was removed. Putting it back destroys nothing.
        return True


def put_back(
    workspace: Workspace, current: Current, call: Call, records: Sequence[Record]
) -> list[str]:
    """Puts back the files that an interrupted run of a step wrote; returns their paths.

    If this process is killed meanwhile, it can be repeated.

    Raises:
        StepUnknownError: it is not known what the run wrote, or files changed since.
        BusyError, StorageError: some may have been put back.
    """
    report = next(
        (
            record
            for record in reversed(records)
            if (record.kind, record.id) == (UNKNOWN, call.id)
        ),
        None,
    )
    if report is None or not report.left:
        raise _unclear(
            workspace, current, call, report.error if report is not None else ""
        )
    before = observed.find(workspace, current, call.intent.before)
    left = observed.find(workspace, current, report.left)
    back = observed.between(left, before, call.intent.writes)
    with workspace.locked():
        journal.refuse_if_open(workspace.directory)
        with workspace.root() as root:
            stream = workspace.repository.objects.content
            # A process killed at this point may have left files under temporary names.
            conflicts = leftovers.settle(root, back, stream, token(call))
            conflicts += apply.conflicts(root, back)
            if not conflicts:
                conflicts = apply.apply(root, back, stream, token=token(call))
    if conflicts:
        names = _list([show_path(record.path) for record in conflicts])
        raise _unclear(
            workspace, current, call, f"it was interrupted; {names} changed since"
        )
    return [show_path(record.path) for record in back.steps]


def token(call: Call) -> str:
    """Returns the name for temporary files while a step's files are put back."""
    return hashlib.sha256(call.id.encode()).hexdigest()[:12]


def _unclear(
    workspace: Workspace, current: Current, call: Call, why: str
) -> StepUnknownError:
    return StepUnknownError(
        f"the step {show_call(call)!a} would run on half-finished files: {why}",
        hint=f"`gitcp diff {call.intent.before}` shows them; once they are correct,"
        f" `{answers.command(workspace, current, call, 'again')}` lets it run",
    )


def _list(paths: Sequence[str]) -> str:
    return f"{', '.join(paths[:_SHOWN])}{' …' if len(paths) > _SHOWN else ''}"
