"""Compares two states: files, conversation, decision log."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gitcp.format import tree
from gitcp.format.log import Decision
from gitcp.format.safety import path_problem
from gitcp.format.tree import EXECUTABLE, GITLINK, LINK, Change, Entry
from gitcp.git import process
from gitcp.git.transaction import transaction
from gitcp.ops.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree.plan import selection

if TYPE_CHECKING:
    from gitcp.worktree.capture import Snapshot

T = TypeVar("T")

# Larger files are compared, but not line by line.
_TEXT_LIMIT = 8 * 1024 * 1024
_OPTIONS = ("--no-index", "--no-prefix", "--no-renames", "--no-ext-diff", "--no-color")

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


class Lines(NamedTuple):
    """Two logs: how many entries they share from the start, and what follows."""

    common: int
    removed: tuple[bytes, ...]
    added: tuple[bytes, ...]


def between(old: Checkpoint, new: Checkpoint, paths: Sequence[bytes] = ()) -> FilesDiff:
    """Returns how the files of two checkpoints differ."""
    read = new.objects.tree
    changes = tree.diff(old.files_tree, new.files_tree, read)

    def blob(path: bytes, entry: Entry) -> Iterator[bytes]:
        del path
        return new.objects.stream(entry.oid)

    return _compared(changes, paths, _of(old), blob)


def with_worktree(
    workspace: Workspace, old: Checkpoint, paths: Sequence[bytes] = ()
) -> FilesDiff:
    """Returns how the files in the work tree differ from a checkpoint's.

    Nothing is left in the repository.
    """
    top = os.fsencode(workspace.top)

    def on_disk(path: bytes, entry: Entry) -> Iterator[bytes]:
        where = os.path.join(top, path)
        if entry.mode == LINK:
            yield os.readlink(where)
            return
        with open(where, "rb") as file:
            while chunk := file.read(_TEXT_LIMIT):
                yield chunk

    with workspace.capturing() as capture, transaction(workspace.repository) as opened:

        def compare(snapshot: "Snapshot") -> FilesDiff:
            changes = tree.diff(old.files_tree, snapshot.tree, opened.tree)
            return _compared(changes, paths, _of(old), on_disk)

        _, found = capture.using(opened, compare)
        return found


def _of(checkpoint: Checkpoint) -> ReadBlob:
    def read(path: bytes, entry: Entry) -> Iterator[bytes]:
        del path
        return checkpoint.objects.stream(entry.oid)

    return read


def _compared(
    changes: Iterator[Change], paths: Sequence[bytes], old: ReadBlob, new: ReadBlob
) -> FilesDiff:
    chosen = selection(paths)
    found = [change for change in changes if chosen(change.path)]
    with _temporary() as top:
        for change in found:
            if path_problem(change.path) is None:
                _lay(top / "a", change.path, change.old, old)
                _lay(top / "b", change.path, change.new, new)
        patch = _git(top, "--patch")
        counts = _counts(_git(top, "--numstat", "-z"))
    return FilesDiff(
        tuple(
            FileDiff(change, *counts.get(change.path, (None, None))) for change in found
        ),
        patch,
    )


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gitcp-diff-") as name:
        top = Path(name)
        (top / "a").mkdir()
        (top / "b").mkdir()
        yield top


def _lay(side: Path, path: bytes, entry: Entry | None, read: ReadBlob) -> None:
    """Writes one side of a change where git can compare it."""
    if entry is None or entry.mode == GITLINK:
        return
    where = os.path.join(os.fsencode(side), path)
    os.makedirs(os.path.dirname(where), exist_ok=True)
    try:
        if entry.mode == LINK:
            os.symlink(b"".join(read(path, entry)), where)
            return
        size = 0
        with open(where, "xb") as file:
            for chunk in read(path, entry):
                size += len(chunk)
                file.write(chunk)
            if size > _TEXT_LIMIT:
                # A NUL at the start: git names such a file without comparing lines.
                file.seek(0)
                file.write(b"\0")
        os.chmod(where, 0o755 if entry.mode == EXECUTABLE else 0o644)
    except FileNotFoundError:
        # It went away since the scan: the comparison shows it as gone.
        return


def _git(top: Path, *options: str) -> bytes:
    return process.run(
        ["-c", "core.quotePath=false", "diff", *_OPTIONS, *options, "a", "b"],
        cwd=top,
        env={"GIT_CEILING_DIRECTORIES": os.fspath(top.parent)},
        accept=(0, 1),
    )


def _counts(raw: bytes) -> dict[bytes, tuple[int | None, int | None]]:
    """Returns the lines added and deleted by path."""
    found: dict[bytes, tuple[int | None, int | None]] = {}
    words = iter(raw.split(b"\0"))
    for word in words:
        if not word:
            continue
        added, deleted, path = word.split(b"\t", 2)
        if not path:
            names = (next(words), next(words))
            path = next(name for name in names if name != b"/dev/null")
        key = path.partition(b"/")[2]
        if b"-" in {added, deleted}:
            found[key] = None, None
        else:
            before = found.get(key, (0, 0))
            found[key] = (before[0] or 0) + int(added), (before[1] or 0) + int(deleted)
    return found


def conversations(old: Checkpoint, new: Checkpoint) -> Lines:
    """Returns how two conversations differ, by record."""
    one, two = (_records(side.conversation()) for side in (old, new))
    common = _common(one, two)
    return Lines(common, tuple(one[common:]), tuple(two[common:]))


def _records(raw: bytes) -> list[bytes]:
    return [line for line in raw.split(b"\n") if line.strip()]


def _common(one: Sequence[T], two: Sequence[T]) -> int:
    for at, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return at
    return min(len(one), len(two))


class Entries(NamedTuple):
    """Two decision logs: what they share from the start, and what follows."""

    common: int
    removed: tuple[Decision, ...]
    added: tuple[Decision, ...]


def decision_logs(old: Checkpoint | None, new: Checkpoint) -> Entries:
    """Returns how two decision logs differ."""
    one = old.decisions() if old else []
    two = new.decisions()
    common = _common(one, two)
    return Entries(common, tuple(one[common:]), tuple(two[common:]))


def new_entries(old: Checkpoint | None, new: Checkpoint) -> tuple[Decision, ...]:
    """Returns the entries that a checkpoint has beyond what it shares with another."""
    return decision_logs(old, new).added
