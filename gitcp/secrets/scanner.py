"""Scans one object for secrets: every decoded text, every rule, by line."""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from gitcp.secrets import (
    decoding,
    dotenv,
    encodings,
    heuristics,
    pem,
    rules,
    well_known,
)
from gitcp.secrets.budget import Budget, TooMuchWorkError
from gitcp.secrets.library import Library
from gitcp.secrets.text import Source, Text

# Increased whenever a rule changes, so that objects found clean before are scanned again.
VERSION = 27
_WINDOW = 4 * 1024 * 1024
_OVERLAP = 64 * 1024
_FINGERPRINT = 12
# For instance a file of credentials in base64, in a file of secrets in base64, in an archive.
_DEEPEST = 3
UNREAD = "not-looked-through"

Extra = Callable[[bytes], Iterable[rules.Match]]


class Hit(NamedTuple):
    """A secret in an object: its place, and its rule. The value never leaves this module."""

    rule: str
    fingerprint: str
    line: int
    value: bytes


class Fingerprints:
    """Names for values; without the key, a name reveals nothing about its value."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, value: bytes) -> str:
        """Returns the name of a value: the same at every place and in every notation."""
        if b"\n" in value or b"\r" in value:
            # The line ends and indents of a key differ from place to place.
            value = pem.key_letters(value) or value
        return hmac.digest(self._key, value, "sha256").hex()[:_FINGERPRINT]


class Scanner:
    """The built-in rules, values known to be secrets, and a scanner library if installed."""

    def __init__(
        self,
        fingerprints: Fingerprints,
        known: Mapping[bytes, str] | None = None,
        *,
        environment: Iterable[bytes] = (),
        extra: Extra | None = None,
        extra_version: str = "",
    ) -> None:
        self._fingerprints = fingerprints
        self._needles = dotenv.needles({*(known or {}), *environment})
        self._extra = extra
        digest = hashlib.sha256(f"{VERSION} {extra_version}".encode())
        for needle in sorted(self._needles):
            digest.update(b"%d " % len(needle) + needle)
        self.identity = digest.hexdigest()

    @property
    def can_fork(self) -> bool:
        """Whether a forked process can scan."""
        return not isinstance(self._extra, Library) or self._extra.can_fork

    def begin(self) -> None:
        """Starts to load the modules of a scan, while the caller does other work."""
        if isinstance(self._extra, Library):
            self._extra.begin()

    def prepare(self) -> None:
        """Loads the modules of a scan before a fork."""
        if isinstance(self._extra, Library):
            self._extra.prepare()

    @staticmethod
    def stands_alone(text: bytes, path: bytes) -> bool:
        """Whether scanning a text together with others would read it differently."""
        return (
            b"\0" in text
            or encodings.is_packed(text)
            or decoding.is_marked(text)
            or dotenv.is_dotenv(path)
        )

    def scan(self, chunks: Iterable[bytes], path: bytes = b"") -> list[Hit]:
        """Returns the secrets in an object of any size, each value once.

        `path` is the object's path: in an `.env` file every secret-looking value counts.
        """
        found: dict[tuple[str, int], Hit] = {}
        work = Budget()
        digest = hashlib.sha256()
        try:
            for data, lines_before in _windows(chunks):
                digest.update(data)
                work.allow(len(data))
                for match, line in self._window(data, path, work):
                    if work.is_known(match):
                        continue
                    work.note(match)
                    # A key has one name in every notation, but each notation is needed.
                    name = self._fingerprints.of(match.value)
                    hit = Hit(match.rule, name, lines_before + line, match.value)
                    found.setdefault((name, hit.line), hit)
        except TooMuchWorkError:
            name = self._fingerprints.of(b"unread " + digest.digest())
            found[name, 1] = Hit(UNREAD, name, 1, b"")
        return sorted(found.values(), key=lambda hit: hit.line)

    def _window(
        self, data: bytes, path: bytes, work: Budget
    ) -> Iterator[tuple[rules.Match, int]]:
        if encodings.is_packed(data):
            for match, _ in self._unpacked(data, _DEEPEST, work):
                yield match, 1
        data = decoding.text_of(data)
        if dotenv.is_dotenv(path):
            lines = _Lines(data)
            for value, at in dotenv.values(data):
                yield rules.Match("env-file", value, at), lines.of(at)
        yield from self._all(data, _DEEPEST, work)

    def _all(
        self, data: bytes, depth: int, work: Budget
    ) -> Iterator[tuple[rules.Match, int]]:
        """Yields the secrets in a text, as it is, escaped, coloured, respelled or encoded.

        `depth` is how many more nested encodings to decode.
        """
        for view in chain([data], decoding.unescaped(data)):
            plain = decoding.uncoloured(view)
            steady = pem.without_certificates(view if plain is None else plain)
            text = Text(steady)
            yield from self._text(text, work)
            if plain is not None:
                yield from self._beyond(Text(view), work)
            parts = decoding.respelled(steady, work.spend)
            lines = _Lines(steady)
            if parts is not None:
                joined = Text(parts.text, Source(text, parts.place))
                for match, _ in self._beyond(joined, work):
                    yield match, lines.of(parts.place(match.start))
            for at, raw in encodings.encoded(text) if depth else ():
                if not work.is_new(raw):
                    continue
                if encodings.is_packed(raw):
                    hidden = self._unpacked(raw, depth - 1, work)
                else:
                    hidden = self._all(decoding.text_of(raw), depth - 1, work)
                for match, _ in hidden:
                    yield match, lines.of(at)

    def _beyond(self, text: Text, work: Budget) -> Iterator[tuple[rules.Match, int]]:
        """Yields the secrets in a text, except those that contain a value found before.

        Such a secret is a value with the text beside it, which form one word only in this view.
        """
        for match, line in self._text(text, work):
            if not work.holds_found(match):
                yield match, line

    def _unpacked(
        self, data: bytes, depth: int, work: Budget
    ) -> Iterator[tuple[rules.Match, int]]:
        for raw in encodings.unpacked(data, work.spend, work.room):
            work.room -= len(raw)
            if encodings.is_packed(raw) and depth:
                yield from self._unpacked(raw, depth - 1, work)
            elif raw:
                yield from self._all(decoding.text_of(raw), max(0, depth - 1), work)

    def _text(self, text: Text, work: Budget) -> Iterator[tuple[rules.Match, int]]:
        data = text.data
        work.spend(len(data))
        lines = _Lines(data)
        for needle, value in self._needles.items():
            at = data.find(needle)
            if at >= 0:
                yield rules.Match("env-value", value, at), lines.of(at)
        spans: list[tuple[int, int]] = []
        for match in rules.matches(text, work):
            if well_known.published(match.value):
                continue
            spans.append((match.start, match.start + len(match.value)))
            yield match, lines.of(match.start)
        if self._extra is None:
            return
        for match in self._extra(data):
            end = match.start + len(match.value)
            # It is one secret, found twice: by its form, and with the text around it.
            if any(one < end and match.start < other for one, other in spans):
                continue
            if next(decoding.unescaped(match.value), None) is not None:
                # A text with escapes is not the value itself; the next view has the value.
                continue
            if not heuristics.placeholder(match.value):
                yield match, lines.of(match.start)


class _Lines:
    """Line numbers for places that are near each other, or nearly in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._line = 1

    def of(self, at: int) -> int:
        """Returns the number of the line that holds an offset, from 1."""
        if at < self._at:
            self._line -= self._data.count(b"\n", at, self._at)
        else:
            self._line += self._data.count(b"\n", self._at, at)
        self._at = at
        return self._line


def _windows(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yields an object in overlapping pieces, with the number of lines before each."""
    held = bytearray()
    lines = 0
    fresh = False
    for chunk in chunks:
        held += chunk
        fresh = True
        while len(held) >= _WINDOW + _OVERLAP:
            piece = bytes(held[:_WINDOW])
            yield piece, lines
            lines += piece.count(b"\n", 0, _WINDOW - _OVERLAP)
            del held[: _WINDOW - _OVERLAP]
    if held and fresh:
        yield bytes(held), lines
