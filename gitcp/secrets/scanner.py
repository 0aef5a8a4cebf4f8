"""Scans one object for secrets: every decoded text, every rule, by line."""

import functools
import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from gitcp.secrets import decoding, dotenv, encodings, heuristics, rules

# Raised whenever a rule changes: what was found clean before is looked at again.
VERSION = 7
_WINDOW = 4 * 1024 * 1024
_OVERLAP = 64 * 1024
_FINGERPRINT = 12
# A file of credentials in base64, in one of secrets in base64, in an archive.
_DEEPEST = 3
# What may be looked at for one object: so many times its size, in all its texts. Ordinary
# conversations need up to five times as much as they hold.
_TIMES = 24
_FREE = 64 * 1024 * 1024
# What comparing two values costs, in bytes looked at.
_COMPARED = 8
UNREAD = "not-looked-through"

Extra = Callable[[bytes], Iterable[rules.Match]]


class Hit(NamedTuple):
    """A secret in an object: where, and by which rule. The value never leaves here."""

    rule: str
    fingerprint: str
    line: int
    value: bytes


class Fingerprints:
    """Names for values that tell nothing about them to who has not the key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, value: bytes) -> str:
        """Returns the name of a value: the same wherever and however it is written."""
        if b"\n" in value or b"\r" in value:
            # A key, whose line ends and indents differ from place to place.
            value = heuristics.key_letters(value) or value
        return hmac.digest(self._key, value, "sha256").hex()[:_FINGERPRINT]


class Scanner:
    """The built-in layer, values known for sure, and a scanner library if there is one."""

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

    def scan(self, chunks: Iterable[bytes], path: bytes = b"") -> list[Hit]:
        """Returns the secrets in an object of any size, each value once.

        `path` is where it lies: in an `.env` file every secret-looking value counts.
        """
        found: dict[tuple[str, int], Hit] = {}
        work = _Work()
        digest = hashlib.sha256()
        try:
            for data, lines_before in _windows(chunks):
                digest.update(data)
                work.allow(len(data))
                for match, line in self._window(data, path, work):
                    if match.value in work.values:
                        continue
                    work.note(match)
                    # A key has one name however it is written; each writing is needed.
                    name = self._fingerprints.of(match.value)
                    hit = Hit(match.rule, name, lines_before + line, match.value)
                    found.setdefault((name, hit.line), hit)
        except _TooMuchError:
            name = self._fingerprints.of(b"unread " + digest.digest())
            found[name, 1] = Hit(UNREAD, name, 1, b"")
        return sorted(found.values(), key=lambda hit: hit.line)

    def _window(
        self, data: bytes, path: bytes, work: "_Work"
    ) -> Iterator[tuple[rules.Match, int]]:
        if encodings.is_packed(data):
            for match, _ in self._unpacked(data, _DEEPEST, work):
                yield match, 1
        data = decoding.text_of(data)
        if dotenv.is_dotenv(path):
            for value, at in dotenv.values(data):
                yield rules.Match("env-file", value, at), _line(data, at)
        yield from self._all(data, _DEEPEST, work)

    def _all(
        self, data: bytes, depth: int, work: "_Work"
    ) -> Iterator[tuple[rules.Match, int]]:
        """Yields what a text holds as it is, escaped, coloured, respelled or encoded.

        `depth` is how many encodings may still lie in each other.
        """
        for view in chain([data], decoding.unescaped(data)):
            plain = decoding.uncoloured(view)
            steady = view if plain is None else plain
            yield from self._text(steady, work)
            if plain is not None:
                yield from self._beyond(view, work)
            parts = decoding.respelled(steady)
            if parts is not None:
                for match, _ in self._beyond(parts.text, work):
                    yield match, _line(steady, parts.place(match.start))
            for at, raw in encodings.encoded(steady) if depth else ():
                if not work.is_new(raw):
                    continue
                if encodings.is_packed(raw):
                    hidden = self._unpacked(raw, depth - 1, work)
                else:
                    hidden = self._all(decoding.text_of(raw), depth - 1, work)
                for match, _ in hidden:
                    yield match, _line(steady, at)

    def _beyond(self, data: bytes, work: "_Work") -> Iterator[tuple[rules.Match, int]]:
        """Yields what a text holds but what holds a value that was found already.

        That is a value and what stands beside it, which are one word only here.
        """
        for match, line in self._text(data, work):
            work.spend(_COMPARED * len(work.values))
            if any(value in match.value for value in work.values):
                continue
            if match.rule == rules.KEY and work.has_key(match.value):
                # With some of its lines joined.
                continue
            yield match, line

    def _unpacked(
        self, data: bytes, depth: int, work: "_Work"
    ) -> Iterator[tuple[rules.Match, int]]:
        for raw in encodings.unpacked(data, work.spend, work.room):
            work.room -= len(raw)
            if encodings.is_packed(raw) and depth:
                yield from self._unpacked(raw, depth - 1, work)
            elif raw:
                yield from self._all(decoding.text_of(raw), max(0, depth - 1), work)

    def _text(self, data: bytes, work: "_Work") -> Iterator[tuple[rules.Match, int]]:
        work.spend(len(data))
        lines = _Lines(data)
        for needle, value in self._needles.items():
            at = data.find(needle)
            if at >= 0:
                yield rules.Match("env-value", value, at), lines.of(at)
        spans: list[tuple[int, int]] = []
        for match in rules.matches(data):
            spans.append((match.start, match.start + len(match.value)))
            yield match, lines.of(match.start)
        if self._extra is None:
            return
        for match in self._extra(data):
            end = match.start + len(match.value)
            # One secret, seen twice: by its form here, with what surrounds it there.
            if any(one < end and match.start < other for one, other in spans):
                continue
            if next(decoding.unescaped(match.value), None) is not None:
                # With escapes in it, it is not the value: the next view has that.
                continue
            if not heuristics.placeholder(match.value):
                yield match, lines.of(match.start)


class _TooMuchError(Exception):
    """An object would take longer to look through than its size is worth."""


class _Work:
    """The budget for scanning one object, and the texts scanned already."""

    def __init__(self) -> None:
        self._left = _FREE
        self._seen: set[bytes] = set()
        self.values: set[bytes] = set()
        self._keys: set[bytes] = set()
        # What all that is compressed in the object may still unpack to.
        self.room = encodings.UNPACKED_FREE

    def allow(self, size: int) -> None:
        """Adds what so many more bytes of the object are worth."""
        self._left += _TIMES * size
        self.room += encodings.UNPACKED_TIMES * size

    def spend(self, steps: int) -> None:
        """Counts bytes that are looked at.

        Raises:
            _TooMuchError: these are too many.
        """
        self._left -= steps
        if self._left < 0:
            raise _TooMuchError

    def note(self, match: rules.Match) -> None:
        """Remembers a value that was found."""
        self.values.add(match.value)
        if match.rule == rules.KEY:
            self._keys.add(heuristics.key_letters(match.value))

    def has_key(self, value: bytes) -> bool:
        """Whether a key was found already, in its own lines or in others."""
        return heuristics.key_letters(value) in self._keys

    def is_new(self, data: bytes) -> bool:
        """Whether this was not looked at before, in another view of the same text."""
        name = hashlib.blake2b(data, digest_size=16).digest()
        if name in self._seen:
            return False
        self._seen.add(name)
        return True


class _Lines:
    """Numbers of lines, for places that come in order, or nearly so."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._line = 1

    def of(self, at: int) -> int:
        """Returns the number of the line that an offset is in, from 1."""
        if at < self._at:
            self._at, self._line = 0, 1
        self._line += self._data.count(b"\n", self._at, at)
        self._at = at
        return self._line


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _windows(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yields an object in pieces that overlap, with the number of lines before each."""
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


@functools.cache
def library(rules_dir: Path | None = None) -> tuple[Extra, str] | None:
    """Returns the scanner library of the extra `gitcp[secrets]`, and its version.

    To compile its rules takes ten times as long as to load them. The library keeps them in
    the user's cache directory; where there is none that it trusts (no HOME, as in a
    service), `rules_dir` is for them, from the next time on.
    """
    try:
        import kingfisher_sdk  # noqa: PLC0415  optional, and slow to load
    except ImportError:
        return None
    from importlib.metadata import version  # noqa: PLC0415

    own = rules_dir if rules_dir is not None and rules_dir.is_dir() else None
    compiled = kingfisher_sdk.Rules(cache_dir=own)
    if rules_dir is not None and own is None and compiled.cache_status == "bypassed":
        with suppress(OSError):
            rules_dir.mkdir(mode=0o700, parents=True)
    scanner = kingfisher_sdk.Scanner(compiled)

    def scan(data: bytes) -> Iterator[rules.Match]:
        text = data.replace(b"\r", b"\n")
        for finding in scanner.scan(text):
            if not finding.visible:
                continue
            value = finding.secret.encode("utf-8", "surrogateescape")
            at = text.find(value)
            # What the library decoded by itself is a view of its own here.
            if at >= 0:
                yield rules.Match(finding.rule_id, value, at)

    return scan, f"kingfisher {version('kingfisher-secret-scanner')}"
