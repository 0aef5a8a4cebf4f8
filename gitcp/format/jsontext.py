"""Checks and compacts JSON text without changing a value.

msgspec is fast but refuses what JSON's grammar allows: numbers beyond a double, and
escapes of lone surrogates, which JavaScript clients write. Those take the slow way.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

# A string, which stays, or whitespace outside of one, which goes.
_TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*+")|[ \t\r\n]+', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(text: str) -> Any:
    # Python limits the digits of an int; a float is what other readers make of it.
    try:
        return int(text)
    except ValueError:
        return float(text)


_SLOW = json.JSONDecoder(parse_constant=_constant, parse_int=_integer)


def decode(raw: bytes) -> Any:
    """Returns the value of a JSON text; the last of duplicate keys counts.

    Raises:
        ValueError: `raw` is not JSON in UTF-8, or nested too deeply.
    """
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        try:
            return _SLOW.decode(raw.decode())
        except (ValueError, RecursionError):
            raise ValueError(str(exc)) from exc


def compact(raw: bytes) -> bytes:
    """Returns valid JSON without the whitespace outside of strings."""
    try:
        # Twenty times faster, and it copies numbers and strings as they stand.
        return msgspec.json.format(raw, indent=-1)
    except (msgspec.MsgspecError, RecursionError):
        return _TOKEN.sub(rb"\1", raw)


def elements(raw: bytes) -> list[bytes]:
    """Returns the texts of the elements of an array.

    Raises:
        ValueError: `raw` is not a valid JSON array.
    """
    text = raw.decode()
    try:
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        return [bytes(element) for element in items]
    except (msgspec.MsgspecError, RecursionError) as exc:
        try:
            return list(_elements(text))
        except (ValueError, IndexError, RecursionError):
            raise ValueError(str(exc)) from exc


def members(raw: bytes) -> dict[str, bytes]:
    """Returns the texts of the values of an object, in order.

    Raises:
        ValueError: `raw` is not a valid JSON object.
    """
    text = raw.decode()
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return {name: bytes(value) for name, value in fields.items()}
    except (msgspec.MsgspecError, RecursionError) as exc:
        try:
            return dict(_members(text))
        except (ValueError, IndexError, RecursionError):
            raise ValueError(str(exc)) from exc


def _past(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _value(text: str, at: int) -> tuple[bytes, int]:
    start = _past(text, at)
    _, end = _SLOW.raw_decode(text, start)
    return text[start:end].encode(), _past(text, end)


def _expect(text: str, at: int, letter: str) -> str:
    if text[at] not in letter:
        raise ValueError(f"expected {letter} at {at}")
    return text[at]


def _ended(text: str, at: int) -> None:
    if _past(text, at) != len(text):
        raise ValueError(f"something follows at {at}")


def _elements(text: str) -> Iterator[bytes]:
    at = _past(text, 0)
    _expect(text, at, "[")
    after = _past(text, at + 1)
    if text[after] == "]":
        _ended(text, after + 1)
        return
    while True:
        value, at = _value(text, at + 1)
        yield value
        if _expect(text, at, ",]") == "]":
            _ended(text, at + 1)
            return


def _members(text: str) -> Iterator[tuple[str, bytes]]:
    at = _past(text, 0)
    _expect(text, at, "{")
    after = _past(text, at + 1)
    if text[after] == "}":
        _ended(text, after + 1)
        return
    while True:
        name, at = _value(text, at + 1)
        _expect(text, at, ":")
        value, at = _value(text, at + 1)
        yield json.loads(name), value
        if _expect(text, at, ",}") == "}":
            _ended(text, at + 1)
            return
