"""Splits a msgpack list between items, so that equal pieces are stored once."""

_FIXED = {
    **dict.fromkeys((0xC0, 0xC1, 0xC2, 0xC3), 1),
    **dict.fromkeys((0xCC, 0xD0), 2),
    **dict.fromkeys((0xCD, 0xD1), 3),
    **dict.fromkeys((0xCA, 0xCE, 0xD2), 5),
    **dict.fromkeys((0xCB, 0xCF, 0xD3), 9),
    **{0xD4 + power: 2 + (1 << power) for power in range(5)},
}
# The first byte, the width of the length behind it, and what an extension adds.
_SIZED = {
    **{0xC4 + power: (1 << power, 0) for power in range(3)},
    **{0xC7 + power: (1 << power, 1) for power in range(3)},
    **{0xD9 + power: (1 << power, 0) for power in range(3)},
}
_NESTED = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}


def head_length(data: bytes) -> int:
    """Returns the length of what counts the items of a list or map; else 0."""
    first = data[0] if data else 0
    if 0x80 <= first <= 0x9F:  # noqa: PLR2004  a short map or list
        return 1
    return 1 + _NESTED[first][0] if first in _NESTED else 0


def split(data: bytes, least: int) -> list[bytes]:
    """Returns `data` in pieces of at least so many bytes that end where an item does.

    If it is not a sequence of items it stays whole; joined, the pieces are `data`.
    """
    if len(data) < 2 * least:
        return [data] if data else []
    pieces = []
    start = at = 0
    try:
        while at < len(data):
            at = _skip(data, at)
            if at - start >= least and at <= len(data) - least:
                pieces.append(data[start:at])
                start = at
    except IndexError:
        return [data]
    if at != len(data):
        return [data]
    pieces.append(data[start:])
    return pieces


def _skip(data: bytes, at: int) -> int:
    """Returns the offset behind the item at `at`."""
    left = 1
    while left:
        left -= 1
        first = data[at]
        if first < 0x80 or first >= 0xE0:  # noqa: PLR2004  a small number
            at += 1
        elif first < 0x90:  # noqa: PLR2004  a short map
            left += 2 * (first & 0x0F)
            at += 1
        elif first < 0xA0:  # noqa: PLR2004  a short list
            left += first & 0x0F
            at += 1
        elif first < 0xC0:  # noqa: PLR2004  a short text
            at += 1 + (first & 0x1F)
        elif first in _FIXED:
            at += _FIXED[first]
        elif first in _SIZED:
            width, more = _SIZED[first]
            length = int.from_bytes(data[at + 1 : at + 1 + width])
            at += 1 + width + more + length
        else:
            width, each = _NESTED[first]
            left += each * int.from_bytes(data[at + 1 : at + 1 + width])
            at += 1 + width
    return at
