"""Sentences break between words at the width of a terminal."""

from __future__ import annotations

import pytest

from gitcp.cli.emit import Output, folded
from gitcp.cli.layout import cells, terminal_of
from gitcp.cli.layout import folded as lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", ["short"]),
        ("", [""]),
        ("to continue the old conversation:", ["to continue the old", "conversation:"]),
        ("  left   a b c d e f g h i j", ["  left   a b c d e f", "         g h i j"]),
        (
            "ok  git    is new enough now",
            ["ok  git    is new", "enough now"],
        ),
        ("* round half up, as they do", ["* round half up, as", "  they do"]),
        ("    deep deep deep deep deep", ["    deep deep deep", "    deep deep"]),
        # What may be copied from the screen stays whole.
        (
            "in /a/very/long/path/of/a/file: no",
            ["in", "/a/very/long/path/of/a/file:", "no"],
        ),
        ("四角形四角形四角形四角形四角形", ["四角形四角形四角形四", "角形四角形"]),
        ("see 四角形 and 四角形 and it", ["see 四角形 and", "四角形 and it"]),
    ],
)
def test_lines_break_between_words(text: str, shown: list[str]) -> None:
    assert list(lines(text, 20)) == shown


def test_every_line_of_a_text_is_folded_and_colours_take_no_column():
    out = Output()
    out.color = True
    styled = f"{out.style('#47', fg='cyan')} {'word ' * 5}".rstrip()
    with terminal_of(20):
        assert folded("one\ntwo two two two two two") == "one\ntwo two two two two\ntwo"
        assert folded(styled).split("\n")[1] == "word word"
        # Room for what is printed behind it.
        assert folded("one two three four", 6) == "one two three\nfour"


def test_nothing_is_folded_where_there_is_no_terminal():
    assert folded("word " * 100) == "word " * 100


def test_no_word_is_lost_or_broken():
    text = "  stays  " + " ".join("x" * n for n in (1, 7, 30, 2, 19, 20, 21, 3))
    for room in range(8, 80):
        parts = list(lines(text, room))
        assert " ".join(" ".join(parts).split()) == " ".join(text.split())
        assert all(
            cells(part) <= room or len(part.split()) == 1 or part.startswith("  stays")
            for part in parts
        )
