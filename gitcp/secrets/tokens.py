"""Finds tokens of vendors, by the table in `vendors`.

Matching is anchored: a prefix is tried once at each place, the rest is bounded, and the search
continues after the match. So the time is linear in the text.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gitcp.secrets import chance, heuristics, vendors, words
from gitcp.secrets.runs import Spend

KEY = "private-key"

_LONGEST = 4_096
_BEFORE = 84
_DIGEST = re.compile(
    rb"(?:sha-?\d{1,3}|md[45]|blake[23][a-z]{0,2})[=:-][a-z0-9+/_-]{0,64}\Z"
)
_DIGEST_NAME = 80
# The length of the text before a plus sign or slash that is a letter of base64.
_LONG_DATA = 64
_DATA = re.compile(rb"[A-Za-z0-9+/_-]{63}[+/_-]")
# Full lines of base64, as in certificates.
_BLOCK = re.compile(
    rb"(?:[A-Za-z0-9+/]{60,80}[\r\n]{1,2}[ \t]{0,40}){1,4}[A-Za-z0-9+/]{4,80}={0,2}(?![\w+/=:])"
)
_BLOCK_LETTERS = (
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n\t "
)
_NEAR = 170
# The cost of a closer check of one place, in bytes scanned.
_TRIED = 40
_TRIED_AROUND = 100
_BLOCK_TRIED = 1_000
# The keys of a map that has many of one length: addresses, digests, public keys.
_KEY_OF_MAP = re.compile(rb"[\"']([A-Za-z0-9_-]{20,200}={0,2})[\"'] {0,4}:")
_AROUND_KEY = 1_000
_LEAST_KEYS = 8
_BEGINNING = 3
_TABLE_TRIED = 300
_JOINERS = frozenset({b"-", b"_"})


class Token(NamedTuple):
    """A token: its rule, its value, its start."""

    rule: str
    value: bytes
    start: int


def _bounded(pattern: str) -> re.Pattern[bytes]:
    """Returns a pattern in which every repetition has a limit."""
    return re.compile(re.sub(r"(\{\d+),\}", rf"\1,{_LONGEST}}}", pattern).encode())


def trie(words: Sequence[str]) -> str:
    """Returns a pattern for any of some words, the longest first, without many branches."""
    first: dict[str, list[str]] = {}
    for word in words:
        if word:
            first.setdefault(word[0], []).append(word[1:])
    branches = [re.escape(letter) + trie(rest) for letter, rest in first.items()]
    if not branches:
        return ""
    inner = "|".join(branches)
    ends = "" in words
    return (
        f"(?:{inner})" + ("?" if ends else "") if ends or len(branches) > 1 else inner
    )


def _rules() -> dict[bytes, list[tuple[str, re.Pattern[bytes]]]]:
    found: dict[bytes, list[tuple[str, re.Pattern[bytes]]]] = {}
    for name, starts, rest in vendors.PREFIXES:
        pattern = _bounded(rest)
        for start in starts.split():
            found.setdefault(start.encode(), []).append((name, pattern))
    return found


_RULES = _rules()
_BY_LENGTH = sorted({len(start) for start in _RULES}, reverse=True)
_START = re.compile(
    # `%3D` is an equals sign in a URL, not part of a word.
    rb"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2}))"
    + trie(sorted(start.decode() for start in _RULES)).encode()
)
_INFIX = re.compile("|".join(f"({infix})" for _, infix, _ in vendors.INFIXES).encode())
_ANY = re.compile(_START.pattern + b"|" + _INFIX.pattern)
_AROUND = [(name, _bounded(pattern)) for name, _, pattern in vendors.INFIXES]


def tokens_in(data: bytes, start: int, end: int, spend: Spend) -> Iterator[Token]:
    """Yields the tokens in a run of tokens' letters, in any order."""
    if _ANY.search(data, start, end) is None:
        return
    at = start
    while True:
        head = _START.search(data, at, end)
        if head is None:
            break
        spend(_TRIED)
        found = _behind(data, head, end)
        if found is None:
            at = head.start() + 1
            continue
        at = found.start + len(found.value)
        if _is_one(found, head) and _is_whole(data, found, spend):
            yield found
    behind = start
    for infix in _INFIX.finditer(data, start, end):
        if infix.start() < behind:
            continue
        spend(_TRIED_AROUND)
        name, pattern = _AROUND[(infix.lastindex or 1) - 1]
        low = max(start, infix.start() - _BEFORE)
        match = pattern.search(data, low, min(end, infix.end() + 2 * _BEFORE))
        if match is not None and match.end() > infix.start():
            behind = match.end()
            found = Token(name, match[0], match.start())
            if _is_one(found, None) and _is_whole(data, found, spend):
                yield found


def _behind(data: bytes, head: re.Match[bytes], end: int) -> Token | None:
    """Returns the token that starts with a prefix, by the longest form that fits."""
    start = head.start()
    if head[0] == b"eyJ" and data[start - 1 : start] in _JOINERS:
        # It is within a text that was checked from its beginning.
        return None
    for length in _BY_LENGTH:
        if length > len(head[0]):
            continue
        for name, pattern in _RULES.get(head[0][:length], ()):
            tail = pattern.match(data, start + length, end)
            if tail is not None:
                return Token(name, data[start : tail.end()], start)
    return None


def is_digest(data: bytes, start: int) -> bool:
    """Whether a digest starts there, as in a list of files."""
    before = data[max(0, start - _DIGEST_NAME) : start].lower()
    if b"sha" not in before and b"md" not in before and b"blake" not in before:
        return False
    return _DIGEST.search(before) is not None


def _is_whole(data: bytes, found: Token, spend: Spend) -> bool:
    """Whether a token is not a chance match in a digest, a picture or a certificate."""
    start, end = found.start, found.start + len(found.value)
    if is_digest(data, start):
        return False
    if found.rule in vendors.WEAK and is_in_table(data, start, spend):
        return False
    before = data[max(0, start - _LONG_DATA) : start]
    if _DATA.fullmatch(before) and heuristics.irregular(before):
        return False
    if found.value.translate(None, _BLOCK_LETTERS):
        return True
    spend(_BLOCK_TRIED)
    return not any(
        block.start() <= start and end <= block.end()
        for block in _BLOCK.finditer(data, max(0, start - _NEAR), end + _NEAR)
    )


def is_in_table(data: bytes, start: int, spend: Spend) -> bool:
    """Whether one of the many keys of a map, all of one length, holds an offset.

    Tokens of one issuer are of one length, too, but they begin alike.
    """
    spend(_TABLE_TRIED)
    low = max(0, start - _AROUND_KEY)
    keys = [one.span(1) for one in _KEY_OF_MAP.finditer(data, low, start + _AROUND_KEY)]
    own = next((end - at for at, end in keys if at <= start < end), None)
    alike = [data[at : at + _BEGINNING] for at, end in keys if end - at == own]
    return len(alike) >= _LEAST_KEYS and 2 * len(set(alike)) > len(alike)


def _is_one(found: Token, head: re.Match[bytes] | None) -> bool:
    if not heuristics.token(found.value) or found.value.endswith(b"..."):
        return False
    tail = found.value[len(head[0]) if head is not None else 0 :]
    return found.rule not in vendors.WEAK or (
        heuristics.irregular(tail)
        and chance.evidence(tail) >= chance.TOKEN
        and not words.worded(tail)
        # Base64 of small numbers is mostly `A`.
        and tail.count(b"A") < len(tail) / 4
    )
