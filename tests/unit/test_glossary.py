"""The glossary and the map in docs/architecture.md name things that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text("utf-8")
MAP = (DOCS / "architecture.md").read_text("utf-8").partition("## Where things are")[2]
MAP = MAP.partition("\n## A save")[0]
NAMES = sorted(
    {
        *re.findall(r"`(gitcp(?:\.\w+)+)`", GLOSSARY),
        *(f"gitcp.{name}" for name in re.findall(r"`([a-z]+(?:\.[a-z_]+)+)`", MAP)),
    }
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_the_pages_exists(name):
    parts = name.split(".")
    thing = importlib.import_module(parts[0])
    for end, part in enumerate(parts[1:], start=2):
        thing = getattr(thing, part, None) or importlib.import_module(
            ".".join(parts[:end])
        )
    assert thing is not None


def test_each_term_is_defined_once():
    terms = re.findall(r"\*\*([a-z -]+)\*\*", GLOSSARY)
    assert len(terms) == len(set(terms))
