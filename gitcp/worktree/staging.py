"""Has git write whole missing directories, under temporary names beside their places.

Git writes what it takes out of its packs, on several processors, in a fifth of the time that
Python needs for it. gitcp does not rely on the result: it reads and compares each file before
the directory gets its name. If a file is wrong, gitcp removes the directory and writes its
files one by one.
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gitcp import durable
from gitcp.errors import GitFailedError
from gitcp.format import index as indexes
from gitcp.format.index import IndexEntry
from gitcp.git import process
from gitcp.git.process import Process
from gitcp.git.repository import Repository
from gitcp.worktree import bulk, leftovers, proof, renames, spelling
from gitcp.worktree.disks import Disks
from gitcp.worktree.files import Root
from gitcp.worktree.missing import Missing, paths_of
from gitcp.worktree.plan import Left
from gitcp.worktree.private import PrivateGit
from gitcp.worktree.read import Written, unsettled

if TYPE_CHECKING:
    from gitcp.worktree.proof import Proven


class Staging:
    """The missing directories of one restore, from when they are written to their names.

    `lock` is the descriptor of the work tree's lock: git holds it while it writes, so that
    after a kill of the restore nothing else starts before git has ended, too.
    """

    def __init__(
        self,
        repository: Repository,
        root: Root,
        missing: Sequence[Missing],
        *,
        token: str,
        lock: int,
    ) -> None:
        self.missing = missing
        self.written: Written = {}
        # The directories, by their final paths.
        self.proven: dict[bytes, Proven] = {}
        # A file that another process put there stays beside it.
        self.left: list[Left] = []
        # The directories that are written, verified and durable, but have no name yet.
        self.ready: list[Missing] = []
        self._repository = repository
        self._root = root
        self._token = token
        self._lock = lock
        self._disks = Disks()
        # When git had ended: no stamp that it left is later.
        self._until = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            # After a kill, `--continue` and `--abort` find these as well.
            with suppress(OSError):
                self.discard()
        self._disks.__exit__(kind, error, trace)

    def write(self) -> bool:
        """Writes them; returns whether each file is right, and durable.

        If not, all of them are removed.

        Raises:
            StorageError: the disk refused to make something durable.
        """
        with durable.storage("restoring files"):
            if self._can_be_written() and self._write() and self._prove():
                self.ready = list(self.missing)
                return True
            self.discard()
        return False

    def _can_be_written(self) -> bool:
        """Whether all of it goes to disks that are synced as a whole, and tell names apart."""
        if spelling.folds(self._root):
            return False
        self._root.forget()
        try:
            return all(self._disks.note(self._parent(one)) for one in self.missing)
        except OSError:
            return False

    def _parent(self, one: Missing) -> int:
        return self._root.parent(one.path)[0]

    def _write(self) -> bool:
        repository = self._repository
        private = PrivateGit(repository, self._top)
        private.prepare()
        for above, group in groupby(self.missing, _above):
            together = list(group)
            raw = indexes.encode(self._entries(together), repository.form)
            try:
                for one in together:
                    self._make(one)
                where = self._root.directory(above)
                _end(private.start_writing(raw, where, self._lock, bulk.workers()))
            except (OSError, GitFailedError):
                return False
            finally:
                self._until = time.time_ns()
        return True

    def _make(self, one: Missing) -> None:
        """Makes its directory, and those below that git does not make."""
        now = one.temporary(self._token)
        fd, name = self._root.parent(now)
        os.mkdir(name, dir_fd=fd)
        for path in sorted(one.bare()):
            self._root.make_directory(now + path[len(one.path) :])

    @property
    def _top(self) -> Path:
        return self._repository.top or self._repository.git_dir

    def _entries(self, together: Iterable[Missing]) -> Iterator[IndexEntry]:
        for one in together:
            skip = len(one.path)
            base = one.temporary(self._token).rpartition(b"/")[2]
            for step in one.files:
                if step.after is not None:
                    mode, oid = step.after
                    yield IndexEntry(base + step.path[skip:], oid, unsettled(mode))

    def _prove(self) -> bool:
        directories: list[proof.Directory] = []
        paths: list[bytes] = []
        for one in self.missing:
            at, skip = one.temporary(self._token), len(one.path)
            for path, names in one.names().items():
                directories.append(proof.Directory(at + path[skip:], names))
                paths.append(path)
        self._root.forget()
        # The disk writes while the files are read.
        form, sync = self._repository.form, self._disks.sync
        found = proof.stats(self._root, directories, form, sync)
        self.proven = dict(zip(paths, found or (), strict=bool(found)))
        for path, proven in self.proven.items():
            for name, entry, status in proven.stats():
                # What is larger may be captured in another form.
                if status is not None and status.st_size <= bulk.ALONE:
                    self.written[path + b"/" + name] = entry, status
        return found is not None

    def place(self, disks: Disks) -> set[bytes]:
        """Gives them their names; returns the paths of what has its place now.

        Whatever has a name by then keeps it. What could not get its own is removed.

        Raises:
            OSError: the disk refused.
        """
        placed: list[Missing] = []
        self._root.forget()
        for one in self.ready:
            with suppress(FileExistsError, FileNotFoundError, NotADirectoryError):
                fd, name = self._root.parent(one.path)
                disks.note(fd)
                temporary = one.temporary(self._token).rpartition(b"/")[2]
                if renames.move_directory(fd, temporary, name):
                    placed.append(one)
        self._root.forget()
        self._discard([one for one in self.ready if one not in placed])
        self.ready = []
        paths = paths_of(placed)
        for known in (self.written, self.proven):
            for path in known.keys() - paths:
                del known[path]
        return paths

    def discard(self) -> None:
        """Removes what has no name yet."""
        self._discard(self.missing)
        self.written.clear()
        self.proven.clear()

    def _discard(self, missing: Iterable[Missing]) -> None:
        self._root.forget()
        for one in missing:
            staged = leftovers.Staged(one.path, one.temporary(self._token), self._until)
            known = leftovers.sides_of(one.files)
            kept = leftovers.clear(self._root, staged, known, _nothing, self._token)
            self.left += [Left(one.path, kept)] if kept is not None else ()


def _nothing(_: bytes) -> Iterator[bytes]:
    """Stands for a content of which no file is the beginning."""
    yield from ()


def _above(one: Missing) -> bytes:
    return one.path.rpartition(b"/")[0]


def _end(running: Process) -> None:
    """Waits for git; where it fails, or at an interrupt, its workers end, too."""
    try:
        process.finish(running)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        raise
