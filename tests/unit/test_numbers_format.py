"""Lines of `gitcp-numbers`: the page's vectors, and what damage makes of a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcp.format.layout import BranchKey
from gitcp.format.numbers import Assigned, Gone, Moved, decode_line, encode_line

VECTORS = Path(__file__).parents[2] / "docs" / "format" / "vectors.md"
LINES = (
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
