"""Caches small files of a directory: reads a file again only if it has changed."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

_Signature = tuple[int, int, int]
# For so long after a write, a file may change again and keep its time stamp, in ns: disks
# count time in ticks, or in whole seconds.
_TICK = 50_000_000
_SECOND = 1_000_000_000


class KnownFiles(Generic[T]):
    """The JSON documents in a directory, decoded to one type; all or one at a time."""

    def __init__(self, directory: Path, kind: type[T]) -> None:
        self._directory = directory
        self._decoder = msgspec.json.Decoder(kind)
        self._known: dict[str, tuple[_Signature, T]] = {}

    def all(self) -> dict[str, T]:
        """Returns all of them by their names without `.json`."""
        known, found = self._known, {}
        for name, signature in _listed(self._directory):
            seen = known.get(name)
            if seen is None or seen[0] != signature:
                seen = self._read(name, signature)
            if seen is not None:
                found[name] = seen
        self._known = {
            name: seen for name, seen in found.items() if seen[0] != _UNSETTLED
        }
        return {name: value for name, (_, value) in found.items()}

    def one(self, name: str) -> T | None:
        """Returns one of them, or None if it cannot be read."""
        with suppress(OSError):
            signature = _signature(os.stat(self._directory / f"{name}.json"))
            seen = self._known.get(name)
            if seen is None or seen[0] != signature:
                seen = self._read(name, signature)
                if seen is None:
                    return None
                if seen[0] != _UNSETTLED:
                    self._known[name] = seen
            return seen[1]
        return None

    def _read(self, name: str, signature: _Signature) -> tuple[_Signature, T] | None:
        # The stat came before the read: after a change in between, it is read again.
        written = signature[2]
        slack = _TICK if written % _SECOND else 2 * _SECOND
        if written + slack >= time.time_ns():
            signature = _UNSETTLED
        with suppress(OSError, msgspec.MsgspecError):
            data = (self._directory / f"{name}.json").read_bytes()
            return signature, self._decoder.decode(data)
        return None


_UNSETTLED: _Signature = (0, 0, 0)


def _listed(directory: Path) -> Iterator[tuple[str, _Signature]]:
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(".json"):
                with suppress(OSError):
                    yield entry.name.removesuffix(".json"), _signature(entry.stat())


def _signature(found: os.stat_result) -> _Signature:
    return (found.st_ino, found.st_size, found.st_mtime_ns)
