"""Decodes a text for scanning: undoes layers of escapes, and strips terminal codes.

A secret that a tool printed is in a conversation as a JSON string, often one inside another.
Undoing the escapes of the bytes, instead of parsing them, works at any depth and on
incomplete records, and keeps names beside their values.
"""

import bisect
import codecs
import html
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from gitcp.secrets import heuristics, words
from gitcp.secrets.runs import Spend, at_places, places

_DEEPEST = 6
_ESCAPE = re.compile(
    rb"\\(?:([\"\\/'`])|([nrtbfve])|((?:u[0-9a-fA-F]{4})"
    rb"(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?)"
    rb"|x([0-9a-fA-F]{2})|0?(33)(?=[\[\](]))"
)
_UNTOUCHED = re.compile(rb"(?<![^\r\n])[^\\\r\n]{1,100000}+(?![^\r\n])")
# A program of one line has few escapes. Of the text between two, so much at each end is kept.
_FAR = re.compile(rb"(?<![^\\\r\n])[^\\\r\n]{16384,}+")
_KEPT = 4_096
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-="
_BASE64_RUN = re.compile(rb"[\w+/=-]*+", re.ASCII)
# A line end that was an escape is not a line of the file: lines are counted by `\n`.
_CONTROL = {
    b"n": b"\r",
    b"r": b"\r",
    b"t": b"\t",
    b"b": b" ",
    b"f": b"\r",
    b"v": b"\r",
    b"e": b"\x1b",
}
# Sequences that colour a terminal, move in it or switch its letters: ISO 2022 and ECMA-48, in
# seven and eight bits, and the latter as UTF-8; and overstruck letters.
_STEERS = re.compile(
    rb"(?:\x1b\[|\xc2\x9b|(?<![\x80-\xff])\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    rb"|(?:\x1b\]|\xc2\x9d)[^\x07\x1b\x9c]{0,300}(?:\x07|\x1b\\|\xc2\x9c|\x9c)"
    rb"|\x1b[PX^_][^\x07\x1b]{0,300}(?:\x07|\x1b\\)"
    rb"|\x1b[ -/]{1,4}[0-~]|\x1b[0-Z\\^-~]"
    rb"|[^\r\n\x08]\x08|[\x0e\x0f\x07\x7f]"
)
_STEERING = b"\x1b\x9b\x08\x0e\x0f\x07\x7f"
_PROBE_WIDE = 512
_FEW = 8
_WIDE = 0.9
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# For text without a mark: the encoding, the bytes of a letter, and which of them is not NUL.
_WIDTHS = (
    ("utf-32-le", 4, 0),
    ("utf-32-be", 4, 3),
    ("utf-16-le", 2, 0),
    ("utf-16-be", 2, 1),
)
# Bytes that no text contains end words, as a line's end does.
_UNWRITTEN = bytes(
    13 if byte < 32 and byte not in b"\t\n\r\x07\x08\x0e\x0f\x1b" else byte  # noqa: PLR2004
    for byte in range(256)
)
_PERCENT = re.compile(rb"%[0-9A-Fa-f]{2}")
_ENTITY = re.compile(rb"&(?:#\d{2,6}|#x[0-9a-fA-F]{2,5}|quot|amp|apos|lt|gt|nbsp);")
_WORD_ENDS = b" \t\r\n\"'<>`|\\"
_LINE_ENDS = b"\r\n"
# Where a line continues in the next: by a shell's backslash or mail's equals sign, in a
# string that is joined from two, or because the line was full.
_CONTINUED = re.compile(
    rb"\\[ \t]{0,4}(?:\r\n|\n|\r)[ \t]{0,40}"
    rb"|[\r\n](?:(?<=[\w+/=.:-]{16}[\r\n])(?!\n?\w{1,40}[ \t]=[ \t])(?P<full>)"
    # Three quotes begin or end a text of many lines, which has no name beside it.
    rb"|(?<=[\"'][\r\n])(?<!\"{3}[\r\n])(?<!'{3}[\r\n])"
    rb"|(?<=[\"'][+.&\\][\r\n])|(?<=[\"'] [+.&\\][\r\n]))"
    rb"(?:(?<=\r)\n)?[ \t>|#]{0,60}(?:[+.&][ \t]{0,4}(?=[\"']))?(?=[\w.+/=\"'-])"
    rb"|\+(?:(?<=[\"']\+)|(?<=[\"'] \+)) ?(?=[\"'])"
)
# Where such a place can be, by sorts of letters: after a full line and after quotes.
_SORTS = bytes.maketrans(b"\r'+.&\\", b'\n"++++')
_FULL_SORTS = bytes(
    97
    if chr(byte).isascii() and (chr(byte).isalnum() or byte in b"_+/=.:-")
    else 10
    if byte in b"\r\n"
    else 32
    for byte in range(256)
)
_FULL = b"a" * 16 + b"\n"
_QUOTED = re.compile(rb'"(?=(\n)| ?\+(\n)| ?(\+) ?")')
_BROKEN = re.compile(rb"\\(?=[\n\r \t])")
_WORD_END = re.compile(rb"[\w+/=.:-]{16,}\Z")
_HALF = 48
_WORD_REST = re.compile(rb"[^\s\"'<>]{0,400}")
_SEAM = re.compile(rb"[\"'] ?[+.&\\]?\Z")
_OPENS = re.compile(rb"[brf]?[\"']")
_AROUND = 200
_WIDEST = 2_000
# The cost of judging the end of a line, in bytes scanned.
_HALVED = 100


def is_marked(data: bytes) -> bool:
    """Whether a text begins with the mark of UTF-16 or UTF-32."""
    return any(data.startswith(mark) for mark, _ in _MARKS)


def text_of(data: bytes) -> bytes:
    """Converts UTF-16 and UTF-32 to UTF-8; in other data, bytes that no text has end words."""
    encoding = _encoding(data)
    if encoding is not None:
        return data.decode(encoding, "replace").encode("utf-8", "replace")
    return data.translate(_UNWRITTEN) if b"\0" in data else data


def _encoding(data: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    probe = data[:_PROBE_WIDE]
    if 0 not in probe:
        return None
    for encoding, width, place in _WIDTHS:
        # Without a mark, or in the middle of a large file, the other bytes are NUL.
        letters = probe[place::width]
        others = [probe[at::width] for at in range(width) if at != place]
        if len(letters) < _FEW or 0 in letters:
            continue
        if all(one.count(0) >= _WIDE * len(one) for one in others):
            return encoding
    return None


def uncoloured(data: bytes) -> bytes | None:
    """Returns a text without sequences that control a terminal; None if it has none."""
    if len(data.translate(None, _STEERING)) == len(data):
        return None
    plain = _STEERS.sub(b"", data)
    return plain if plain != data else None


def unescaped(data: bytes) -> Iterator[bytes]:
    """Yields a text with one layer of escapes undone, then two, as long as there are any.

    Lines are those of the given text: an escaped line end becomes a carriage return. Of lines
    without escapes only the ends are left, of any kind, and of long lines only the text near
    escapes, because the layer before has been scanned.
    """
    for _ in range(_DEEPEST):
        if b"\\" not in data or _ESCAPE.search(data) is None:
            return
        data = _touched(data)
        peeled = _ESCAPE.sub(_undo, data)
        if peeled == data:
            return
        yield peeled
        data = peeled


def _touched(data: bytes) -> bytes:
    """Returns a text in which lines without escapes are reduced to their ends."""
    if b"\r" in data:
        data = _UNTOUCHED.sub(b"", data)
    else:
        lines = data.split(b"\n")
        data = b"\n".join([line if b"\\" in line else b"" for line in lines])
    return _FAR.sub(_shortened, data)


def _shortened(far: re.Match[bytes]) -> bytes:
    """Returns a long text between escapes without its middle, which cuts no run of base64."""
    text = far[0]
    run = _BASE64_RUN.match(text, _KEPT)
    head = run.end() if run is not None else _KEPT
    tail = len(text[:-_KEPT].rstrip(_BASE64))
    return text if tail <= head else text[:head] + b"\r\r" + text[tail:]


def _undo(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return match[1]
    if match[2] is not None:
        return _CONTROL[match[2]]
    if match[5] is not None:
        return b"\x1b"
    if match[4] is not None:
        return bytes.fromhex(match[4].decode()).replace(b"\n", b"\r")
    units = bytes.fromhex(match[3].replace(b"\\u", b"").replace(b"u", b"").decode())
    text = units.decode("utf-16-be", "replace")
    return text.replace("\n", "\r").encode("utf-8", "replace")


class Respelled(NamedTuple):
    """The decoded parts of a text, one after the other."""

    text: bytes
    # The start of each part here, and its start in the text.
    starts: list[int]
    places: list[int]

    def place(self, at: int) -> int:
        """Returns the place in the text of the part that holds an offset here."""
        return self.places[max(0, bisect.bisect_right(self.starts, at) - 1)]


def respelled(data: bytes, spend: Spend) -> Respelled | None:
    """Returns the parts that are encoded as in a URL or HTML, or continue on another line.

    None if there are none.
    """
    parts = list(_joined(data, spend))
    if b"%" in data:
        parts += _around(data, _PERCENT, _WORD_ENDS, unquote_to_bytes)
    if b"&" in data:
        parts += _around(data, _ENTITY, _LINE_ENDS, _unquoted)
    if not parts:
        return None
    starts, at = [], 0
    for _, text in parts:
        starts.append(at)
        at += len(text) + 2
    texts = b"\n\n".join(text for _, text in parts)
    return Respelled(texts, starts, [place for place, _ in parts])


def _unquoted(data: bytes) -> bytes:
    text = html.unescape(data.decode("utf-8", "replace"))
    return text.encode("utf-8", "replace")


def _around(
    data: bytes,
    pattern: re.Pattern[bytes],
    ends: bytes,
    decode: Callable[[bytes], bytes],
) -> Iterator[tuple[int, bytes]]:
    """Yields the decoded words, or lines, that contain a pattern."""
    inner = bytes(byte for byte in range(256) if byte not in ends)
    done = 0
    for match in pattern.finditer(data):
        if match.start() < done:
            continue
        before = data[max(done, match.start() - _WIDEST) : match.start()]
        low = match.start() - (len(before) - len(before.rstrip(inner)))
        after = data[match.end() : match.end() + _WIDEST]
        done = match.end() + len(after) - len(after.lstrip(inner))
        yield low, decode(data[low:done])


def _halved(data: bytes, end: int) -> bool:
    """Whether a line ends in the middle of a value, and not after a word."""
    word = _WORD_END.search(data, max(0, end - _HALF), end)
    return (
        word is not None
        and heuristics.mixed_or_hex(word[0])
        and not words.worded(word[0])
    )


def _continued(data: bytes) -> Iterator[re.Match[bytes]]:
    """Yields the places where a line may continue in the next, in order."""
    found = {at + len(_FULL) - 1 for at in _full_lines(data)}
    sorts = data.translate(_SORTS)
    found.update(match.start(match.lastindex or 0) for match in _QUOTED.finditer(sorts))
    if b"\\" in data:
        found.update(match.start() for match in _BROKEN.finditer(data))
    return at_places(_CONTINUED, data, sorted(found))


def _full_lines(data: bytes) -> Iterator[int]:
    return places(data.translate(_FULL_SORTS), (_FULL,))


def _joined(data: bytes, spend: Spend) -> Iterator[tuple[int, bytes]]:
    """Yields the joined lines around each place where a line continues in the next."""
    parts: list[bytes] = []
    begun = at = 0
    for match in _continued(data):
        low, high = match.span()
        if low < at:
            continue
        if match["full"] is not None:
            spend(_HALVED)
            if not _halved(data, low):
                continue
        if parts and low - at > _AROUND:
            yield begun, b"".join([*parts, _begun(data, at)])
            parts = []
        if not parts:
            begun = _near(data, at, low)
        part = data[begun:low] if not parts else data[at:low]
        seam = _SEAM.search(part, max(0, len(part) - 3))
        opens = _OPENS.match(data, high) if seam is not None else None
        if seam is not None and opens is not None:
            part, high = part[: seam.start()], opens.end()
        if high >= len(data):
            break
        parts.append(part)
        at = high
    if parts:
        yield begun, b"".join([*parts, _begun(data, at)])


def _near(data: bytes, at: int, low: int) -> int:
    """Returns where to begin before a place: not within a word, if there is another place."""
    begun = max(at, low - _AROUND)
    word = _WORD_REST.match(data, begun, low)
    return word.end() if begun > at and word and word.end() < low else begun


def _begun(data: bytes, at: int) -> bytes:
    """Returns the text from a place to the end of a word."""
    rest = _WORD_REST.match(data, min(at + _AROUND, len(data)))
    return data[at : rest.end() if rest is not None else None]
