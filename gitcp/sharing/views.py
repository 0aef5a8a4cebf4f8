"""The texts in a text: escapes undone, again and again, and what base64 hides.

A secret that a tool printed lies in a conversation as a JSON string, often one inside
another. Undoing the escapes of the bytes, instead of parsing them, works at any depth,
on records cut off in the middle, and keeps names beside their values.
"""

import base64
import binascii
import codecs
import re
from collections.abc import Iterator

_DEEPEST = 6
_ESCAPE = re.compile(
    rb"\\(?:([\"\\/])|([nrtbf])|((?:u[0-9a-fA-F]{4})(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?))"
)
# A line end that was an escape is no line of the file: lines are counted by `\n`.
_CONTROL = {b"n": b"\r", b"r": b"\r", b"t": b"\t", b"b": b" ", b"f": b"\r"}
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{32,}={0,2}")
# As `base64` and mail have it: full lines, all but the last. Undone, `\n` is `\r` here.
_WRAPPED = re.compile(
    rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{48,128}"
    rb"(?:[\r\n]{1,2}[ \t]*[A-Za-z0-9+/]{4,128}(?![A-Za-z0-9+/]))+={0,2}"
)
_BLANK = b" \t\r\n"
# What colours a terminal, or moves about in it.
_STEERS = re.compile(
    rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]{0,300}(?:\x07|\x1b\\))"
)
_PROBE = 64
_PRINTABLE = frozenset(range(32, 127)) | {9, 10, 13}
_PLAIN = 0.95
_NUL_PROBE = 8_000
_PROBE_WIDE = 512
_FEW = 8
_WIDE = 0.9
_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def is_binary(data: bytes) -> bool:
    """Whether git would call this binary."""
    return b"\0" in data[:_NUL_PROBE]


def text_of(data: bytes) -> bytes:
    """Returns UTF-16 as UTF-8, anything else as it is."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[2:].decode(encoding, "replace").encode("utf-8", "replace")
    probe = data[:_PROBE_WIDE]
    for first, (_, encoding) in zip((1, 0), _MARKS, strict=True):
        # Without a mark, or in the middle of a large file: every other byte is NUL.
        high, low = probe[first::2], probe[1 - first :: 2]
        if len(high) >= _FEW and high.count(0) >= _WIDE * len(high) and 0 not in low:
            return data.decode(encoding, "replace").encode("utf-8", "replace")
    return data


def uncoloured(data: bytes) -> bytes | None:
    """Returns a text without what steers a terminal; None where nothing does."""
    return _STEERS.sub(b"", data) if b"\x1b" in data else None


def unescaped(data: bytes) -> Iterator[bytes]:
    """Yields a text with one layer of escapes undone, then two, while there are any.

    Lines are those of the text given: an escaped line end becomes a carriage return.
    """
    for _ in range(_DEEPEST):
        if b"\\" not in data:
            return
        peeled = _ESCAPE.sub(_undo, data)
        if peeled == data:
            return
        yield peeled
        data = peeled


def _undo(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return match[1]
    if match[2] is not None:
        return _CONTROL[match[2]]
    units = bytes.fromhex(match[3].replace(b"\\u", b"").replace(b"u", b"").decode())
    text = units.decode("utf-16-be", "replace")
    return text.replace("\n", "\r").encode("utf-8", "replace")


def encoded(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields where base64 of a text lies, and the text."""
    at = 0
    for match in _WRAPPED.finditer(data):
        texts = list(_read(match.start(), match[0].translate(None, _BLANK)))
        if texts:
            # By itself a line of it would show the half of something.
            yield from _within(data, at, match.start())
            yield from texts
            at = match.end()
    yield from _within(data, at, len(data))


def wrapped(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields what `encoded` does, of base64 over several lines only."""
    for match in _WRAPPED.finditer(data):
        yield from _read(match.start(), match[0].translate(None, _BLANK))


def _within(data: bytes, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    for match in _BASE64.finditer(data, start, end):
        yield from _read(match.start(), match[0])


def _read(at: int, run: bytes) -> Iterator[tuple[int, bytes]]:
    if _opens_text(run):
        text = _decoded(run)
        if text is not None and _is_text(text):
            yield at, text


def _opens_text(run: bytes) -> bool:
    head = _decoded(run[:_PROBE])
    return head is not None and _is_text(head)


def _decoded(run: bytes) -> bytes | None:
    run = run.rstrip(b"=")
    run = run[: len(run) - (len(run) % 4 == 1)]
    padded = run.translate(bytes.maketrans(b"-_", b"+/")) + b"=" * (-len(run) % 4)
    try:
        return base64.b64decode(padded)
    except (binascii.Error, ValueError):
        return None


def _is_text(data: bytes) -> bool:
    probe = data[:4096]
    plain = sum(byte in _PRINTABLE for byte in probe)
    return bool(probe) and plain >= _PLAIN * len(probe)
