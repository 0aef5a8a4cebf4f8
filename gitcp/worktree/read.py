"""Reads one file consistently, or reports that it changed meanwhile.

A stat before and after a read does not see every change: time stamps move in steps.
It is proof once the disk's clock has moved on. If that takes seconds, the file is
read twice, and again by the next capture.
"""

import errno
import functools
import os
import stat
from collections.abc import Callable, Collection, Iterator
from enum import Enum, auto
from typing import NamedTuple

from gitcp.format.index import Stat
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import LINK, Entry
from gitcp.worktree import files
from gitcp.worktree.chunks import ChunkWriter
from gitcp.worktree.clock import Clock
from gitcp.worktree.databases import Databases
from gitcp.worktree.files import Root
from gitcp.worktree.plain import index_stat, tree_mode

IN_MEMORY = 8 * 1024 * 1024
_TRIES = 5


class Trouble(Enum):
    """Why a path was not read."""

    GONE = auto()
    UNREADABLE = auto()
    SPECIAL = auto()
    TOO_LARGE = auto()
    DEFERRED = auto()
    UNSETTLED = auto()


class Content(NamedTuple):
    """The content of a path: its entry, the matching stat, and whether it was stable.

    If the true stat would not show a change, `stat` is one that no file has. A `backup` is
    made of a database and the log beside it.
    """

    entry: Entry
    stat: Stat
    settled: bool
    backup: bool = False


# By path: the entry that was written, and the file's stat after it got its name.
Written = dict[bytes, tuple[Entry, os.stat_result]]
Store = Callable[[bytes, bytes], bytes]
StoreStream = Callable[[int, Iterator[bytes]], bytes | None]
# By id: the size of the content, and the compressed content.
StoreDeflated = Callable[[bytes, int, bytes], None]


_NO_STAT = Stat(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
DELETED = _NO_STAT


@functools.lru_cache(maxsize=16)
def unsettled(mode: int) -> Stat:
    """Returns stat data that no file has, so that the path is read again next time."""
    return _NO_STAT._replace(mode=mode)


class FileReader:
    """Reads paths of a work tree into `store`, skipping what is `known` already."""

    def __init__(
        self,
        root: Root,
        clock: Clock,
        *,
        form: ObjectFormat,
        limit: int,
        known: Callable[[bytes, Entry], bool],
        store: Store,
        store_stream: StoreStream,
        store_deflated: StoreDeflated,
        chunks: ChunkWriter,
        before: Callable[[bytes], Entry | None],
        databases: Databases,
        written: Written | None = None,
    ) -> None:
        """`before` returns the known entry of a path, if any."""
        self._databases = databases
        self._root = root
        self._clock = clock
        self._form = form
        self._limit = limit
        self._known = known
        self._store = store
        self._store_stream = store_stream
        self._store_deflated = store_deflated
        self._written = written or {}
        self._chunks = chunks
        self._before = before

    def read_many(self, paths: Collection[bytes]) -> Iterator[tuple[bytes, Content]]:
        """Reads the ordinary files among many paths, in any order; the rest is for `read`."""
        # Few saves have so many to read.
        from gitcp.worktree import plain_many  # noqa: PLC0415

        apart = self._databases.apart(paths) | self._written.keys()
        nothing = bytes(self._form.size)

        def expected(path: bytes) -> bytes:
            before = self._before(path)
            return nothing if before is None else before.oid

        for block in plain_many.read_many(
            sorted(path for path in paths if path not in apart),
            expected,
            root=self._root,
            form=self._form,
            proof=self._clock.proof(),
            most=self._chunks.whole_up_to(self._limit),
        ):
            for path, oid, stat_data, data, stored in block:
                entry = Entry(stat_data.mode, oid)
                if data is not None and not self._known(path, entry):
                    self._store(data, oid)
                elif stored is not None and not self._known(path, entry):
                    self._store_deflated(oid, stat_data.size, stored)
                yield path, Content(entry, stat_data, settled=True)

    def read(self, path: bytes) -> Content | Trouble:
        """Reads a path.

        Raises:
            OSError: the disk failed; a missing or forbidden file is a Trouble.
        """
        try:
            status = self._root.lstat(path)
            if status is None:
                return Trouble.GONE
            if files.is_link(status):
                sure = self._clock.shows_changes(status)
                target = self._root.readlink(path)
                # A link is never torn; a new one is only read again next time.
                return self._keep(path, LINK, target, status, sure=sure)
            if files.is_directory(status):
                return Trouble.GONE
            if not files.is_regular(status):
                return Trouble.SPECIAL
            if status.st_size > self._limit:
                return Trouble.TOO_LARGE
            entry = self._just_written(path, status)
            if (
                entry is not None
                and not self._chunks.only_elsewhere(entry.oid)
                # A database has to be known as one from now on.
                and not self._databases.is_one(path, status)
            ):
                return Content(entry, index_stat(status), settled=True)
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
            return self._database(path, fd) or self._read(path, fd)
        except OSError as exc:
            # A descriptor has no name, and the message has to name the file.
            if exc.errno == errno.EIO and exc.filename is None:
                exc.filename = path
            raise
        finally:
            os.close(fd)

    def _database(self, path: bytes, fd: int) -> Content | Trouble | None:
        """Reads a database with the log beside it; None if it is an ordinary file."""
        status = os.fstat(fd)
        mode = tree_mode(status)
        known = self._before(path)
        if known is not None and self._databases.unchanged(path, fd):
            entry = Entry(mode, known.oid)
            return Content(entry, unsettled(mode), settled=True, backup=True)
        late = known is None and not self._chunks.in_time(status)
        if late and self._chunks.wants(status.st_size):
            return Trouble.DEFERRED
        with self._databases.backup(path, fd) as made:
            if made is None:
                content = self._read(path, fd) if self._databases.torn else None
                if not isinstance(content, Content):
                    return content
                return content._replace(stat=unsettled(mode), settled=False)
            copy = os.open(made, os.O_RDONLY | os.O_CLOEXEC)
            try:
                content = self._read(path, copy)
            finally:
                os.close(copy)
        if isinstance(content, Trouble):
            return content
        # The log may change without the database, so it is compared each time.
        entry = Entry(mode, content.entry.oid)
        return Content(entry, unsettled(mode), settled=True, backup=True)

    def _just_written(self, path: bytes, status: os.stat_result) -> Entry | None:
        """Returns the entry that this process wrote to a path, if the path still holds it.

        Its object is stored: it was read from there.
        """
        entry, then = self._written.get(path, (None, status))
        if entry is None:
            return None
        same = (
            _same(then, status)
            and then.st_ino == status.st_ino
            and then.st_dev == status.st_dev
            and then.st_mode == status.st_mode
        )
        readable = status.st_mode & stat.S_IRUSR
        sure = same and readable and self._clock.shows_changes(status)
        return entry if sure else None

    def _read(self, path: bytes, fd: int) -> Content | Trouble:
        for attempt in range(_TRIES):
            last = attempt == _TRIES - 1
            before = os.fstat(fd)
            if not files.is_regular(before):
                return Trouble.SPECIAL
            if before.st_size > self._limit:
                return Trouble.TOO_LARGE
            sure = self._clock.shows_changes(before)
            if not sure and not last and self._clock.wait(before):
                continue
            if attempt:
                os.lseek(fd, 0, os.SEEK_SET)
            if self._chunks.wants(before.st_size):
                if self._before(path) is None and not self._chunks.in_time(before):
                    return Trouble.DEFERRED
                content = self._chunked(path, fd, before, sure=sure, last=last)
            elif before.st_size > IN_MEMORY:
                content = self._large(path, fd, before, sure=sure, last=last)
            else:
                content = self._small(path, fd, before, sure=sure, last=last)
            if content is not None:
                return content
            self._clock.wait(before)
        return Trouble.UNSETTLED

    def _small(
        self, path: bytes, fd: int, before: os.stat_result, *, sure: bool, last: bool
    ) -> Content | None:
        first = data = files.content(fd, before.st_size)
        if not sure:
            os.lseek(fd, 0, os.SEEK_SET)
            data = files.content(fd, before.st_size)
        after = os.fstat(fd)
        same = _same(before, after) and first == data
        settled = same and len(data) == after.st_size
        if not settled and not last:
            return None
        content = self._keep(path, tree_mode(after), data, after, sure=sure and settled)
        return Content(content.entry, content.stat, settled)

    def _large(
        self, path: bytes, fd: int, before: os.stat_result, *, sure: bool, last: bool
    ) -> Content | None:
        """Reads twice, so that content which is known already is not compressed."""
        size = before.st_size
        digest = self._form.hasher("blob", size)
        for chunk in files.chunks(fd):
            digest.update(chunk)
        settled = _same(before, os.fstat(fd))
        entry = Entry(tree_mode(before), digest.digest())
        stat_data = index_stat(before) if sure else unsettled(entry.mode)
        if settled and self._known(path, entry):
            return Content(entry, stat_data, settled=True)
        if not settled and not last:
            return None
        os.lseek(fd, 0, os.SEEK_SET)
        oid = self._store_stream(size, _first(size, files.chunks(fd)))
        settled = settled and oid == entry.oid and _same(before, os.fstat(fd))
        if settled:
            return Content(entry, stat_data, settled=True)
        if oid is None or not last:
            return None
        return Content(Entry(entry.mode, oid), unsettled(entry.mode), settled=False)

    def _chunked(
        self, path: bytes, fd: int, before: os.stat_result, *, sure: bool, last: bool
    ) -> Content | None:
        """Reads into chunks; a file that git already has in one piece stays so."""
        size, mode = before.st_size, tree_mode(before)
        entry = self._before(path)
        if entry is None:
            self._chunks.check_room(path, size)
        elif not self._chunks.holds(entry.oid):
            digest = self._form.hasher("blob", size)
            for piece in files.chunks(fd):
                digest.update(piece)
            os.lseek(fd, 0, os.SEEK_SET)
            entry = Entry(mode, digest.digest())
            if _same(before, os.fstat(fd)) and self._known(path, entry):
                stat_data = index_stat(before) if sure else unsettled(mode)
                return Content(entry, stat_data, settled=True)
        oid = self._chunks.write(_first(size, files.chunks(fd)), size)
        settled = oid is not None and _same(before, os.fstat(fd))
        if oid is None or not (settled or last):
            return None
        sure = sure and settled
        stat_data = index_stat(before) if sure else unsettled(mode)
        return Content(Entry(mode, oid), stat_data, settled=settled)

    def _keep(
        self,
        path: bytes,
        mode: int,
        data: bytes,
        status: os.stat_result,
        *,
        sure: bool,
    ) -> Content:
        entry = Entry(mode, self._form.oid("blob", data))
        if self._chunks.must_have(data):
            self._chunks.write(iter([data]), len(data))
        elif not self._known(path, entry):
            self._store(data, entry.oid)
        return Content(
            entry, index_stat(status) if sure else unsettled(mode), settled=True
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
