"""Lines of `gitcp-numbers`: the page's vectors, and what damage makes of a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcp.format.layout import BranchKey
from gitcp.format.numbers import (
    Assigned,
    Gone,
    Moved,
    decode_assigned,
    decode_line,
    encode_line,
    fates,
    outlines,
    unnamed,
)

VECTORS = Path(__file__).parents[2] / "docs" / "format" / "vectors.md"
LINES: tuple[Assigned | Moved | Gone, ...] = (
    Assigned(
        47,
        "9fdbb37e886b",
        "a" * 40,
        BranchKey("auth", "main"),
        ".",
        "2026-11-22T12:00:00.000Z",
        "turn-end",
    ),
    Assigned(
        48,
        "0123456789ab",
        "b" * 64,
        BranchKey("auth", "try%2f2"),
        "-",
        "2026-11-22T12:00:01Z",
        "manual",
    ),
    Assigned(
        49,
        "00112233aabb",
        "d" * 40,
        BranchKey("main", "main"),
        "~",
        "2026-11-21T12:00:00.000Z",
        "manual",
    ),
    Moved(47, "c" * 40),
    Gone(47, "2026-11-22T13:00:00.000Z"),
)


def test_the_page_has_these_lines():
    page = VECTORS.read_text("ascii", errors="replace")
    assert "".join(encode_line(line).decode() for line in LINES) in page


@pytest.mark.parametrize("line", LINES)
def test_a_line_comes_back(line):
    assert decode_line(encode_line(line).rstrip(b"\n")) == line


@pytest.mark.parametrize("line", LINES)
def test_no_flipped_bit_gives_another_line(line):
    raw = encode_line(line).rstrip(b"\n")
    for at in range(len(raw)):
        for bit in range(8):
            other = raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :]
            assert decode_line(other) is None


@pytest.mark.parametrize("line", LINES)
def test_a_beginning_of_a_line_says_nothing(line):
    raw = encode_line(line).rstrip(b"\n")
    assert all(decode_line(raw[:size]) is None for size in range(len(raw)))


def test_a_whole_list_says_what_its_lines_say():
    named = [line for line in LINES if isinstance(line, Assigned)]
    first, second, third = named
    again = first._replace(number=50, id="c0ffee000000", commit="d" * 40)
    raw = b"\n" + b"".join(map(encode_line, LINES)) + encode_line(again)
    assert list(decode_assigned(raw)) == [*named, again]
    assert fates(raw) == ({47}, {47: "c" * 40})
    assert outlines(raw) == [
        (str(one.number), "/".join(one.key), *one[4:])
        for one in (again, third, second, first)
    ]
    assert unnamed(raw, ["a" * 40, "c" * 40, "e" * 40]) == {"e" * 40}


def test_of_a_whole_list_damaged_lines_are_left_out():
    first = LINES[0]
    assert isinstance(first, Assigned)
    same = [first._replace(number=number) for number in (1, 2, 3)]
    raw = b"\n" + b"".join(encode_line(one) for one in same)
    raw = raw.replace(b"\n+ 2 ", b"\n+ 5 ")
    assert [one.number for one in decode_assigned(raw)] == [1, 3]
    assert unnamed(raw.replace(b"+ 3 ", b"+ 4 "), ["a" * 40]) == set()
    one = b"\n" + encode_line(same[0]).replace(b"+ 1 ", b"+ 7 ")
    assert unnamed(one, ["a" * 40]) == {"a" * 40}
