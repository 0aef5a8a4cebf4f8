"""A text that rules search, and the positions of their keywords in it.

There are a hundred words, and a search for one costs the same whether it is there or not. A
pattern that begins with one letter skips to that letter as fast as a search for one word
does. So words with the same first letter are searched for together.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

# The places of two kinds of words.
Places = tuple[list[int], list[int]]


class Text:
    """A text as it is, and in small letters."""

    def __init__(self, data: bytes, source: "Source | None" = None) -> None:
        """`source` is the text that the parts of this one were decoded from."""
        self.data = data
        self.lower = data.lower()
        self.source = source
        self._places: Places | None = None

    def places(self, find: Callable[[], Places]) -> Places:
        """Returns the places that a rule looks for at its first question."""
        if self._places is None:
            self._places = find()
        return self._places


class Source(NamedTuple):
    """A text, and the function from an offset in its decoded parts to an offset in it."""

    text: Text
    place: Callable[[int], int]


class Words:
    """Some words in small letters, to find in a text."""

    def __init__(self, *words: bytes) -> None:
        alike: dict[int, list[bytes]] = {}
        for word in words:
            alike.setdefault(word[0], []).append(word)
        self._alone: list[bytes] = []
        self._patterns: list[re.Pattern[bytes]] = []
        for letter, some in alike.items():
            if len(some) == 1 and letter in _FREQUENT:
                self._alone += some
            else:
                self._patterns.append(re.compile(_pattern(letter, some)))

    def found_in(self, text: Text) -> bool:
        """Whether a text contains any of the words."""
        lower = text.lower
        for word in self._alone:
            if word in lower:
                return True
        return any(pattern.search(lower) for pattern in self._patterns)

    def starts(self, text: Text) -> list[int]:
        """Returns the starts of all the words, in order."""
        lower = text.lower
        starts: list[int] = []
        for pattern in self._patterns:
            starts += [match.start() for match in pattern.finditer(lower)]
        for word in self._alone:
            at = lower.find(word)
            while at >= 0:
                starts.append(at)
                at = lower.find(word, at + 1)
        starts.sort()
        return starts


# A pattern stops so often at these letters that it pays off only for two words or more.
_FREQUENT = b" etrsonaihldcum"


def _pattern(letter: int, words: list[bytes]) -> bytes:
    """Returns a pattern for words with a first letter; it matches the letter or the word."""
    rests = [re.escape(word[1:]) for word in words]
    # If a word contains the letter again, another word may start there.
    again = any(letter in word[1:] for word in words)
    return re.escape(bytes([letter])) + (
        rb"(?=%s)" if again else rb"(?:%s)"
    ) % b"|".join(rests)
