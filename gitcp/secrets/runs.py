"""Finds runs of one class of characters, and words, faster than a pattern can.

A pattern reads every byte. `bytes.find` skips most bytes, and `translate` maps all letters of
a class to one letter, so that a run of the class is a word to find.
"""

import re
from collections.abc import Callable, Iterable, Iterator

# Called with the number of bytes that a step of work scans; raises if there are too many.
Spend = Callable[[int], None]
_IN, _OUT = b"a", b" "


class Letters:
    """A class of letters, to find runs of."""

    def __init__(self, letters: bytes, least: int) -> None:
        """`least` is the minimum length of a run."""
        inside = frozenset(letters)
        self._table = bytes(
            _IN[0] if byte in inside else _OUT[0] for byte in range(256)
        )
        self._run = _IN * least

    def runs(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yields the start and end of each run of the letters."""
        sorts = data.translate(self._table)
        start = sorts.find(self._run)
        while start >= 0:
            end = sorts.find(_OUT, start + len(self._run))
            if end < 0:
                yield start, len(data)
                return
            yield start, end
            start = sorts.find(self._run, end)


def places(data: bytes, words: Iterable[bytes]) -> Iterator[int]:
    """Yields the starts of some words, word by word."""
    for word in words:
        at = data.find(word)
        while at >= 0:
            yield at
            at = data.find(word, at + 1)


def at_places(
    pattern: re.Pattern[bytes], data: bytes, starts: Iterable[int]
) -> Iterator[re.Match[bytes]]:
    """Yields the matches that start at some places, each after the end of the one before."""
    behind = 0
    for at in starts:
        match = pattern.match(data, at) if at >= behind else None
        if match is not None:
            behind = match.end()
            yield match
