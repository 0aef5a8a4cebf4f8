"""Front matter: the YAML that is read is read as YAML readers do; the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gitcp.format import frontmatter
from gitcp.format.frontmatter import FrontMatterError

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
    return frontmatter.split(f"---\n{text}\n---\n").fields


def as_text(value: Any) -> Any:
    """What we call None is empty text or null for others."""
    if value is None:
        return ""
    if isinstance(value, list):
        return [as_text(one) for one in value]
    if isinstance(value, dict):
        return {key: as_text(one) for key, one in value.items()}
    return value


def test_a_page_reads_as_a_yaml_reader_reads_it():
    found = frontmatter.split(PAGE)
    wanted = yaml.load(PAGE.split("---\n")[1], Loader=yaml.BaseLoader)
    wanted["none"] = ""
    assert as_text(found.fields) == wanted
    assert found.body == "# Body\n\ntext\n"


def test_a_page_without_front_matter_is_all_body():
    for text in ("", "# Title\n", "text\n---\n", "----\na: b\n"):
        assert frontmatter.split(text) == ({}, text)


words = st.text("abc -:#'\"[]{},\\&*!|>%@`?é\t0.~", max_size=12)
values = st.recursive(
    words,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
    ),
    max_leaves=6,
)


# The same examples each time: what is rare in YAML must not break a build.
SAME = settings(derandomize=True, max_examples=300)


@SAME
@given(
    st.dictionaries(words, values, min_size=1, max_size=4),
    st.sampled_from([None, '"', "'", "|", ">"]),
    st.sampled_from([None, False]),
)
def test_what_others_write_is_read_the_same_or_refused(written, style, flow):
    text = yaml.safe_dump(
        written, allow_unicode=True, default_style=style, default_flow_style=flow
    )
    wanted = yaml.load(text, Loader=yaml.BaseLoader)
    try:
        found = fields(text.rstrip("\n"))
    except FrontMatterError:
        return
    assert as_text(found) == as_text(wanted)


@SAME
@given(st.text("ab:-# '\"[]{}\n|>&*\t\\", max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        found = fields(text)
    except FrontMatterError:
        return
    try:
        wanted = yaml.load(text.partition("\n---\n")[0], Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return
    # Keys are all that every reader agrees about in a page gone wrong.
    if isinstance(wanted, dict):
        assert set(found) <= {str(key) for key in wanted} or not found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x 1", "line 2: '&x 1' is more YAML"),
        ("a: 1\nb: *x", "line 3: '*x' is more YAML"),
        ("a: !!int 1", "more YAML"),
        ("a: {b: c}", "more YAML"),
        ("? a\n: b", "more YAML"),
        ("a: [b, [c]]", "more than a flat list"),
        ("a: [b", "does not end"),
        ('a: "b', "the quote does not end"),
        ('a: "b" c', "stands behind a quote"),
        ("a: 1\na: 2", "'a' is there twice"),
        ("a: 1\n  b: 2", "indented more"),
        ("\ta: 1", "indented by a tab"),
        ("- a", "not a mapping"),
        ("just text", "not a mapping"),
        ('a: "\\q"', "escape"),
        ('a: "\\ud83d"', "not a character"),
        ('a: "\\U00110000"', "not a character"),
    ],
)
def test_what_is_not_read_is_refused_by_line(text, said):
    with pytest.raises(FrontMatterError, match="line") as caught:
        fields(text)
    assert said in str(caught.value)


def test_a_colon_in_a_text_beside_its_key_is_no_key():
    """Other readers refuse it, so it cannot be misread; people write it all the time."""
    assert fields("a: Fixed: the login\nb: 1") == {"a": "Fixed: the login", "b": "1"}
    with pytest.raises(FrontMatterError, match="needs quotes"):
        fields("a:\n  :b: c")


def test_front_matter_must_end():
    with pytest.raises(FrontMatterError, match="does not end"):
        frontmatter.split("---\na: 1\n")


def test_nesting_has_an_end():
    deep = "\n".join("  " * level + "a:" for level in range(50))
    with pytest.raises(FrontMatterError, match="too deeply"):
        fields(deep + " x")
