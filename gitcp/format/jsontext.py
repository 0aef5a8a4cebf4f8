"""Checks and compacts JSON text without changing a value.

msgspec is fast but refuses what JSON's grammar allows: numbers beyond a double, and
escapes of lone surrogates, which JavaScript clients write. Those take the slow way.
"""

import re
from types import ModuleType
from typing import Any

import msgspec

# A string, which stays, or whitespace outside of one, which goes.
_TOKEN = rb'(?s)("(?:[^"\\]|\\.)*+")|[ \t\r\n]+'


def decode(raw: bytes) -> Any:
    """Returns the value of a JSON text; the last of duplicate keys counts.

    Raises:
        ValueError: `raw` is not JSON in UTF-8, or nested too deeply.
    """
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        try:
            return _slowly().decode(raw.decode())
        except (ValueError, RecursionError):
            raise ValueError(str(exc)) from exc


def compact(raw: bytes) -> bytes:
    """Returns valid JSON without the whitespace outside of strings."""
    try:
        # Twenty times faster, and it copies numbers and strings as they stand.
        return msgspec.json.format(raw, indent=-1)
    except (msgspec.MsgspecError, RecursionError):
        return re.sub(_TOKEN, rb"\1", raw)


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
            return list(_slowly().elements(text))
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
            return dict(_slowly().members(text))
        except (ValueError, IndexError, RecursionError):
            raise ValueError(str(exc)) from exc


def readable(value: Any) -> str:
    """Returns a value as JSON for people, with spaces and as few escapes as can be."""
    text: str = _slowly().readable(value)
    return text


def _slowly() -> ModuleType:
    # Most commands never need it, and Python's json takes 3 ms to load.
    from gitcp.format import odd_json  # noqa: PLC0415

    return odd_json


def unicode(text: str) -> str:
    """Returns a text without the halves of characters that JSON may hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
