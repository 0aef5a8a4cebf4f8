"""Keeps contents in memory between comparing and writing, so that each is read once.

A checkpoint is read whole before the first file of the user's changes. Reading it once more
to write it costs as much again: git takes each object apart a second time.
"""

import os
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from gitcp.git.objects import Objects

# The largest part of the machine's memory to use, this process included.
_MOST = 256 * 1024 * 1024
_SHARE = 16
# The memory limit of a container; the file exists only inside one.
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


class KeptContents:
    """Contents of files by oid. Each can be taken as often as it was added.

    Several threads may add and take.
    """

    def __init__(self) -> None:
        self._kept: dict[bytes, bytes] = {}
        self._due: dict[bytes, int] = {}
        self._mutex = threading.Lock()
        self._room = room()

    def add(self, oid: bytes, data: bytes) -> None:
        """Keeps the content of a file that has been compared with its oid, if there is room."""
        with self._mutex:
            if oid not in self._kept:
                if self._room < len(data):
                    return
                self._room -= len(data)
                self._kept[oid] = data
            self._due[oid] = self._due.get(oid, 0) + 1

    def contents(
        self, objects: Objects, oids: Iterable[bytes]
    ) -> Generator[Iterator[bytes], None, None]:
        """Yields the contents of files: kept ones from memory, others from `objects`."""
        wanted = [(oid, self._take(oid)) for oid in oids]
        others = [oid for oid, data in wanted if data is None]
        wanted.reverse()
        with closing(objects.contents(others)) as found:
            while wanted:
                # Memory is freed as files are written.
                _, data = wanted.pop()
                yield next(found) if data is None else iter((data,))

    def _take(self, oid: bytes) -> bytes | None:
        with self._mutex:
            data = self._kept.get(oid)
            if data is None:
                return None
            self._due[oid] -= 1
            if not self._due[oid]:
                del self._kept[oid]
                self._room += len(data)
            return data


def room() -> int:
    """Returns how many bytes of contents may be kept in memory."""
    most = _MOST
    with suppress(OSError, ValueError):
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        most = min(most, there // _SHARE)
    with suppress(OSError, ValueError):
        most = min(most, int(_CONTAINER.read_text()) // _SHARE)
    return most
