"""Reads a log line by line without holding it: blocks of whole lines, with a limit."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# A longer line in a log made elsewhere is not parsed: parsed, it takes many times the
# memory of its text.
LONGEST_FOREIGN = 8 * 1024 * 1024


class Block(NamedTuple):
    """Whole lines of a log, and the offset of the first one.

    A line that is longer than the reader takes has a block of its own, with the SHA-256
    of the line in place of its bytes.
    """

    start: int
    data: bytes
    digest: bytes | None = None


def blocks(chunks: Iterable[bytes], longest: int | None) -> Iterator[Block]:
    """Yields the lines of a log that comes in chunks.

    No block holds a line of more than `longest` bytes (None: any), nor more bytes than
    such a line and a chunk together.
    """
    start = 0
    rest = bytearray()
    # The part read so far of a line that is too long.
    passing: _Passing | None = None
    for chunk in chunks:
        at = 0
        if passing is not None:
            at = passing.take(chunk)
            if not at:
                continue
            yield Block(start, b"", passing.digest)
            start += passing.size
            passing = None
        end = chunk.rfind(b"\n", at) + 1
        if end:
            rest += chunk[at:end]
            yield from _split(start, bytes(rest), longest)
            start += len(rest)
            rest = bytearray()
        rest += chunk[max(at, end) :]
        if longest is not None and len(rest) > longest:
            passing = _Passing()
            passing.take(rest)
            rest = bytearray()
    if passing is not None:
        yield Block(start, b"", passing.digest)
    elif rest:
        yield Block(start, bytes(rest))


class _Passing:
    """A line that is hashed and not kept; `size` counts its end."""

    def __init__(self) -> None:
        self._hashed = hashlib.sha256()
        self.size = 0

    def take(self, chunk: bytes | bytearray) -> int:
        """Hashes the part of the line in a chunk; returns where the next line begins, or 0."""
        end = chunk.find(b"\n")
        piece = chunk if end < 0 else chunk[:end]
        self._hashed.update(piece)
        self.size += len(piece) + (end >= 0)
        return end + 1

    @property
    def digest(self) -> bytes:
        return self._hashed.digest()


def _split(start: int, data: bytes, longest: int | None) -> Iterator[Block]:
    """Yields whole lines, those that are too long apart from the others."""
    if longest is None or len(data) <= longest:
        yield Block(start, data)
        return
    kept = at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        if end - at > longest:
            if kept < at:
                yield Block(start + kept, data[kept:at])
            yield Block(start + at, b"", hashlib.sha256(data[at:end]).digest())
            kept = end + 1
        at = end + 1
    if kept < len(data):
        yield Block(start + kept, data[kept:])
