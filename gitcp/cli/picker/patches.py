"""Parses a patch: maps each of its lines to a file and a hunk."""

import re
from collections.abc import Iterator

from gitcp.cli.emit import Output
from gitcp.cli.file_lines import patch_lines
from gitcp.cli.picker.lines import Line, Place, styled

_ESCAPE = re.compile(rb'\\([0-7]{3}|[abfnrtv"\\])')
_LETTERS = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}


def laid_out(out: Output, patch: bytes) -> Iterator[Line]:
    """Yields the lines of a patch as `gitcp diff` prints them, each with its place."""
    raw_lines = patch.split(b"\n")[:-1]
    places = places_of(raw_lines)
    for text, place in zip(patch_lines(out, patch), places, strict=True):
        yield styled(text.replace("\t", "    "), place)


def places_of(raw_lines: list[bytes]) -> list[Place | None]:
    """Returns the file and hunk of each line of a patch."""
    places: list[Place | None] = []
    begin, path, hunk, left = 0, None, -1, [0, 0]
    for raw in raw_lines:
        if any(left):
            # Inside a hunk no line is a header, even if it looks like one.
            left = [
                left[0] - (raw[:1] in {b" ", b"-", b""}),
                left[1] - (raw[:1] in {b" ", b"+", b""}),
            ]
            places.append(Place(path, hunk) if path is not None else None)
            continue
        if raw.startswith(b"diff --git "):
            begin, path, hunk = len(places), _both(raw[len(b"diff --git ") :]), -1
        elif raw.startswith((b"--- ", b"+++ ")):
            named = _named(raw[4:])
            if named is not None:
                path = named
                places[begin:] = [Place(path)] * (len(places) - begin)
        elif raw.startswith(b"@@ "):
            hunk += 1
            left = _lengths(raw)
        at = hunk if hunk >= 0 else None
        places.append(Place(path, at) if path is not None else None)
    return places


def _lengths(raw: bytes) -> list[int]:
    """Returns the numbers of lines of a hunk on both sides, from its head."""
    found = re.match(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", raw)
    return [int(number or b"1") for number in found.groups()] if found else [0, 0]


def _both(names: bytes) -> bytes | None:
    """Returns the path of `a/PATH b/PATH`; None if the two differ."""
    if names.startswith(b'"'):
        return _named(names[len(names) // 2 + 1 :])
    half = len(names) // 2
    first, second = names[:half], names[half + 1 :]
    return first[2:] if first[2:] == second[2:] else None


def _named(name: bytes) -> bytes | None:
    """Returns the path after `a/` or `b/`, without quotes; None for /dev/null."""
    if name.startswith(b'"'):
        name = _ESCAPE.sub(_character, name.rstrip(b"\t")[1:-1])
    else:
        # git ends a name with spaces by a tab.
        name = name.removesuffix(b"\t")
    return name[2:] if name[:2] in {b"a/", b"b/"} else None


def _character(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if escaped.isdigit():
        return bytes([int(escaped, 8)])
    return _LETTERS.get(escaped, escaped)
