"""Reading one file so that its bytes belong together, or saying that they do not.

A stat before and after a read does not see every change: time stamps move in steps
of the kernel's tick. Reading only what has been quiet for two ticks does.
"""

import errno
import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from gitcp.format.index import Stat, trim
from gitcp.format.tree import EXECUTABLE, FILE, LINK, Entry
from gitcp.worktree import files
from gitcp.worktree.files import Root

IN_MEMORY = 8 * 1024 * 1024
# Two steps of the clock that stamps files: 4 or 10 ms each on Linux.
_COARSE = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
QUIET_NS = max(8_000_000, int(2e9 * time.clock_getres(_COARSE)))
_TRIES = 5
_BILLION = 1_000_000_000


class Trouble(Enum):
    """Why a path was not read."""

    GONE = auto()
    UNREADABLE = auto()
    SPECIAL = auto()
    TOO_LARGE = auto()
    UNSETTLED = auto()


class Content(NamedTuple):
    """What a path holds: its entry, the stat that goes with it, whether it settled."""

    entry: Entry
    stat: Stat
    settled: bool


Store = Callable[[bytes], bytes]
StoreStream = Callable[[int, Iterator[bytes]], bytes | None]


def tree_mode(found: os.stat_result) -> int:
    """Returns the mode a file or link has in a tree."""
    if stat.S_ISLNK(found.st_mode):
        return LINK
    return EXECUTABLE if found.st_mode & stat.S_IXUSR else FILE


def index_stat(found: os.stat_result) -> Stat:
    """Returns the stat data as the index holds it."""
    return Stat(
        trim(found.st_ctime_ns // _BILLION),
        found.st_ctime_ns % _BILLION,
        trim(found.st_mtime_ns // _BILLION),
        found.st_mtime_ns % _BILLION,
        trim(found.st_dev),
        trim(found.st_ino),
        tree_mode(found),
        trim(found.st_uid),
        trim(found.st_gid),
        trim(found.st_size),
    )


_NO_STAT = Stat(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
DELETED = _NO_STAT


def is_quiet(found: os.stat_result) -> bool:
    """Whether a change from now on will show in the time stamps."""
    return abs(time.time_ns() - found.st_ctime_ns) >= QUIET_NS


def unsettled(mode: int) -> Stat:
    """Returns stat data that no file has, so that the path is read again next time."""
    return _NO_STAT._replace(mode=mode)


class Reader:
    """Reads paths of a work tree into `store`, skipping what is `known` already."""

    def __init__(
        self,
        root: Root,
        *,
        limit: int,
        known: Callable[[bytes, Entry], bool],
        store: Store,
        store_stream: StoreStream,
    ) -> None:
        self._root = root
        self._limit = limit
        self._known = known
        self._store = store
        self._store_stream = store_stream

    def read(self, path: bytes) -> Content | Trouble:
        """Reads a path.

        Raises:
            OSError: the disk failed; a missing or forbidden file is a Trouble.
        """
        try:
            found = self._root.lstat(path)
            if found is None:
                return Trouble.GONE
            if files.is_link(found):
                quiet = is_quiet(found)
                target = self._root.readlink(path)
                content = self._keep(path, LINK, target, found, settled=quiet)
                # A link is never torn; one that is new is only read again next time.
                return content._replace(settled=True)
            if files.is_directory(found):
                return Trouble.GONE
            if not files.is_regular(found):
                return Trouble.SPECIAL
            if found.st_size > self._limit:
                return Trouble.TOO_LARGE
            fd = self._root.open(path)
        except PermissionError:
            return Trouble.UNREADABLE
        except FileNotFoundError:
            return Trouble.GONE
        except OSError as exc:
            if exc.errno in _REPLACED:
                return Trouble.GONE
            raise
        try:
            return self._read(path, fd)
        except OSError as exc:
            # A descriptor has no name, and the message has to name the file.
            if exc.errno == errno.EIO and exc.filename is None:
                exc.filename = path
            raise
        finally:
            os.close(fd)

    def _read(self, path: bytes, fd: int) -> Content | Trouble:
        for attempt in range(_TRIES):
            last = attempt == _TRIES - 1
            before = os.fstat(fd)
            if not files.is_regular(before):
                return Trouble.SPECIAL
            if before.st_size > self._limit:
                return Trouble.TOO_LARGE
            quiet = is_quiet(before)
            if not quiet and not last:
                time.sleep(QUIET_NS / _BILLION)
                continue
            os.lseek(fd, 0, os.SEEK_SET)
            if before.st_size > IN_MEMORY:
                content = self._large(path, fd, before, keep_unsettled=last)
            else:
                content = self._small(path, fd, before, quiet=quiet, last=last)
            if content is not None:
                return content
            if not last:
                time.sleep(QUIET_NS / _BILLION)
        return Trouble.UNSETTLED

    def _small(
        self, path: bytes, fd: int, before: os.stat_result, *, quiet: bool, last: bool
    ) -> Content | None:
        data = b"".join(files.chunks(fd))
        after = os.fstat(fd)
        settled = quiet and len(data) == after.st_size and _same(before, after)
        if not settled and not last:
            return None
        return self._keep(path, tree_mode(after), data, after, settled=settled)

    def _large(
        self, path: bytes, fd: int, before: os.stat_result, *, keep_unsettled: bool
    ) -> Content | None:
        """Reads twice, so that content which is known already is not compressed."""
        size = before.st_size
        digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        for chunk in files.chunks(fd):
            digest.update(chunk)
        settled = _same(before, os.fstat(fd))
        entry = Entry(tree_mode(before), digest.digest())
        if settled and self._known(path, entry):
            return Content(entry, index_stat(before), settled=True)
        if not settled and not keep_unsettled:
            return None
        os.lseek(fd, 0, os.SEEK_SET)
        oid = self._store_stream(size, _first(size, files.chunks(fd)))
        settled = settled and oid == entry.oid and _same(before, os.fstat(fd))
        if settled:
            return Content(entry, index_stat(before), settled=True)
        if oid is None or not keep_unsettled:
            return None
        return Content(Entry(entry.mode, oid), unsettled(entry.mode), settled=False)

    def _keep(
        self,
        path: bytes,
        mode: int,
        data: bytes,
        found: os.stat_result,
        *,
        settled: bool,
    ) -> Content:
        head = f"blob {len(data)}\0".encode()
        oid = hashlib.sha1(head + data, usedforsecurity=False).digest()
        entry = Entry(mode, oid)
        if not self._known(path, entry):
            self._store(data)
        return Content(
            entry, index_stat(found) if settled else unsettled(mode), settled
        )


# A link, a directory or a device took the file's place between stat and open.
_REPLACED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.ENXIO})


def _first(size: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[:size]
        size -= len(chunk)
        if size <= 0:
            return


def _same(one: os.stat_result, two: os.stat_result) -> bool:
    return (
        one.st_size == two.st_size
        and one.st_mtime_ns == two.st_mtime_ns
        and one.st_ctime_ns == two.st_ctime_ns
    )
