"""SQLite databases: with a write-ahead log captured as one consistent file (0104).

The content of such a database is in two files, the database and its `-wal`. If a process
writes while gitcp reads one after the other, they may not match. So gitcp copies both to a
directory of its own, again if the database changed meanwhile, and SQLite makes one file of
the copies (`sqlite_backup`). That file stands for the database and the files beside it.

Without such a log, an interrupted transaction leaves a journal beside the database, with
which SQLite takes it back. gitcp captures both as they are, even if rules ignore the journal.
"""

import fcntl
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.worktree import files
from gitcp.worktree.clock import Clock
from gitcp.worktree.files import Root, Seen, seen_of
from gitcp.worktree.names import WAL

# A backup of a database stands for these, too.
FOLDED = (WAL, b"-shm")
_JOURNAL = b"-journal"
BESIDE = (*FOLDED, _JOURNAL)
# The first bytes of a database. Bytes 18 and 19 are 2 if it has a write-ahead log, else 1.
MAGIC = b"SQLite format 3\0"
_VERSIONS = slice(18, 20)
_WITH_LOG, _WITH_JOURNAL = b"\2\2", b"\1\1"
_HEAD = 100
# Sizes of databases are multiples of the smallest page.
_PAGE = 512
# Where SQLite locks a database, and the mark of an open one beside it (os_unix.c).
_LOCKS = 0x40000000, 512
_OPEN = 128, 1
_FLOCK = "qqihh" if sys.platform == "darwin" else "hhqqi4x"

# Of a database and its log.
Known = dict[bytes, tuple[Seen, Seen] | None]


class Databases:
    """The databases of a work tree.

    `known` has the databases seen so far, with the stats of each and of its log at its
    last backup, or None. Without `backups` the files are captured as they are.
    """

    def __init__(
        self, root: Root, clock: Clock, scratch: Path, known: Known, *, backups: bool
    ) -> None:
        self._root = root
        self._clock = clock
        self._scratch = scratch
        self._known = known
        self._backups = backups
        # Whether the last one could not be read because a process writes to it.
        self.torn = False

    def to_look_at(self, paths: Iterable[bytes]) -> set[bytes]:
        """Returns the databases that may have changed although their own file did not.

        `paths` are those that changed.
        """
        found = {
            path.removesuffix(suffix)
            for path in paths
            for suffix in BESIDE
            if path.endswith(suffix)
        }
        return {
            path
            for path in found | self._known.keys()
            if path in self._known or self._is_file(path)
            if self._backups and (path in found or self._known[path] or self._log(path))
        }

    def apart(self, paths: Iterable[bytes]) -> set[bytes]:
        """Returns known databases, and the paths that may be a part of one."""
        beside = {path for path in paths if path.endswith(BESIDE)}
        owners = {path.removesuffix(one) for path in beside for one in BESIDE}
        return beside | owners | self._known.keys()

    def gone(self, path: bytes) -> None:
        """Forgets a database that is gone, unless SQLite would read a file in its place."""
        if any(self._is_file(path + suffix) for suffix in BESIDE):
            if path in self._known:
                self._known[path] = None
        else:
            self._known.pop(path, None)

    def beside(self) -> set[bytes]:
        """Returns the files beside databases that are captured, even if rules ignore them.

        These are all of them if databases are captured as they are, else the journals with
        which SQLite would change a database.
        """
        if self._backups:
            return {path + _JOURNAL for path in self._known if self._has_journal(path)}
        names = (path + suffix for path in self._known for suffix in BESIDE)
        return {name for name in names if self._is_file(name)}

    def unchanged(self, path: bytes, fd: int) -> bool:
        """Whether a database, open as `fd`, is unchanged since its last backup."""
        seen = self._known.get(path) if self._backups else None
        log = self._log(path) if seen else None
        return log is not None and seen == (seen_of(os.fstat(fd)), seen_of(log))

    def is_one(self, path: bytes, status: os.stat_result) -> bool:
        """Whether a regular file of that stat is a database."""
        if not status.st_size or status.st_size % _PAGE:
            return False
        fd = self._root.open(path)
        try:
            return _versions(fd) is not None
        finally:
            os.close(fd)

    @contextmanager
    def backup(self, path: bytes, fd: int) -> Iterator[Path | None]:
        """Makes a consistent copy of a database, and removes it at the end.

        None if it is not a database with a non-empty log, or if no copy can be made.
        """
        self.torn = False
        versions = _versions(fd)
        if versions is None:
            self.gone(path)
            yield None
            return
        self._known[path] = None
        if (
            not self._backups
            or versions != _WITH_LOG
            or self._log(path) is None
            or self._has_journal(path)
        ):
            yield None
            return
        # Most work trees have no such database.
        from gitcp.worktree.sqlite_backup import backup_of  # noqa: PLC0415

        with backup_of(self._root, self._clock, self._scratch, path, fd) as found:
            self._known[path] = found.seen
            self.torn = found.torn
            yield found.made

    def _log(self, path: bytes) -> os.stat_result | None:
        """Returns the stat of a database's log, if that is not empty."""
        with suppress(OSError):
            status = self._root.lstat(path + WAL)
            if status is not None and files.is_regular(status) and status.st_size:
                return status
        return None

    def _has_journal(self, path: bytes) -> bool:
        """Whether a journal lies beside a database that SQLite would not take for an old one."""
        with suppress(OSError):
            fd = self._root.open(path + _JOURNAL)
            try:
                return os.pread(fd, 1, 0) not in {b"", b"\0"}
            finally:
                os.close(fd)
        return False

    def _is_file(self, path: bytes) -> bool:
        with suppress(OSError):
            status = self._root.lstat(path)
            return status is not None and files.is_regular(status)
        return False


def is_open(root: Root, path: bytes) -> bool:
    """Whether another process has a database open, by the locks that SQLite holds."""
    return _is_locked(root, path, *_LOCKS) or _is_locked(root, path + b"-shm", *_OPEN)


class _Lock(NamedTuple):
    kind: int
    start: int
    length: int


def _is_locked(root: Root, path: bytes, start: int, length: int) -> bool:
    try:
        fd = root.open(path)
    except OSError:
        return False
    asked = _Lock(fcntl.F_WRLCK, start, length)
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, _packed(asked))
    except OSError:
        # This disk has no locks, so SQLite has none there either.
        return False
    finally:
        os.close(fd)
    fields = struct.unpack(_FLOCK, answer)
    kind = fields[3] if sys.platform == "darwin" else fields[0]
    return bool(kind != fcntl.F_UNLCK)


def _packed(lock: _Lock) -> bytes:
    if sys.platform == "darwin":
        return struct.pack(_FLOCK, lock.start, lock.length, 0, lock.kind, os.SEEK_SET)
    return struct.pack(_FLOCK, lock.kind, os.SEEK_SET, lock.start, lock.length, 0)


def _versions(fd: int) -> bytes | None:
    """Returns the bytes that say how a database is written; None if the file is none."""
    size = os.fstat(fd).st_size
    if not size or size % _PAGE:
        return None
    head = os.pread(fd, _HEAD, 0)
    versions = head[_VERSIONS]
    known = head.startswith(MAGIC) and versions in {_WITH_LOG, _WITH_JOURNAL}
    return versions if known else None
