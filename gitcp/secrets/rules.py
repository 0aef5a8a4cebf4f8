"""Applies all built-in rules to one text.

Each rule returns findings as bytes of the text; the caller decides which texts to scan. If a
value needs nothing beside it (a token's own prefix), its rule aims at precision; other rules
judge the value. All rules take time that is linear in the text.
"""

import re
from collections.abc import Iterator

from gitcp.secrets import assignments, commands, structures
from gitcp.secrets.budget import Budget
from gitcp.secrets.runs import Letters
from gitcp.secrets.shapes import shaped
from gitcp.secrets.text import Text
from gitcp.secrets.tokens import KEY, tokens_in
from gitcp.secrets.tokens import Token as Match

__all__ = ["KEY", "Match", "matches"]

# A run of the letters that tokens are made of may be a token. Most text has no such run.
_RUNS = Letters(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_~.:/+=%$@?&-", 20
)
# A random token is never of small letters alone.
_CHANCE = re.compile(rb"[A-Z\d]")
_DIGIT = re.compile(rb"\d")
_LONG_RUN = 4_096
# The minimum length of a run that may be a key by its length.
_CHECKED = 51


def matches(text: Text, work: Budget) -> Iterator[Match]:
    """Yields the secrets that the built-in rules find in a text."""
    data, spend = text.data, work.spend
    for start, end in _RUNS.runs(data):
        if _CHANCE.search(data, start, end) is None:
            continue
        found = list(tokens_in(data, start, end, spend))
        yield from found
        yield from structures.queries(data, start, end, spend)
        short = end - start <= _LONG_RUN
        if not found and short and _DIGIT.search(data, start, end):
            yield from shaped(data, start, end, spend)
            if end - start >= _CHECKED:
                yield from structures.checked(data, start, end, spend)
    yield from structures.keys(text)
    yield from structures.urls(text, spend)
    yield from structures.headers(text, spend)
    yield from structures.records(text, spend)
    yield from commands.commands(text, spend)
    yield from structures.numbers_and_words(text)
    yield from assignments.assignments(text, work)
