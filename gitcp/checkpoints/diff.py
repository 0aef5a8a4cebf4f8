"""Compares two states: files, conversation, decision log."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gitcp.format import tree
from gitcp.format.log import Decision
from gitcp.format.oid import ObjectFormat
from gitcp.format.safety import path_problem
from gitcp.format.tree import GITLINK, LINK, Change, Entry
from gitcp.git.compare import Comparison, comparison
from gitcp.git.transaction import files_in, looking
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree.plan import selection

if TYPE_CHECKING:
    from gitcp.checkpoints.restore_plan import RestorePlan
    from gitcp.worktree.snapshot import Snapshot

T = TypeVar("T")

# Larger files are compared, but not line by line.
TEXT_LIMIT = 8 * 1024 * 1024
# The limit for everything in a checkpoint made elsewhere: a few names of one blob could
# take more memory than there is.
FOREIGN_LIMIT = 16 * 1024 * 1024

ReadBlob = Callable[[bytes, Entry], Iterator[bytes]]


class FileDiff(NamedTuple):
    """A changed path; the counts are lines, None if it is not text.

    A rename is two of them: the new path, with what it was `renamed_from` and lines counted
    against that; and the old one, with what it was `renamed_to` and no lines.
    """

    change: Change
    added: int | None
    deleted: int | None
    renamed_from: bytes | None = None
    renamed_to: bytes | None = None


class FilesDiff(NamedTuple):
    """Every changed path, and the patch as `git diff` writes it."""

    files: tuple[FileDiff, ...]
    patch: bytes


def between(old: Checkpoint, new: Checkpoint, paths: Sequence[bytes] = ()) -> FilesDiff:
    """Returns how the files of two checkpoints differ."""
    return since(old, old.files_tree, new, paths)


def since(
    before: Checkpoint | None,
    files: bytes | None,
    new: Checkpoint,
    paths: Sequence[bytes] = (),
) -> FilesDiff:
    """Returns how the files of a checkpoint differ from a tree, None for no files.

    The tree is that of the checkpoint `before`, or of one of the user's commits.
    """
    changes = tree.diff(files, new.files_tree, new.objects.files)
    room = Room(*filter(None, (before, new)))
    return _compared(changes, paths, _of(new), _of(new), room, new.objects.form)


def renames(changes: Sequence[Change], new: Checkpoint) -> dict[bytes, bytes]:
    """Returns what was renamed among changes that led to a checkpoint: old path by new."""
    added = [change for change in changes if change.status == "added"]
    deleted = [change for change in changes if change.status == "deleted"]
    if not added or not deleted:
        return {}
    with comparison(new.objects.form) as aside:
        room = Room(new)
        read = _of(new)
        sides = _sides(aside, [*added, *deleted], read, read, room)
        words = aside.run(*sides, "--name-status", "--diff-filter=R", "-z").split(b"\0")
    return dict(zip(words[2::3], words[1::3], strict=False))


def with_worktree(
    workspace: Workspace, old: Checkpoint, paths: Sequence[bytes] = ()
) -> FilesDiff:
    """Returns how the files in the work tree differ from a checkpoint's.

    Nothing is left in the repository.
    """
    on_disk = _on_disk(workspace)
    with workspace.capturing() as capture, looking(workspace.repository) as txn:

        def compare(snapshot: "Snapshot") -> FilesDiff:
            changes = tree.diff(old.files_tree, snapshot.tree, files_in(txn))
            form = old.objects.form
            return _compared(changes, paths, _of(old), on_disk, Room(old), form)

        _, diff = capture.using(txn, compare)
        return diff


def of_plan(workspace: Workspace, plan: "RestorePlan") -> FilesDiff:
    """Returns what a restore would change in the files of the work tree."""
    target, changes = plan.target, iter(plan.changes)
    on_disk, form = _on_disk(workspace), workspace.repository.form
    return _compared(changes, (), on_disk, _of(target), Room(target), form)


def _on_disk(workspace: Workspace) -> ReadBlob:
    top = os.fsencode(workspace.top)

    def read(path: bytes, entry: Entry) -> Iterator[bytes]:
        where = os.path.join(top, path)
        if entry.mode == LINK:
            yield os.readlink(where)
            return
        with open(where, "rb") as file:
            while chunk := file.read(TEXT_LIMIT):
                yield chunk

    return read


def _of(checkpoint: Checkpoint) -> ReadBlob:
    def read(path: bytes, entry: Entry) -> Iterator[bytes]:
        del path
        return checkpoint.objects.content(entry.oid)

    return read


class Room:
    """How many bytes may still be compared line by line; no limit for checkpoints made here."""

    def __init__(self, *sides: Checkpoint) -> None:
        foreign = any(side.origin.files is not None for side in sides)
        self._left = FOREIGN_LIMIT if foreign else None

    def holds(self, size: int) -> bool:
        """Whether so many bytes of one file may be compared."""
        return size <= TEXT_LIMIT and (self._left is None or size <= self._left)

    def take(self, size: int) -> None:
        """Subtracts bytes that were compared."""
        if self._left is not None:
            self._left -= size


def _compared(
    changes: Iterator[Change],
    paths: Sequence[bytes],
    old: ReadBlob,
    new: ReadBlob,
    room: Room,
    form: ObjectFormat,
) -> FilesDiff:
    chosen = selection(paths)
    compared = [change for change in changes if chosen(change.path)]
    with comparison(form) as aside:
        sides = _sides(aside, compared, old, new, room)
        patch = aside.run(*sides, "--patch")
        lines = line_counts(aside.run(*sides, "--numstat", "-z"))
    return FilesDiff(counted(compared, lines), patch)


def counted(
    compared: Sequence[Change], lines: Mapping[bytes, "LineCounts"]
) -> tuple[FileDiff, ...]:
    """Returns changes with their lines, as `line_counts` has them."""
    renamed_to = {each.old: path for path, each in lines.items() if each.old}
    files = []
    for change in compared:
        if change.path in renamed_to:
            file = FileDiff(change, 0, 0, renamed_to=renamed_to[change.path])
        else:
            found = lines.get(change.path, LineCounts(None, None))
            file = FileDiff(change, found.added, found.deleted, found.old)
        files.append(file)
    return tuple(files)


def _sides(
    aside: Comparison,
    changes: Sequence[Change],
    old: ReadBlob,
    new: ReadBlob,
    room: Room,
) -> tuple[bytes, bytes]:
    """Adds both sides of changes to a comparison, and returns their trees."""
    before: dict[bytes, Entry | None] = {}
    after: dict[bytes, Entry | None] = {}
    for change in changes:
        # git would not read a tree with such a name.
        if path_problem(change.path) is None:
            before[change.path] = _kept(aside, change.path, change.old, old, room)
            after[change.path] = _kept(aside, change.path, change.new, new, room)
    sides = aside.holding(before), aside.holding(after)
    aside.flush()
    return sides


def _kept(
    aside: Comparison,
    path: bytes,
    entry: Entry | None,
    read: ReadBlob,
    room: Room,
) -> Entry | None:
    """Returns an entry whose blob git can compare; None if there is none."""
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
        # The file was removed since the scan: the comparison shows it as deleted.
        return None
    room.take(len(data))
    return Entry(entry.mode, aside.add(bytes(data)))


class LineCounts(NamedTuple):
    """Lines added and deleted, None if it is not text; what a path was renamed from."""

    added: int | None
    deleted: int | None
    old: bytes | None = None


def line_counts(raw: bytes) -> dict[bytes, LineCounts]:
    """Returns the lines added and deleted by path, from what `--numstat -z` printed."""
    counts: dict[bytes, LineCounts] = {}
    words = iter(raw.split(b"\0"))
    for word in words:
        if not word:
            continue
        added, deleted, path = word.split(b"\t", 2)
        old = None
        if not path:
            # A rename: both paths follow.
            old, path = next(words), next(words)
        if b"-" in {added, deleted}:
            counts[path] = LineCounts(None, None, old)
        else:
            # A file that became a link is there twice.
            before = counts.get(path, LineCounts(0, 0))
            counts[path] = LineCounts(
                (before.added or 0) + int(added),
                (before.deleted or 0) + int(deleted),
                old or before.old,
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
