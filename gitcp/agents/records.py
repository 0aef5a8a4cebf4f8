"""Decoding a client's records, whatever their JavaScript wrote into them."""

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

# A backslash that is one, or half of a character: JSON has it, Unicode does not.
_SURROGATE = re.compile(rb"(\\\\)|\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def decode(decoder: "msgspec.json.Decoder[T]", raw: bytes | msgspec.Raw) -> T:
    """Returns a record; characters that were cut in half are read as U+FFFD.

    Only for looking at: what is stored are the bytes.

    Raises:
        msgspec.MsgspecError, UnicodeError, RecursionError: it is not such a record.
    """
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError:
        text = bytes(raw)
        if b"\\u" not in text:
            raise
        return decoder.decode(_SURROGATE.sub(_whole, text))


def _whole(match: "re.Match[bytes]") -> bytes:
    return match[1] or rb"\ufffd"
