"""A note is the start of a text, and never the start of a secret."""

import pytest

from gitcp.checkpoints.first_line import LEFT_OUT, brief
from tests.support.sample_secrets import sample_secrets

MOST = 72


@pytest.mark.parametrize("name", sample_secrets())
@pytest.mark.parametrize("before", [0, 33, 60, 71])
def test_no_part_of_a_secret_is_in_a_note(name, before):
    value, line = sample_secrets()[name]
    note = brief(f"{'word ' * before}"[:before] + " " + line, MOST)
    start = value.split()[0]
    assert note == LEFT_OUT or start[:6] not in note


def test_a_secret_in_another_line_is_no_reason_to_show_the_first():
    value, _ = sample_secrets()["github"]
    assert brief(f"use this key\n\n{value}", MOST) == LEFT_OUT


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("\n  do this \nand that", "do this"),
        ("x" * 100, "x" * 71 + "…"),
        ("a b " * 30, ("a b " * 17 + "a b")[:71] + "…"),
        ("fix /a/very/long/path-" + "1" * 80, "fix…"),
        ("日本語" * 40, ("日本語" * 40)[:71] + "…"),
        ("why does test_42 fail in tests/unit/test_values.py?", None),
        ("", ""),
    ],
)
def test_what_is_no_secret_is_cut_between_words(text, note):
    assert brief(text, MOST) == (text if note is None else note)


def test_an_unknown_value_is_kept_or_left_out_as_a_whole():
    value = "Zq7-unknown-form-" + "9xW" * 8
    for before in range(60, 80):
        note = brief("a " * (before // 2) + value, MOST)
        assert value in note or "Zq7" not in note
