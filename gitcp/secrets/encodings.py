"""Decodes base64, hexadecimal digits and compression in a text, within limits."""

import base64
import binascii
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress

from gitcp.secrets.runs import Letters, Spend, at_places
from gitcp.secrets.text import Text, Words

_CORE = 10
_BASE64 = Letters(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-=", 24
)
# As `base64` and mail write it: all lines but the last are full. An undone `\n` is `\r` here.
# Names of programs are long, too, but have few capitals.
_CAPITAL = re.compile(rb"[A-Z].{0,12}[A-Z]")
_FULL = (40, 128)
_MORE = re.compile(rb"(?:[\r\n]{1,2}[ \t>|]{0,40}[A-Za-z0-9+/]{4,128}+)++={0,2}")
_HEX = re.compile(rb"(?:0x)?((?:[0-9a-fA-F]{2}){16,})")
_LISTED = re.compile(rb"(?:[\\0]x[0-9a-fA-F]{2}[, ]{0,2}){12,4096}+")
# As xxd, hexdump and od print it: an offset, the bytes, perhaps the text.
_DUMP = re.compile(
    rb"(?mi)(?:^|(?<=\r))[0-9a-f]{6,8}:?[ \t]{1,3}"
    rb"((?:[0-9a-f]{2,4} {1,2}){1,16})[^\r\n]{0,24}[\r\n]{0,2}"
)
_BLANK = b" \t\r\n>|"
_BREAKS = frozenset({b"\r", b"\n"})
_DUMPS = Words(b"0000000: ", b"00000000  ", b"0000000 ")
_LISTS = Words(b"0x", b"\\x")
_TEXT = re.compile(rb"[\t\n\r\x1b -~\x80-\xf4]{12,}")
_PRINTED = re.compile(rb"[\t\n\r\x1b -~]{12,}")
_LETTER = b"\t\n\r\x1b" + bytes(range(32, 127))
_SHOWN = Letters(_LETTER, 12)
_NOT_TEXT = bytes({*range(256)} - {*_LETTER} - {*range(0x80, 0xF5)})
_URLSAFE = bytes.maketrans(b"-_", b"+/")
_ALIGNMENTS = 4
_PACKED = (
    b"\x1f\x8b\x08",
    b"PK\x03\x04",
    b"\x78\x01",
    b"\x78\x5e",
    b"\x78\x9c",
    b"\x78\xda",
)
_LOCAL = re.compile(
    rb"PK\x03\x04.{4}(\x00\x00|\x08\x00).{8}(.{4})(.{4})(.{2})(.{2})", re.DOTALL
)
_GZIP = 31
_ZLIB = 15
_RAW = -15
_STEP = 65_536
# Unpacking bytes is so many times as fast as scanning them.
_CHEAPER = 16
# So many bytes that one object unpacks to are scanned, and so many times its own size.
UNPACKED_FREE = 2 * 1024 * 1024
UNPACKED_TIMES = 16
_MOST_MEMBERS = 4_096


def encoded(text: Text) -> Iterator[tuple[int, bytes]]:
    """Yields the decoded base64 and hexadecimal digits of a text, with their places."""
    data = text.data
    behind = tried = 0
    for start, end in _BASE64.runs(data):
        if start < behind or b"\\" in {data[start - 1 : start], data[end : end + 1]}:
            # If an escape ends a line, the text without escapes has all lines.
            continue
        full = _FULL[0] <= end - start <= _FULL[1] and data[end : end + 1] in _BREAKS
        more = _MORE.match(data, end) if full and start >= tried else None
        if more is not None:
            tried = more.end()
            whole = data[start:tried].translate(None, _BLANK)
            texts = list(_read(start, whole))
            if texts:
                # A single line of it would show only a part.
                yield from texts
                behind = tried
                continue
        digits = _HEX.fullmatch(data, start, end)
        if digits is not None:
            yield from _unhexed(start, digits[1])
        elif _CAPITAL.search(data, start, end) is not None:
            yield from _read(start, data[start:end])
    listed = _LISTS.starts(text)
    for match in at_places(_LISTED, data, listed):
        yield from _unhexed(match.start(), re.sub(rb"[\\0]x|[ ,]", b"", match[0]))
    if _DUMPS.found_in(text):
        yield from _dumped(data)


def _read(at: int, run: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the texts that a run of base64 holds, wherever they begin in it.

    The run may begin with other letters, such as the `n` of an escape or a part of a path.
    """
    letters = run.translate(_URLSAFE, b"=")
    for alignment in range(_ALIGNMENTS):
        raw = _decoded(letters[alignment:])
        if raw.startswith(_PACKED):
            yield at, raw
            return
        if len(raw.translate(None, _NOT_TEXT)) < len(raw) // 8:
            continue
        shown = next(_SHOWN.runs(raw), None) is not None
        text = b"\n".join(_TEXT.findall(raw)) if shown else b""
        if len(text) < len(raw) // 8:
            continue
        if text:
            yield at, raw if len(text) == len(raw) else text
            if 4 * len(text) >= 3 * len(raw):
                return
    if b"\0" in (raw := _decoded(letters)):
        yield at, raw


def _decoded(letters: bytes) -> bytes:
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    return base64.b64decode(letters + b"=" * (-len(letters) % 4))


def _unhexed(at: int, digits: bytes) -> Iterator[tuple[int, bytes]]:
    try:
        raw = binascii.unhexlify(digits[: len(digits) // 2 * 2])
    except binascii.Error:
        return
    if _PRINTED.fullmatch(raw) or raw.startswith(_PACKED[:2]):
        yield at, raw


def _dumped(data: bytes) -> Iterator[tuple[int, bytes]]:
    begun, end, digits = 0, -1, b""
    for match in _DUMP.finditer(data):
        if match.start() != end:
            yield from _unhexed(begun, digits) if digits else ()
            begun, digits = match.start(), b""
        digits += match[1].replace(b" ", b"")
        end = match.end()
    if digits:
        yield from _unhexed(begun, digits)


def is_packed(data: bytes) -> bool:
    """Whether bytes are compressed in a form that `unpacked` reads."""
    return data.startswith(_PACKED)


def unpacked(data: bytes, spend: Spend, limit: int) -> Iterator[bytes]:
    """Yields the unpacked content of bytes: gzip, zlib, the members of a zip archive.

    At most `limit` bytes altogether.
    """
    if data.startswith(_PACKED[1]):
        yield from _members(data, spend, limit)
        return
    window = _GZIP if data.startswith(_PACKED[0]) else _ZLIB
    at = 0
    while at < len(data) and limit > 0 and (at == 0 or data.startswith(_PACKED[0], at)):
        text, at = _inflated(data, at, window, spend, limit)
        limit -= len(text)
        yield text


def _members(data: bytes, spend: Spend, limit: int) -> Iterator[bytes]:
    """Yields names and contents of the members of an archive, by their own headers."""
    at = count = 0
    while count < _MOST_MEMBERS and limit > 0:
        head = _LOCAL.search(data, at)
        if head is None:
            return
        count += 1
        name, extra = (int.from_bytes(head[n], "little") for n in (4, 5))
        body = head.end() + name + extra
        yield data[head.end() : head.end() + name]
        size = int.from_bytes(head[2], "little")
        if head[1] == b"\0\0":
            text = data[body : body + min(size, limit)]
            at = body + size
        else:
            text, at = _inflated(data, body, _RAW, spend, limit)
        at = max(at, head.end())
        limit -= len(text)
        yield text


def _inflated(
    data: bytes, start: int, window: int, spend: Spend, limit: int
) -> tuple[bytes, int]:
    """Returns the unpacked content of a stream, and the stream's end."""
    stream = zlib.decompressobj(window)
    pieces: list[bytes] = []
    at = start
    with suppress(zlib.error):
        # Of a truncated stream, the readable part counts.
        while not stream.eof and limit > 0:
            fresh = stream.unconsumed_tail or data[at : at + _STEP]
            if not fresh:
                break
            if not stream.unconsumed_tail:
                at += len(fresh)
                spend(len(fresh))
            piece = stream.decompress(fresh, min(limit, _STEP * 16))
            spend(len(piece) // _CHEAPER)
            limit -= len(piece)
            pieces.append(piece)
    return b"".join(pieces), max(start + 1, at - len(stream.unused_data))


def cores(value: bytes) -> Sequence[bytes]:
    """Returns the base64 of a value at each possible offset in a text.

    Without the letters at each end that depend on the neighbouring bytes.
    """
    found = []
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + value)
        first = (0, 2, 3)[shift]
        last = (0, 3, 2)[(len(value) + shift) % 3]
        core = whole[first : len(whole) - last]
        if len(core) >= _CORE:
            found.append(core)
    return found
