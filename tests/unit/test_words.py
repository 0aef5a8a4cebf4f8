"""The check of words that CI runs (.ci/words.py)."""

from __future__ import annotations

import pytest

from tests.support import ci_scripts


@pytest.fixture(scope="module")
def words():
    return ci_scripts.load("words")


def found(words, text: str) -> list[tuple[int, str]]:
    listed = words.phrases("# a comment\n\nfoo = bar\ntwo words = one\n")
    return [(hit.line, hit.text) for hit in words.hits(text, listed)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a foo.", [(1, "foo")]),
        ("a\n`Foo`", [(2, "Foo")]),
        ("def test_a_foo_is():", [(1, "foo")]),
        ("food, afoo", []),
        ("two words", [(1, "two words")]),
        ("test_two_words", [(1, "two_words")]),
        ("    # of two\n    # words", [(1, "two # words")]),
        ("two other words", []),
    ],
)
def test_a_phrase_is_found_as_whole_words(words, text, expected):
    assert found(words, text) == expected


def test_a_line_without_a_replacement_is_refused(words):
    with pytest.raises(ValueError, match="no ` = `"):
        words.phrases("foo")


def test_pages_that_quote_the_phrases_are_left_out(words):
    assert words.is_ours("gitcp/names.py")
    assert words.is_ours("README.md")
    assert not words.is_ours("docs/style.md")
    assert not words.is_ours("tests/compat/ledger-1.json")
    assert not words.is_ours("LICENSE")
