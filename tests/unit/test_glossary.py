"""docs/glossary.md names things that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
NAMES = sorted(set(re.findall(r"`(gitcp(?:\.\w+)+)`", GLOSSARY.read_text("utf-8"))))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_the_glossary_exists(name):
    parts = name.split(".")
    thing = importlib.import_module(parts[0])
    for end, part in enumerate(parts[1:], start=2):
        thing = getattr(thing, part, None) or importlib.import_module(
            ".".join(parts[:end])
        )
    assert thing is not None


def test_each_term_is_defined_once():
    terms = re.findall(r"\*\*([a-z -]+)\*\*", GLOSSARY.read_text("utf-8"))
    assert len(terms) == len(set(terms))
