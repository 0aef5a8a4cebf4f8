"""Compresses many objects in parallel, while the caller reads the next ones.

It uses git's level for loose objects; zlib releases Python's lock meanwhile.
"""

import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple

LEVEL = 1
# How many bytes may wait to be compressed or written.
_WAITING = 32 * 1024 * 1024
_MOST_THREADS = 4


class Deflating(NamedTuple):
    """An object of a pack: its oid, the head of its entry, and its content."""

    oid: bytes
    head: bytes
    data: bytes


class Deflater:
    """Takes objects and gives them back with their content compressed, in any order."""

    def __init__(self) -> None:
        self._todo: SimpleQueue[Deflating | None] = SimpleQueue()
        self._done: SimpleQueue[Deflating | Exception] = SimpleQueue()
        # By oid: the size of what was taken and not given back.
        self._sizes: dict[bytes, int] = {}
        self._waiting = 0
        self._threads = [
            threading.Thread(target=self._run, daemon=True)
            for _ in range(min(cores() - 1, _MOST_THREADS))
        ]
        for thread in self._threads:
            thread.start()

    def __contains__(self, oid: bytes) -> bool:
        return oid in self._sizes

    def take(self, given: Deflating) -> Iterator[Deflating]:
        """Takes an object, and yields finished ones."""
        if not self._threads:
            yield _deflated(given)
            return
        self._sizes[given.oid] = len(given.data)
        self._waiting += len(given.data)
        self._todo.put(given)
        while self._waiting > _WAITING or not self._done.empty():
            yield self._next()

    def finish(self) -> Iterator[Deflating]:
        """Yields all others, and ends."""
        while self._sizes:
            yield self._next()
        self.abandon()

    def abandon(self) -> None:
        """Ends, and drops unfinished objects."""
        with suppress(Empty):
            while self._threads:
                self._todo.get_nowait()
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _next(self) -> Deflating:
        done = self._done.get()
        if isinstance(done, Exception):
            raise done
        self._waiting -= self._sizes.pop(done.oid)
        return done

    def _run(self) -> None:
        while (given := self._todo.get()) is not None:
            try:
                self._done.put(_deflated(given))
            except (MemoryError, zlib.error) as exc:
                self._done.put(exc)


def _deflated(given: Deflating) -> Deflating:
    return given._replace(data=zlib.compress(given.data, LEVEL))


def cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
