"""Reads the JSON records that clients write and hooks send, damaged ones included.

Clients write JavaScript's JSON, a line for each record; hooks send an object.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
# Raised for bytes that are not the expected record.
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)

# An escaped backslash, or half of a surrogate pair, which is valid in JSON but not in Unicode.
_SURROGATE = rb"(\\\\)|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"


def decode(decoder: "msgspec.json.Decoder[T]", raw: bytes | msgspec.Raw) -> T:
    """Returns a record; reads halves of characters as U+FFFD.

    Only for reading: gitcp stores the bytes.

    Raises:
        msgspec.MsgspecError, UnicodeError, RecursionError: raw is not a valid record.
    """
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError:
        text = bytes(raw)
        if b"\\u" not in text:
            raise
        return decoder.decode(re.sub(_SURROGATE, _whole, text))


def decode_or(
    decoder: "msgspec.json.Decoder[T]", raw: bytes | msgspec.Raw, default: T
) -> T:
    """Returns a record as `decode` does; the default if raw is not a valid record."""
    try:
        return decode(decoder, raw)
    except UNREADABLE:
        return default


def _whole(match: "re.Match[bytes]") -> bytes:
    return match[1] or rb"\ufffd"


def lines(raw: bytes) -> Iterator[bytes]:
    """Yields the lines that are not empty, without a list of them: files are large."""
    at = 0
    while at < len(raw):
        end = raw.find(b"\n", at)
        end = len(raw) if end < 0 else end
        if end > at:
            yield raw[at:end]
        at = end + 1


def mentions(raw: bytes, ident: str) -> Iterator[tuple[int, bytes]]:
    """Yields each line that holds an id as a string, and the line's offset."""
    needle = f'"{ident}"'.encode()
    at = 0
    while (at := raw.find(needle, at)) >= 0:
        start = raw.rfind(b"\n", 0, at) + 1
        end = raw.find(b"\n", at)
        at = len(raw) if end < 0 else end
        yield start, raw[start:at]


def first_new_message(
    messages: Iterable[tuple[str | None, str]], copied: frozenset[str]
) -> str | None:
    """Returns the id of the first message whose identity is not among the copied ones.

    Each message is an id and an identity. Returns "" if none was copied, None if all were.
    """
    shares = False
    for ident, identity in messages:
        if ident and identity not in copied:
            return ident if shares else ""
        shares = True
    return None if shares else ""


def content_text(content: Any) -> str:
    """Returns the text of a message: its content, or the texts of its blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    return "".join(
        block["text"]
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    )


def field(payload: Mapping[str, Any], name: str) -> Any:
    """Returns a payload's value under a name such as `context.roots.0`, or None."""
    value: Any = payload
    for part in name.split("."):
        if isinstance(value, list):
            value = (
                value[int(part)]
                if part.isdecimal() and int(part) < len(value)
                else None
            )
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value


def text(payload: Mapping[str, Any], name: str) -> str | None:
    """Returns a text from a hook's payload, or None."""
    value = payload.get(name)
    return value if isinstance(value, str) and value else None


def path(payload: Mapping[str, Any], name: str) -> Path | None:
    """Returns an absolute path from a hook's payload, or None."""
    value = text(payload, name)
    return Path(value) if value and os.path.isabs(value) else None


def beginning(path: Path, size: int, *, follow: bool) -> bytes:
    """Returns the beginning of a file; empty if it is not a readable regular file.

    It opens neither a pipe, for whose writer it would wait, nor a device. A link counts as
    its target only with `follow`.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with suppress(OSError):
        fd = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
        with os.fdopen(fd, "rb") as file:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return file.read(size)
    return b""
