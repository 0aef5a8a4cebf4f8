"""Front matter is read as PyYAML reads it, every scalar as text."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import yaml

from gitcp.agents import front_matter
from gitcp.agents.front_matter import FrontMatterError
from gitcp.errors import UsageError

PAGE = """\
---
id: 3
summary: "JWT: works"   # a comment
created: 2026-01-02T03:04:05Z
files:
  - src/a.py
  - 'it''s.py'
same indent:
- x
- y: 1
  why: because of z
-
  k: v
- - nested
  - list
flow: [a, "b, c", 'd']
flow over lines: [a,
  b]
lines: |
  one
    two

  three
folded: >-
  one
  two

  three
plain: this goes
  on here
quoted: "over
  lines \\u00e9 \\
  joined"
url: http://x/y:z#frag
empty:
none: ~
nothing: {}
nested:
  a: 1
  b:
    - c
negative: -5
hash: a#b c
"quoted key": 1
# a comment
---
# Body

text
"""


def fields(text: str) -> dict[str, Any]:
    return front_matter.split(f"---\n{text}\n---\n").fields


def test_every_scalar_of_a_page_is_text():
    page = front_matter.split(PAGE)
    expected = yaml.load(PAGE.split("---\n")[1], Loader=yaml.BaseLoader)
    expected["none"] = None
    assert page.fields == expected
    assert page.fields["negative"] == "-5"
    assert page.fields["created"] == "2026-01-02T03:04:05Z"
    assert page.body == "# Body\n\ntext\n"


def test_quoted_null_is_text():
    assert fields("a: null\nb: 'null'\nc: ~") == {"a": None, "b": "null", "c": None}


@pytest.mark.parametrize("text", ["", "# Title\n", "text\n---\n", "----\na: b\n"])
def test_a_page_without_front_matter_is_all_body(text):
    assert front_matter.split(text) == ({}, text)


@pytest.mark.parametrize("text", ["", "# a comment\n"])
def test_empty_front_matter_has_no_fields(text):
    assert front_matter.split(f"---\n{text}---\nbody") == ({}, "body")


def test_two_escapes_can_be_one_character():
    assert fields('a: "\\ud83d\\ude00"') == {"a": "\U0001f600"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &x 1\nb: *x", "line 3: an alias"),
        ("a: 1\n? [a]\n: b", "line 3: a key is not text"),
        ("a: [b", "line 2: expected"),
        ("a: Fixed: the login", "line 2: mapping values are not allowed"),
        ("a: 1\nb: 2\na: 3", "line 4: the key 'a' occurs twice"),
        ("\ta: 1", "line 2: "),
        ("- a", "not a mapping"),
        ("just text", "not a mapping"),
        ('a: "\\q"', "line 2: "),
        ('a: "\\ud83d"', "half of a surrogate pair"),
        ('a: "\\U00110000"', "not valid YAML"),
        ('a: "\\UFFFFFFFF"', "not valid YAML"),
        ("a: \x01", "not valid YAML: unacceptable character"),
        ("[" * 5000, "line 2: nested too deeply"),
        ("\n".join("  " * level + "a:" for level in range(50)), "too deeply"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text, problem):
    with pytest.raises(FrontMatterError) as caught:
        fields(text)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_front_matter_must_end():
    with pytest.raises(FrontMatterError, match="the front matter does not end"):
        front_matter.split("---\na: 1\n")


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert front_matter.split("# no front matter\n").fields == {}
    with pytest.raises(UsageError) as caught:
        fields("a: 1")
    assert "gitcp[yaml]" in (caught.value.hint or "")
