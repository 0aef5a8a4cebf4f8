"""Whether a value is put together from words, as names in programs and files are.

Names in programs have digits and capitals, too, and stand where a secret would. But their
parts are words: longer than chance makes runs of one case, and they can be spoken.
"""

import base64
import binascii
import re

_NAME = re.compile(rb"[\w:./$<>=?@!#*+~-]+", re.ASCII)
_PART = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SNAKE = re.compile(
    rb"_*[a-z]+\d{0,4}(?:_(?:[a-z]+\d{0,4}|\d{1,4})){2,}|\d{1,4}(?:_[a-z]{3,}){2,}(?:_\d{1,4})?",
    re.IGNORECASE,
)
_TYPE = re.compile(rb"[A-Za-z]+\d{0,2}(?:[:/][A-Za-z]+\d{0,2}){2,}")
_DIGITS = re.compile(rb"\d+(?:\.\d+)*")
# A letter, and those that follow it in nine of ten places of the words in programs.
_FOLLOWS = (
    b"aabcdgiklmnprstuvy babceilorsu cacdehiklmorstu dacdefilorsu"
    b" eabcdefgilmnopqrstvwxy fadefilorstu gaehilnrs haeiot iabcdefglmnoprstvz keis"
    b" ladeilostuy mabeimopsu nacdefgiklnostuv obcdfgiklmnoprstuvw paeiloprstuy qu"
    b" racdegilmnoprstuy sacehilopstuy tacdefhilmoprstuy uabcefilmnprst vaei waeior"
    b" xeptx ypsy zez"
)
_PAIRS = frozenset(
    bytes([row[0], letter]) for row in _FOLLOWS.split() for letter in row[1:]
)
_PAIRED = 0.7
_LONGEST_NUMBER = 5
_MEAN_PART = 2.6
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{8,4000}={0,2}")
_ONE_ALPHABET = bytes.maketrans(b"-_", b"+/")
_PRINTED = re.compile(rb"[ -~]{6,3000}")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


def worded(value: bytes) -> bool:
    """Whether a value is made of words and a few numbers."""
    parts = _PART.findall(value)
    if not parts or _NAME.fullmatch(value) is None:
        return False
    if _SNAKE.fullmatch(value) is not None or _TYPE.fullmatch(value) is not None:
        return True
    numbers = _DIGITS.findall(value)
    letters = sum(map(len, parts))
    return (
        len(numbers) <= (len(parts) + 1) // 2
        and max(map(len, numbers), default=0) <= _LONGEST_NUMBER
        and letters >= _MEAN_PART * len(parts)
        and letters >= sum(map(len, numbers))
        and _paired(parts) >= _PAIRED
    )


def _paired(parts: list[bytes]) -> float:
    """Returns the share of neighbouring letters that words have side by side."""
    words = [part.lower() for part in parts if not part.isupper()]
    pairs = [word[at : at + 2] for word in words for at in range(len(word) - 1)]
    return sum(pair in _PAIRS for pair in pairs) / len(pairs) if pairs else 0.0


def text(value: bytes) -> bool:
    """Whether bytes can be written in a text at all, and are no part of a picture, say."""
    if value.isascii():
        return _CONTROL.search(value) is None
    try:
        return value.decode().isprintable()
    except UnicodeDecodeError:
        return False


def decoded(value: bytes) -> bytes | None:
    """Returns what a value stands for that is base64 of printed text; None if it is not."""
    value = value.translate(_ONE_ALPHABET)
    if _BASE64.fullmatch(value) is None:
        return None
    try:
        plain = base64.b64decode(value + b"=" * (-len(value) % 4))
    except binascii.Error:
        return None
    return plain if _PRINTED.fullmatch(plain) else None
