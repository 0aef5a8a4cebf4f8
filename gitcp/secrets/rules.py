"""What a secret looks like: all built-in rules, applied to one text.

Each says what it found as bytes of the text it looked at; the caller decides which texts
to look at. Precision comes first where nothing is needed beside the value (a token's own
prefix), and judgement where it is. All rules take time that is linear in the text.
"""

import re
from collections.abc import Iterator

from gitcp.secrets import assignments, commands, structures
from gitcp.secrets.shapes import shaped
from gitcp.secrets.structures import KEY
from gitcp.secrets.tokens import Token as Match
from gitcp.secrets.tokens import tokens_in

__all__ = ["KEY", "Match", "matches"]

# What may be a token: a run of what they are made of. Most text has none. The rest of a
# text is blanked first, as a run is found three times as fast then.
_LETTERS = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_~.:/+=%$@?&-"
)
_BLANKED = bytes(byte if byte in _LETTERS else 32 for byte in range(256))
_RUN = re.compile(rb"[^ ]{20,}")
_DIGIT = re.compile(rb"\d")
_LONG_RUN = 4_096
# How long a run is at least that may be a key by its length.
_CHECKED = 51


def matches(data: bytes) -> Iterator[Match]:
    """Yields the secrets that the built-in rules see in a text."""
    for run in _RUN.finditer(data.translate(_BLANKED)):
        start, end = run.span()
        found = list(tokens_in(data, start, end))
        yield from found
        short = end - start <= _LONG_RUN
        if not found and short and _DIGIT.search(data, start, end):
            yield from shaped(data, start, end)
            if end - start >= _CHECKED:
                yield from structures.checked(data, start, end)
    lower = data.lower()
    yield from structures.keys(data)
    yield from structures.urls(data)
    yield from structures.headers(data, lower)
    yield from structures.records(data, lower)
    yield from commands.commands(data, lower)
    yield from structures.numbers_and_words(data, lower)
    yield from assignments.assignments(data, lower)
