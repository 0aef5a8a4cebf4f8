"""Words of a query are data, and stand in a text as they do in the index."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from gitcp.search.words import Item, Query, folded

TEXT = (
    'The Größe of "race" in lock_timeout, résumé; 漢字テスト don\'t café-bar 3.5 한국어'
)


def items(*texts):
    return [item.words for item in Query.parse(texts).items]


def test_words_and_phrases_are_told_apart():
    assert items("race sessions") == [("race",), ("sessions",)]
    assert items("race", "sessions") == [("race",), ("sessions",)]
    assert items('a "race in sessions" b') == [
        ("a",),
        ("race", "in", "sessions"),
        ("b",),
    ]
    assert items("lock_timeout") == [("lock", "timeout")]
    assert items('unclosed "race in') == [("unclosed",), ("race", "in")]
    assert items("twice twice") == [("twice",)]


@pytest.mark.parametrize("text", ["", '"', "***", '"" ( )', "\0", "->"])
def test_without_a_word_there_are_no_items(text):
    assert items(text) == []


@pytest.mark.parametrize(
    "text",
    [
        *("a AND", "NOT x", "OR", "NEAR(a b)", "a NEAR/2 b", "talk : x", "{talk} : x"),
        *(
            'x"',
            '"x" + y',
            "^x",
            "x*",
            "-x",
            "x\0y",
            "'; DROP TABLE words; --",
            "\ud800x",
        ),
    ],
)
def test_what_fts_takes_for_an_operator_is_a_word(text):
    query = Query.parse((text,))
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute("CREATE VIRTUAL TABLE t USING fts5(talk)")
        index.execute("INSERT INTO t VALUES(?)", (folded(text.replace("\ud800", "")),))
        found = index.execute(
            "SELECT count(*) FROM t WHERE t MATCH ?",
            (" AND ".join(item.quoted for item in query.items),),
        ).fetchone()
    assert found == (1,)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("grosse", ["Größe"]),
        ("GRÖSSE", ["Größe"]),
        ("resume cafe", ["résumé", "café"]),
        ('"timeout resume"', ["timeout, résumé"]),
        ("字テ", ["字テ"]),
        ("국어", ["국어"]),
        ("don t", ["don", "t"]),
    ],
)
def test_what_is_found_is_marked(text, marked):
    query = Query.parse((text,))
    assert query.held(TEXT) == (1 << len(query.items)) - 1
    excerpt = query.excerpt(TEXT)
    assert [excerpt.text[start:end] for start, end in excerpt.marks] == marked


def test_a_part_of_a_word_is_not_found():
    assert Query.parse(("rac",)).held(TEXT) == 0
    assert Query.parse(("time",)).held("timeout lock_time") == 1
    assert Query.parse(("time",)).held("timeout locktime") == 0


def test_an_excerpt_is_short_and_has_most_of_the_words():
    text = "race " + "x" * 50 + " y" * 500 + " a race in\nthe\tsessions " + "z " * 500
    excerpt = Query.parse(("race sessions",)).excerpt(text)
    assert len(excerpt.text) < 200
    assert excerpt.text.startswith("…")
    assert excerpt.text.endswith("…")
    assert "a race in the sessions" in excerpt.text
    assert [excerpt.text[a:b] for a, b in excerpt.marks] == ["race", "sessions"]


@pytest.mark.parametrize("line", [b'"RACE"', b'"\\u0072ace"', '"résumé"'.encode()])
def test_no_line_of_json_is_left_out_that_may_have_a_word(line):
    assert Query.parse(("race",)).may_be_in(line)


def test_all_words_in_a_row_are_a_phrase():
    assert Query.parse(("a b",)).phrase == Item(("a", "b"))
    assert Query.parse(('"a b"',)).phrase is None
