"""Redacts a value in bytes, in every encoding that it may have there."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from gitcp.format import jsontext
from gitcp.secrets.encodings import cores

# Shorter values would occur by chance in other words.
SHORTEST = 4
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_RUN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_PADDING = ord("=")
_NEWLINE = ord("\n")
_STRAY = re.compile(rb"\\+(?=\[purged:)")
_LINE_END = rb"(?:[ \t]*(?:\r?\n|\r|\\+[nr])[ \t]*)+"
# What may stand between two characters of a value: a colour, from a tool that highlights a
# match, or a line break, if a long line was wrapped.
_STEER = (
    rb"(?:(?:\x1b|\\+u001[bB])(?:\[[0-9;:?]*[A-Za-z]|[ -/]{1,4}[0-~]|[0-9=>A-Z])"
    rb"|\\*(?:\r?\n|\\[nr])[ \t]{0,40})*"
)
# A line break within base64.
_BREAK = rb"(?:(?:[\r\n]|\\+[nr]){1,2}[ \t]*)?"
_DEEPEST = 6
# Parts of a pattern, of which each is a character of a value.
_HEAD = 60
_HEX = frozenset("0123456789abcdefABCDEF")
# A value does not begin with the last digits of an escape.
_NOT_IN_ESCAPE = b"".join(
    rb"(?<!\\u%b)" % (b"[0-9a-fA-F]" * count) for count in range(4)
)
_ASCII = 128
_BASIC = 0x10000


class _Pattern:
    """A pattern of many parts, which is compiled once the first of them have been found.

    To compile one for a private key takes a third of a second, and most encodings of a value
    occur nowhere.
    """

    def __init__(
        self, parts: Sequence[bytes], between: bytes = b"", before: bytes = b""
    ) -> None:
        self._source = before + between.join(parts)
        self._head = re.compile(before + between.join(parts[:_HEAD]))

    def found_in(self, data: bytes) -> bool:
        """Whether the bytes contain a match."""
        return next(self.matches(data), None) is not None

    def matches(self, data: bytes) -> Iterator[re.Match[bytes]]:
        """Yields the matches, from left to right."""
        if self._head.search(data) is not None:
            yield from self._whole.finditer(data)

    def replaced(self, data: bytes, marker: bytes) -> bytes:
        """Returns the bytes with a marker in place of each match."""
        if self._head.search(data) is None:
            return data
        return self._whole.sub(marker, data)

    @cached_property
    def _whole(self) -> re.Pattern[bytes]:
        return re.compile(self._source)


class _Rule(NamedTuple):
    """An encoding of a value; for base64, the whole `run` around it is removed."""

    pattern: _Pattern
    marker: bytes
    run: bool = False


class Eraser:
    """Replaces values by markers that name them by their fingerprints."""

    def __init__(self, values: Iterable[tuple[bytes, str]]) -> None:
        """`values` are pairs of a value and its fingerprint."""
        self._rules: list[_Rule] = []
        self._numbers: list[tuple[re.Pattern[bytes], bytes]] = []
        for value, fingerprint in sorted(values, key=lambda one: -len(one[0])):
            marker = f"[purged:{fingerprint}]"
            self._rules += _forms(value, marker)
            if _NUMBER.fullmatch(value):
                bare = rb"(?<![\"\w.])%b(?![\"\w.])" % re.escape(value)
                self._numbers.append((re.compile(bare), json.dumps(marker).encode()))

    def holds(self, data: bytes) -> bool:
        """Whether the bytes contain one of the values."""
        return any(rule.pattern.found_in(data) for rule in self._rules)

    def erased(self, data: bytes) -> bytes:
        """Returns the bytes without the values."""
        for rule in self._rules:
            # A marker has no backslash, which would be special in a replacement.
            replace = _without_runs if rule.run else _without
            data = replace(data, rule)
        return data

    def covered(self, data: bytes) -> bytes:
        """Returns the bytes with each value overwritten by as many other bytes.

        For data that contains its own lengths; line ends stay. In base64, only the part that
        certainly belongs to the value is overwritten: bytes next to it may be a length.
        """
        for rule in self._rules:
            pieces = []
            at = 0
            for start, end in _spans(data, rule._replace(run=False)):
                pieces += [data[at:start], _cover(data[start:end], rule.marker)]
                at = end
            data = b"".join([*pieces, data[at:]]) if pieces else data
        return data

    def records(self, data: bytes) -> bytes:
        """Returns lines of JSON without the values; valid JSON stays valid."""
        if self.erased(data) == data:
            return data
        # Once more, for values that span lines that are not JSON.
        return self.erased(b"".join(map(self._record, data.splitlines(keepends=True))))

    def _record(self, line: bytes) -> bytes:
        erased = self.erased(line)
        if erased == line or not _is_json(line) or _is_json(erased):
            return erased
        # The value was a JSON number: replace it by a string.
        for pattern, quoted in self._numbers:
            line = pattern.sub(quoted, line)
        erased = self.erased(line)
        # Or it began like an escape, and the backslash before it is now stray.
        return erased if _is_json(erased) else _STRAY.sub(b"", erased)


def _forms(value: bytes, marker: str) -> Iterator[_Rule]:
    """Yields the rules for a value as it is, escaped at any depth, or encoded."""
    narrow = marker.encode()
    yield _Rule(_escaped(value), narrow)
    quoted = quote_from_bytes(value, safe="").encode()
    if quoted != value:
        yield _Rule(_Pattern([re.escape(quoted)]), narrow)
    for core in cores(value):
        yield _Rule(_either(core), narrow, run=True)
        for twice in cores(core):
            yield _Rule(_either(twice), narrow, run=True)
    for encoding in ("utf-16-le", "utf-16-be"):
        wide = value.decode("utf-8", "replace").encode(encoding)
        yield _Rule(_Pattern([re.escape(wide)]), marker.encode(encoding))


def _without(data: bytes, rule: _Rule) -> bytes:
    return rule.pattern.replaced(data, rule.marker)


def _without_runs(data: bytes, rule: _Rule) -> bytes:
    """Returns bytes without the whole runs of base64 that hold a value."""
    pieces = []
    at = 0
    for start, end in _spans(data, rule):
        pieces += [data[at:start], rule.marker]
        at = end
    return b"".join([*pieces, data[at:]]) if pieces else data


def _spans(data: bytes, rule: _Rule) -> Iterator[tuple[int, int]]:
    """Yields the spans of a value; for base64, of the whole run."""
    at = 0
    for match in rule.pattern.matches(data):
        if match.start() < at:
            continue
        start, end = match.span()
        while rule.run and start > at and data[start - 1] in _RUN:
            start -= 1
        while rule.run and end < len(data) and data[end] in _RUN:
            end += 1
        while rule.run and end < len(data) and data[end] == _PADDING:
            end += 1
        yield start, end
        at = end


def _cover(taken: bytes, marker: bytes) -> bytes:
    made = marker * (len(taken) // len(marker) + 1)
    pairs = zip(taken, made, strict=False)
    return bytes(old if old == _NEWLINE else new for old, new in pairs)


def _is_json(line: bytes) -> bool:
    try:
        jsontext.decode(line)
    except ValueError:
        return False
    return True


def _either(core: bytes) -> _Pattern:
    either = {ord("+"): b"[+-]", ord("/"): b"[/_]"}
    return _Pattern([either.get(one, bytes([one])) for one in core], _BREAK)


def _escaped(value: bytes) -> _Pattern:
    text = value.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    text = text.replace("\r", "\n").strip("\n")
    inside = _NOT_IN_ESCAPE if text[:1] in _HEX else b""
    parts = [
        _backslashes(len(part)) if part.startswith("\\") else _character(part)
        for part in re.findall(r"\\+|[^\\]", text)
    ]
    return _Pattern(parts, _STEER, before=inside)


def _backslashes(count: int) -> bytes:
    """Returns a pattern for so many backslashes, doubled at each depth, and no more.

    The next character may have a backslash of its own, such as the quote that ends a string.
    """
    depths = range(_DEEPEST, -1, -1)
    return b"(?:%b)" % b"|".join(rb"\\{%d}" % (count << depth) for depth in depths)


def _character(char: str) -> bytes:
    if char.isascii() and char.isalnum():
        return char.encode()
    if char == "\n":
        return _LINE_END
    if char == "\t":
        return rb"(?:\t|\\+t)"
    code = ord(char)
    itself = re.escape(char.encode("utf-8", "surrogateescape"))
    if code < _ASCII:
        # As a \u escape, as some JSON writers have it, or after a backslash, as in a shell.
        return rb"(?:\\*%b|\\+u00(?i:%02x))" % (itself, code)
    if code >= _BASIC:
        pair = char.encode("utf-16-be").hex()
        return rb"(?:%b|\\+u(?i:%b)\\+u(?i:%b))" % (
            itself,
            pair[:4].encode(),
            pair[4:].encode(),
        )
    return rb"(?:%b|\\+u(?i:%04x))" % (itself, code)
