"""Compares two states: files, conversation, decision log."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gitcp.format import tree
from gitcp.format.log import Decision
from gitcp.format.safety import path_problem
from gitcp.format.tree import GITLINK, LINK, Change, Entry
from gitcp.git.compare import Comparison, comparison
from gitcp.git.transaction import transaction
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree.plan import selection

if TYPE_CHECKING:
    from gitcp.checkpoints.restore_plan import RestorePlan
    from gitcp.worktree.capture import Snapshot

T = TypeVar("T")

# Larger files are compared, but not line by line.
_TEXT_LIMIT = 8 * 1024 * 1024
# Of what was made elsewhere no more than this in all: a few names of one blob could ask
# for more than there is memory.
_FOREIGN_LIMIT = 16 * 1024 * 1024

ReadBlob = Callable[[bytes, Entry], Iterator[bytes]]


class FileDiff(NamedTuple):
    """A changed path; the counts are lines, None where it is not text."""

    change: Change
    added: int | None
    deleted: int | None


class FilesDiff(NamedTuple):
    """Every changed path, and the patch as `git diff` writes it."""

    files: tuple[FileDiff, ...]
    patch: bytes


def between(old: Checkpoint, new: Checkpoint, paths: Sequence[bytes] = ()) -> FilesDiff:
    """Returns how the files of two checkpoints differ."""
    read = new.objects.tree
    changes = tree.diff(old.files_tree, new.files_tree, read)

    def blob(path: bytes, entry: Entry) -> Iterator[bytes]:
        del path
        return new.objects.stream(entry.oid)

    room = _Room(old, new)
    return _compared(changes, paths, _of(old), blob, room)


def with_worktree(
    workspace: Workspace, old: Checkpoint, paths: Sequence[bytes] = ()
) -> FilesDiff:
    """Returns how the files in the work tree differ from a checkpoint's.

    Nothing is left in the repository.
    """
    on_disk = _on_disk(workspace)
    with workspace.capturing() as capture, transaction(workspace.repository) as txn:

        def compare(snapshot: "Snapshot") -> FilesDiff:
            changes = tree.diff(old.files_tree, snapshot.tree, txn.tree)
            return _compared(changes, paths, _of(old), on_disk, _Room(old))

        _, diff = capture.using(txn, compare)
        return diff


def of_plan(workspace: Workspace, plan: "RestorePlan") -> FilesDiff:
    """Returns what a restore would change in the files of the work tree."""
    target, changes = plan.target, iter(plan.changes)
    return _compared(changes, (), _on_disk(workspace), _of(target), _Room(target))


def _on_disk(workspace: Workspace) -> ReadBlob:
    top = os.fsencode(workspace.top)

    def read(path: bytes, entry: Entry) -> Iterator[bytes]:
        where = os.path.join(top, path)
        if entry.mode == LINK:
            yield os.readlink(where)
            return
        with open(where, "rb") as file:
            while chunk := file.read(_TEXT_LIMIT):
                yield chunk

    return read


def _of(checkpoint: Checkpoint) -> ReadBlob:
    def read(path: bytes, entry: Entry) -> Iterator[bytes]:
        del path
        return checkpoint.objects.stream(entry.oid)

    return read


class _Room:
    """How many bytes may still be compared line by line; of one's own, any number."""

    def __init__(self, *sides: Checkpoint) -> None:
        foreign = any(side.origin.files is not None for side in sides)
        self._left = _FOREIGN_LIMIT if foreign else None

    def holds(self, size: int) -> bool:
        """Whether so many bytes of one file may be compared."""
        return size <= _TEXT_LIMIT and (self._left is None or size <= self._left)

    def take(self, size: int) -> None:
        """Takes what was compared away."""
        if self._left is not None:
            self._left -= size


def _compared(
    changes: Iterator[Change],
    paths: Sequence[bytes],
    old: ReadBlob,
    new: ReadBlob,
    room: _Room,
) -> FilesDiff:
    chosen = selection(paths)
    compared = [change for change in changes if chosen(change.path)]
    with comparison() as aside:
        before: dict[bytes, Entry | None] = {}
        after: dict[bytes, Entry | None] = {}
        for change in compared:
            # git would not read a tree with such a name.
            if path_problem(change.path) is None:
                before[change.path] = _kept(aside, change.path, change.old, old, room)
                after[change.path] = _kept(aside, change.path, change.new, new, room)
        sides = aside.holding(before), aside.holding(after)
        aside.flush()
        patch = aside.run(*sides, "--patch")
        counts = _counts(aside.run(*sides, "--numstat", "-z"))
    return FilesDiff(
        tuple(
            FileDiff(change, *counts.get(change.path, (None, None)))
            for change in compared
        ),
        patch,
    )


def _kept(
    aside: Comparison,
    path: bytes,
    entry: Entry | None,
    read: ReadBlob,
    room: _Room,
) -> Entry | None:
    """Returns an entry whose blob git can compare; None where there is none."""
    if entry is None or entry.mode == GITLINK:
        return None
    data = bytearray()
    try:
        for chunk in read(path, entry):
            data += chunk
            if not room.holds(len(data)):
                # A NUL: git names such a file without comparing lines.
                return Entry(entry.mode, aside.add(b"\0" + entry.oid))
    except FileNotFoundError:
        # It went away since the scan: the comparison shows it as gone.
        return None
    room.take(len(data))
    return Entry(entry.mode, aside.add(bytes(data)))


def _counts(raw: bytes) -> dict[bytes, tuple[int | None, int | None]]:
    """Returns the lines added and deleted by path."""
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    words = iter(raw.split(b"\0"))
    for word in words:
        if not word:
            continue
        added, deleted, path = word.split(b"\t", 2)
        if b"-" in {added, deleted}:
            counts[path] = None, None
        else:
            before = counts.get(path, (0, 0))
            counts[path] = (
                (before[0] or 0) + int(added),
                (before[1] or 0) + int(deleted),
            )
    return counts


def _common(first: Sequence[T], second: Sequence[T]) -> int:
    for at, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return at
    return min(len(first), len(second))


class Entries(NamedTuple):
    """Two decision logs: what they share from the start, and what follows."""

    common: int
    removed: tuple[Decision, ...]
    added: tuple[Decision, ...]


def decision_logs(old: Checkpoint | None, new: Checkpoint) -> Entries:
    """Returns how two decision logs differ."""
    before = old.decisions() if old else []
    after = new.decisions()
    common = _common(before, after)
    return Entries(common, tuple(before[common:]), tuple(after[common:]))


def new_entries(old: Checkpoint | None, new: Checkpoint) -> tuple[Decision, ...]:
    """Returns the entries that a checkpoint has beyond what it shares with another."""
    return decision_logs(old, new).added
