"""Keeps what was read and compared until it is written, so that it need not be read twice.

A checkpoint is read whole before the first file of the user's changes. Reading it once more
to write it costs as much again: git takes each object apart a second time. The contents lie
one behind the other in a file that has no name and that nothing outlives.
"""

import os
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from gitcp.format.oid import form_of
from gitcp.git.objects import BLOB, Objects

# Of a free disk so much is taken at most: the files themselves have to fit there, too.
_MOST = 512 * 1024 * 1024
_SHARE = 4
# So much is written at once.
_BUFFER = 1024 * 1024
# Linux only, and not on every file system. Elsewhere everything is read again.
_UNNAMED = getattr(os, "O_TMPFILE", None)


class _Place(NamedTuple):
    file: int
    at: int
    size: int


class Spool:
    """Contents of files by oid, in a file of each thread that adds some.

    What is kept is taken as often as it was added. Then the disk is freed: what is synced
    next must not hold it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._places: dict[bytes, _Place] = {}
        self._files: list[int] = []
        self._mutex = threading.Lock()
        self._due = 0
        self._room: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def part(self) -> "Part":
        """Returns what one thread adds contents to."""
        return Part(self)

    def close(self) -> None:
        """Frees the disk; what was kept is read from its source from then on."""
        with self._mutex:
            self._places = {}
            while self._files:
                os.close(self._files.pop())

    def open(self) -> int | None:
        """Returns a file without a name; None where there is no such thing, or no room."""
        if _UNNAMED is None:
            return None
        with self._mutex, suppress(OSError):
            if self._room is None:
                free = os.statvfs(self._directory)
                self._room = min(_MOST, free.f_bavail * free.f_frsize // _SHARE)
            flags = os.O_RDWR | os.O_CLOEXEC | _UNNAMED
            file = os.open(self._directory, flags, 0o600)
            self._files.append(file)
            return file
        return None

    def take_room(self, size: int) -> bool:
        """Whether so many bytes more may be kept."""
        with self._mutex:
            if self._room is None or self._room < size:
                return False
            self._room -= size
            return True

    def keep(self, places: dict[bytes, _Place], count: int) -> None:
        """Takes over what a part has written, for `count` files."""
        with self._mutex:
            self._places.update(places)
            self._due += count

    def contents(
        self, objects: Objects, oids: Iterable[bytes]
    ) -> Generator[Iterator[bytes], None, None]:
        """Yields the contents of files: those that are kept from here, others from `objects`."""
        wanted = list(oids)
        places = self._places
        others = [oid for oid in wanted if oid not in places]
        try:
            with closing(objects.contents(others)) as found:
                for oid in wanted:
                    place = places.get(oid)
                    if place is None:
                        yield next(found)
                    else:
                        yield self._read(objects, oid, place)
        finally:
            with self._mutex:
                self._due -= len(wanted) - len(others)
                done = self._due <= 0
            if done:
                self.close()

    def _read(self, objects: Objects, oid: bytes, place: _Place) -> Iterator[bytes]:
        """Returns a kept content, compared once more: it may have been on the disk."""
        with suppress(OSError):
            data = os.pread(place.file, place.size, place.at)
            if form_of(oid).oid(BLOB, data) == oid:
                return iter((data,))
        return objects.content(oid)


class Part:
    """What one thread reads, to be kept; nothing is kept any more where the disk refuses."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._file = spool.open()
        self._places: dict[bytes, _Place] = {}
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._at = 0
        self._count = 0

    def add(self, oid: bytes, data: bytes) -> None:
        """Keeps the content of a file, if there is room."""
        if self._file is None:
            return
        if oid not in self._places:
            if not self._spool.take_room(len(data)):
                return
            self._places[oid] = _Place(self._file, self._at, len(data))
            self._pieces.append(data)
            self._at += len(data)
            self._waiting += len(data)
        self._count += 1
        if self._waiting >= _BUFFER:
            self._flush()

    def end(self) -> None:
        """Hands what was kept to the spool."""
        self._flush()
        if self._file is not None:
            self._spool.keep(self._places, self._count)

    def _flush(self) -> None:
        pieces, self._pieces, self._waiting = b"".join(self._pieces), [], 0
        try:
            view = memoryview(pieces)
            while view and self._file is not None:
                view = view[os.write(self._file, view) :]
        except OSError:
            # A disk that is full is for the restore itself to meet. It is read again.
            self._file = None
