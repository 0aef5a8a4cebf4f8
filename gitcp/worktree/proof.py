"""Verifies the files that git wrote, by reading them back."""

import os
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from gitcp.format.chunked import MAGIC
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import Entry
from gitcp.worktree import bulk, files, replace
from gitcp.worktree.files import Root
from gitcp.worktree.missing import Names
from gitcp.worktree.plain import tree_mode

_CHUNK = 1024 * 1024
# Mode, inode, device, user, group, size, times of the last write and the last change. All
# zero if a later change might not show.
_STAT = struct.Struct("=QQQQQQqq")
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
# The clock that stamps files, on Linux.
_CLOCK = getattr(time, "CLOCK_REALTIME_COARSE", 5)


class Directory(NamedTuple):
    """A directory that was written: its present path, and its expected names."""

    path: bytes
    names: Names


class Proven(NamedTuple):
    """A directory that holds exactly the expected names and contents.

    `status` is its own stat, `files` has those of its files in the order of `names`; None if
    a later change might not show in it.
    """

    names: Names
    status: os.stat_result | None
    files: list[os.stat_result | None]

    def stats(self) -> Iterator[tuple[bytes, Entry, os.stat_result | None]]:
        """Yields name, entry and stat of each file."""
        entries = [(name, one) for name, one in self.names.items() if one is not None]
        for (name, entry), status in zip(entries, self.files, strict=True):
            yield name, entry, status


def stats(
    root: Root,
    directories: Sequence[Directory],
    form: ObjectFormat,
    meanwhile: Callable[[], None],
) -> list[Proven] | None:
    """Compares each file of some directories; None if something differs.

    Several processes share the work, because threads would wait for each other. `meanwhile`
    runs beside it, in a thread; an error that it raises is raised here.
    """
    alone = threading.active_count() > 1
    parts = [directories] if alone else bulk.parts(directories)
    found = _in_processes(parts, lambda part: _prove(root, part, form), meanwhile)
    if found is None:
        return None
    rows = map(_stat, _STAT.iter_unpack(found))
    return [
        Proven(
            directory.names,
            next(rows),
            [next(rows) for entry in directory.names.values() if entry is not None],
        )
        for directory in directories
    ]


def _stat(row: tuple[int, ...]) -> os.stat_result | None:
    mode, inode, device, user, group, size, modified, changed = row
    if not mode:
        return None
    # Whole seconds, then seconds with a fraction, then nanoseconds: the last ones count.
    times = (0, 0, 0, 0.0, 0.0, 0.0, modified, modified, changed)
    return os.stat_result((mode, inode, device, 1, user, group, size, *times))


def _in_processes(
    parts: Sequence[Sequence[Directory]],
    work: Callable[[Sequence[Directory]], bytes | None],
    meanwhile: Callable[[], None],
) -> bytes | None:
    """Does work on parts at once, the first in this process; None if one of them is None."""
    children: list[tuple[int, int]] = []
    results: list[bytes | None] = []

    def mine() -> None:
        results.append(work(parts[0]))

    try:
        for part in parts[1:]:
            children.append(_forked(partial(work, part)))  # noqa: PERF401  one by one
        bulk.at_once([mine, meanwhile], threading.Event())
        while children:
            results.append(_result(*children.pop(0)))
    finally:
        # Each process ends by itself if its result is not read.
        for child, reading in children:
            os.close(reading)
            os.waitpid(child, 0)
    found = [one for one in results if one is not None]
    return b"".join(found) if len(found) == len(parts) else None


def _result(child: int, reading: int) -> bytes | None:
    """Returns the result of a process, if it ended well."""
    try:
        said = b"".join(files.chunks(reading))
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    return said if status == 0 else None


def _forked(work: Callable[[], bytes | None]) -> tuple[int, int]:
    """Starts work in another process; returns the process, and the descriptor of its result."""
    reading, writing = os.pipe()
    # An interrupt must not make the child run this process's handlers.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        child = os.fork()
        if not child:
            _end_child(writing, work)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(writing)
    return child, reading


def _end_child(writing: int, work: Callable[[], bytes | None]) -> None:
    """Writes the result of the work, and ends this process without the parent's exit handlers."""
    status = 1
    try:
        found = work()
        if found is not None:
            view = memoryview(found)
            while view:
                view = view[os.write(writing, view) :]
            status = 0
    finally:
        os._exit(status)


def _prove(
    root: Root, directories: Sequence[Directory], form: ObjectFormat
) -> bytes | None:
    root = root.another()
    rows: list[bytes] = []
    try:
        for directory in directories:
            fd = root.directory(directory.path)
            # Take it before the listing: a name that appears during the listing changes
            # the stat.
            rows.append(_row(os.fstat(fd), time.clock_gettime_ns(_CLOCK)))
            if set(map(os.fsencode, os.listdir(fd))) != directory.names.keys():
                return None
            for name, entry in directory.names.items():
                if entry is None:
                    # It is opened as a directory when its turn comes.
                    continue
                row = _prove_file(fd, name, entry, form)
                if row is None:
                    return None
                rows.append(row)
    except OSError:
        return None
    finally:
        root.close()
    return b"".join(rows)


def _prove_file(
    directory: int, name: bytes, entry: Entry, form: ObjectFormat
) -> bytes | None:
    fd = files.open_file(directory, name)
    try:
        status = os.fstat(fd)
        now = time.clock_gettime_ns(_CLOCK)
        if (
            not files.is_regular(status)
            or status.st_nlink != 1
            or tree_mode(status) != entry.mode
        ):
            return None
        digest = form.hasher("blob", status.st_size)
        left, first = status.st_size, True
        while left and (chunk := os.read(fd, min(left, _CHUNK))):
            if first and chunk.startswith(MAGIC):
                # It is a pointer to chunks that no list has.
                return None
            first = False
            digest.update(chunk)
            left -= len(chunk)
    finally:
        os.close(fd)
    if left or digest.digest() != entry.oid:
        return None
    return _row(status, now)


def _row(status: os.stat_result, now: int) -> bytes:
    """Returns a stat that was taken at a time, for the process that has asked for it."""
    if now - status.st_ctime_ns <= replace.step_of(status):
        return bytes(_STAT.size)
    return _STAT.pack(
        status.st_mode,
        status.st_ino,
        status.st_dev,
        status.st_uid,
        status.st_gid,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
