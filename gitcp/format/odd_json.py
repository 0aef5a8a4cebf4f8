"""Reads the JSON that msgspec refuses: odd numbers and odd escapes, as Python reads them."""

import json
import re
from collections.abc import Iterator
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(text: str) -> Any:
    # Python limits the digits of an int; a float is what other readers make of it.
    try:
        return int(text)
    except ValueError:
        return float(text)


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_int=_integer)


def decode(text: str) -> Any:
    """Returns the value of a JSON text; raises ValueError or RecursionError."""
    return _DECODER.decode(text)


def readable(value: Any) -> str:
    """Returns a value as text, with spaces and as few escapes as can be."""
    return json.dumps(value, ensure_ascii=False)


def _past(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _value(text: str, at: int) -> tuple[bytes, int]:
    start = _past(text, at)
    _, end = _DECODER.raw_decode(text, start)
    return text[start:end].encode(), _past(text, end)


def _expect(text: str, at: int, letter: str) -> str:
    if text[at] not in letter:
        raise ValueError(f"expected {letter} at {at}")
    return text[at]


def _ended(text: str, at: int) -> None:
    if _past(text, at) != len(text):
        raise ValueError(f"something follows at {at}")


def elements(text: str) -> Iterator[bytes]:
    """Yields the texts of the elements of an array; raises as `decode`, or IndexError."""
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


def members(text: str) -> Iterator[tuple[str, bytes]]:
    """Yields names and texts of values of an object; raises as `elements`."""
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
