"""Splits a stream into lines of JSON; bytes that are not JSON pass unchanged."""

from collections.abc import Iterator
from typing import NamedTuple


class Piece(NamedTuple):
    """Bytes to hand on, in their order.

    `line` is the whole line that ends with `data`, with its line break. It is None for a part
    of a line, and for the end of a line that is longer than is kept.
    """

    data: bytes
    line: bytes | None


class Framing:
    """Yields what is read line by line.

    An unfinished line is held back up to `hold` bytes, as the receiver could do nothing with
    it; a longer one is handed on as it comes, and so is what does not begin as an object. Of
    one line at most `keep` bytes are kept to be looked at.
    """

    def __init__(self, *, hold: int, keep: int) -> None:
        self._hold = hold
        self._keep = keep
        self._parts: list[bytes] = []
        self._size = 0
        # How much of the line has been handed on already.
        self._gone = 0

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        """Yields what can be handed on once a chunk has been read."""
        at = 0
        while (end := chunk.find(b"\n", at)) >= 0:
            yield self._ended(chunk[at : end + 1])
            at = end + 1
        if at < len(chunk):
            yield from self._unfinished(chunk[at:])

    def rest(self) -> bytes:
        """Returns what is left at the end of the stream, and was not handed on."""
        left = b"".join(self._parts) if not self._gone else b""
        self._parts, self._size, self._gone = [], 0, 0
        return left

    def _ended(self, end: bytes) -> Piece:
        known = self._size <= self._keep
        line = b"".join((*self._parts, end)) if self._parts else end
        piece = Piece(end if self._gone else line, line if known else None)
        self._parts, self._size, self._gone = [], 0, 0
        return piece

    def _unfinished(self, part: bytes) -> Iterator[Piece]:
        self._size += len(part)
        if self._gone:
            self._gone += len(part)
            if self._size <= self._keep:
                self._parts.append(part)
            else:
                self._parts.clear()
            yield Piece(part, None)
            return
        self._parts.append(part)
        if self._size <= self._hold and _may_be_object(self._parts[0]):
            return
        data = b"".join(self._parts)
        self._gone = self._size
        self._parts = [data] if self._size <= self._keep else []
        yield Piece(data, None)


def _may_be_object(beginning: bytes) -> bool:
    return beginning.lstrip()[:1] in {b"{", b""}
