"""Lines of `labels.jsonl`: the page's vectors, and what is not such a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcp.format.labels import LabelLine, decode_label, encode_label
from gitcp.format.layout import BranchKey

VECTORS = Path(__file__).parents[2] / "docs" / "format" / "vectors.md"
LINES = (
    LabelLine(
        "9fdbb37e886b", "auth/main", "2026-11-22T12:00:00.000Z", "before the move"
    ),
    LabelLine("0123456789ab", "auth/try%2f2", "2026-11-22T12:00:01.000Z", None),
)


def test_the_page_has_these_lines():
    page = VECTORS.read_text("utf-8")
    assert "".join(encode_label(line).decode() for line in LINES) in page


@pytest.mark.parametrize("line", LINES)
def test_a_line_comes_back(line):
    assert decode_label(encode_label(line).rstrip(b"\n")) == line
    assert line.key == BranchKey(*line.branch.split("/"))


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"id":"9fdbb37e886b"}', b"\xff"])
def test_anything_else_says_nothing(raw):
    assert decode_label(raw) is None
