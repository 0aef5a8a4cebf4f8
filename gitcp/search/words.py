"""Parses a query into words and phrases, and finds them in a text.

A word is a run of letters and digits. Case and accents do not count, and each character of a
script without spaces is a word of its own.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

_QUOTED = re.compile(r'"([^"]*)"?|(\S+?)(?=["\s]|$)')
_WORD = re.compile(r"[^\W_]+")
_PLAIN = re.compile(r"[A-Za-z0-9]+")
# Scripts that are written without spaces between words.
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)
_BETWEEN = r"[\W_]+"
_ROOM = 160
_SPACES = re.compile(r"\s+")
# How many places of one item an excerpt is chosen from.
_LOOKED_AT = 200


def folded(text: str) -> str:
    """Returns a text in the form for comparison: no accents, one case, spaced words."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text)
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    # Compose the decomposed characters again, or Korean would be single sounds.
    return _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFKC", kept).casefold())


class Item(NamedTuple):
    """One word, or several in a row, in the form for comparison.

    `typed` is a part of the item as the user typed it, for comparisons of bytes.
    """

    words: tuple[str, ...]
    typed: str = ""

    @property
    def quoted(self) -> str:
        """The item in the syntax of the index: a string, without operators."""
        return '"' + " ".join(self.words) + '"'

    @property
    def longest(self) -> str:
        """Its longest word."""
        return max(self.words, key=len)

    def pattern(self) -> re.Pattern[str]:
        """Returns a pattern for the item in a `folded` text."""
        inner = _BETWEEN.join(map(re.escape, self.words))
        return re.compile(rf"(?<![^\W_]){inner}(?![^\W_])")


class Excerpt(NamedTuple):
    """A piece of a text on one line, with the start and end of each word in it."""

    text: str
    marks: tuple[tuple[int, int], ...]


class Query:
    """The items to search for; a hit has all of them."""

    def __init__(self, items: tuple[Item, ...]) -> None:
        self.items = items

    @classmethod
    def parse(cls, texts: tuple[str, ...]) -> "Query":
        """Returns the query from the words of a command line; a phrase is in quotes.

        Without any word it has no items, and no text matches it.
        """
        items: dict[tuple[str, ...], Item] = {}
        for phrase, word in _QUOTED.findall(" ".join(texts)):
            text = phrase or word
            words = tuple(_WORD.findall(folded(text)))
            if words:
                typed = _PLAIN.findall(text) or _WORD.findall(text)
                items[words] = Item(words, max(typed, key=len, default=""))
        return cls(tuple(items.values()))

    @cached_property
    def phrase(self) -> Item | None:
        """All items one after the other; None if there is only one."""
        if len(self.items) == 1:
            return None
        return Item(tuple(word for item in self.items for word in item.words))

    @cached_property
    def _patterns(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """The first word of each item, and the item's pattern for a `folded` text."""
        return tuple((item.words[0], item.pattern()) for item in self.items)

    @cached_property
    def _bytes(self) -> tuple[bytes, ...]:
        longest = (item.longest for item in self.items)
        return tuple(word.encode() for word in longest if word.isascii())

    def may_be_in(self, line: bytes) -> bool:
        """Whether a line of JSON may have one of the items.

        A sign that is not ASCII may be any letter with an accent.
        """
        if not line.isascii() or b"\\u" in line:
            return True
        lowered = line.lower()
        return any(word in lowered for word in self._bytes)

    def held(self, text: str) -> int:
        """Returns the items in a text, as bits."""
        plain = folded(text)
        return sum(
            1 << which
            for which, (first, pattern) in enumerate(self._patterns)
            if any(True for _ in _matches(plain, first, pattern))
        )

    def excerpt(self, text: str, room: int = _ROOM) -> Excerpt:
        """Returns the piece of a text with the most items."""
        text = _SPACES.sub(" ", text).strip()
        spans = sorted(self._spans(text))
        start = _start(text, spans, room)
        end = min(len(text), start + room)
        if end < len(text):
            space = text.rfind(" ", start + room // 2, end + 1)
            end = space if space > 0 else end
        before, after = "…" if start else "", "…" if end < len(text) else ""
        marks = tuple(
            (at - start + len(before), min(stop, end) - start + len(before))
            for at, stop, _ in _apart(spans)
            if start <= at < end
        )
        return Excerpt(f"{before}{text[start:end]}{after}", marks)

    def _spans(self, text: str) -> list[tuple[int, int, int]]:
        """Returns the items' places in a text: start, end, and index of the item."""
        plain, places = _with_places(text)
        found = []
        for which, (first, pattern) in enumerate(self._patterns):
            for count, match in enumerate(_matches(plain, first, pattern)):
                if count == _LOOKED_AT:
                    break
                start, end = match.span()
                if places is not None:
                    start, end = places[start], places[end - 1] + 1
                found.append((start, end, which))
        return found


def _matches(
    plain: str, first: str, pattern: re.Pattern[str]
) -> Iterator[re.Match[str]]:
    """Yields the matches of a pattern, as `finditer` does; each begins with `first`.

    Finding a word and then matching around it takes a tenth of the time of a search with a
    pattern that begins with a look around.
    """
    at = plain.find(first)
    while at >= 0:
        match = pattern.match(plain, at)
        if match is not None:
            yield match
        at = plain.find(first, match.end() if match is not None else at + 1)


def _start(text: str, spans: list[tuple[int, int, int]], room: int) -> int:
    """Returns the start of an excerpt: at a word, a little before most of the items."""
    if not spans:
        return 0
    at = max(spans, key=lambda span: (_items_from(spans, span[0], room), -span[0]))[0]
    start = max(0, at - room // 4)
    space = text.find(" ", start, at) if start else -1
    return space + 1 if space >= 0 else start


def _items_from(spans: list[tuple[int, int, int]], start: int, room: int) -> int:
    """Returns the number of items within `room` after a place."""
    return len(
        {which for at, end, which in spans if start <= at and end <= start + room // 2}
    )


def _apart(spans: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Returns the spans that do not overlap the one before."""
    kept: list[tuple[int, int, int]] = []
    for span in spans:
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _with_places(text: str) -> tuple[str, list[int] | None]:
    """Returns a text as `folded` does, with the original place of each character."""
    if text.isascii():
        return text.lower(), None
    parts: list[str] = []
    places: list[int] = []
    for at, char in enumerate(text):
        part = char.lower() if char.isascii() else folded(char)
        parts.append(part)
        places += [at] * len(part)
    return "".join(parts), places
