"""A text that rules look through, and where their words stand in it.

To look for a word costs the same whether it is there or not, and there are a hundred. So a
word is looked for once for all rules, and one that holds another only where that stands.
"""

from collections.abc import Iterable

# Words, or parts of words, that several others hold.
_PARTS = (
    *(b"auth", b"pass", b"key", b"seed", b"secret", b"crypt", b"bip", b":543"),
    *(b"private", b"pw"),
)


class Text:
    """A text as it is, and in small letters."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lower = data.lower()
        self._found: dict[bytes, list[int]] = {}

    def holds(self, words: Iterable[bytes]) -> bool:
        """Whether any of some words in small letters stands in the text."""
        for word in words:
            found = self._found.get(word)
            if found or (found is None and self._can_hold(word) and word in self.lower):
                return True
        return False

    def starts(self, words: Iterable[bytes]) -> list[int]:
        """Returns where any of some words in small letters starts, in order."""
        starts: list[int] = []
        for word in words:
            found = self._found.get(word)
            if found is None:
                found = self._search(word)
            starts += found
        return sorted(set(starts)) if starts else starts

    def _search(self, word: bytes) -> list[int]:
        found = self._found[word] = []
        if self._can_hold(word):
            at = self.lower.find(word)
            while at >= 0:
                found.append(at)
                at = self.lower.find(word, at + 1)
        return found

    def _can_hold(self, word: bytes) -> bool:
        if word not in _PART_OF:
            _PART_OF[word] = next((part for part in _PARTS if part in word), word)
        part = _PART_OF[word]
        if part == word:
            return True
        found = self._found.get(part)
        return bool(self._search(part) if found is None else found)


_PART_OF: dict[bytes, bytes] = {}
