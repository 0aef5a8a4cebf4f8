"""Limits the work spent on one object, and holds the values found in it so far."""

import hashlib
import sys
from typing import Self

from gitcp.secrets import encodings, pem
from gitcp.secrets.tokens import KEY, Token

# The limit for one object, in bytes of all its texts: so many times its size, and so many for
# a small one. Ordinary conversations need up to five times their size.
TIMES = 8
FREE = 4 * 1024 * 1024
# The cost of naming a secret and comparing it with the others, in bytes scanned.
_NAMED = 300
# How many bytes tell a value from others, and are searched for in them: the middle, because
# tokens of one vendor begin alike.
_TELLING = 6


class TooMuchWorkError(Exception):
    """Scanning an object would take longer than its size allows."""


class Budget:
    """The remaining work for one object, and the texts and values seen in it."""

    def __init__(self) -> None:
        self._left = FREE
        self._seen: set[bytes] = set()
        self._values: set[bytes] = set()
        self._telling: dict[bytes, list[bytes]] = {}
        self._keys: set[bytes] = set()
        # The bytes that all compressed parts of the object may still unpack to.
        self.room = encodings.UNPACKED_FREE

    @classmethod
    def unlimited(cls) -> Self:
        """Returns a budget without a limit, for a short text."""
        budget = cls()
        budget.allow(sys.maxsize)
        return budget

    def allow(self, size: int) -> None:
        """Adds the allowance for so many more bytes of the object."""
        self._left += TIMES * size
        self.room += encodings.UNPACKED_TIMES * size

    def spend(self, steps: int) -> None:
        """Counts bytes that are scanned.

        Raises:
            TooMuchWorkError: they exceed the budget.
        """
        self._left -= steps
        if self._left < 0:
            raise TooMuchWorkError

    def is_known(self, match: Token) -> bool:
        """Whether exactly this value was found before."""
        return match.value in self._values

    def note(self, match: Token) -> None:
        """Remembers a found value.

        Raises:
            TooMuchWorkError: there are too many values.
        """
        value = match.value
        self.spend(_NAMED + len(value))
        self._values.add(value)
        self._telling.setdefault(_middle(value), []).append(value)
        if match.rule == KEY:
            self._keys.add(pem.key_letters(value))

    def holds_found(self, match: Token) -> bool:
        """Whether a value is one found before, together with the text beside that."""
        value = match.value
        if match.rule == KEY and pem.key_letters(value) in self._keys:
            # It is the same value with some lines joined.
            return True
        for at in range(len(value) - _TELLING + 1):
            alike = self._telling.get(value[at : at + _TELLING])
            if alike is not None:
                self.spend(_TELLING * len(alike))
                if any(one in value for one in alike):
                    return True
        return False

    def is_new(self, data: bytes) -> bool:
        """Whether this was not scanned before, in another view of the same text."""
        name = hashlib.blake2b(data, digest_size=16).digest()
        new = name not in self._seen
        self._seen.add(name)
        return new


def _middle(value: bytes) -> bytes:
    start = (len(value) - _TELLING) // 2
    return value[max(0, start) : start + _TELLING]
