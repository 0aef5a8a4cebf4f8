"""docs/gitcp.1 knows every command."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

from gitcp.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gitcp.1"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_man_page_lists_each_command(name):
    # After a change: python docs/manpage.py
    assert f'.SS "gitcp {name.replace("-", chr(92) + "-")} ' in PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    "section", ["OPTIONS", "COMMANDS", "SELECTORS", "EXAMPLES", "FILES", "ENVIRONMENT"]
)
def test_the_man_page_has_each_section_once(section):
    assert PAGE.read_text("utf-8").count(f".SH {section}\n") == 1


def test_the_man_page_is_as_it_would_be_made_now():
    spec = importlib.util.spec_from_file_location("manpage", PAGE.parent / "manpage.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    # After a change: python docs/manpage.py
    assert made.page() == PAGE.read_text("utf-8")


def test_the_wheel_has_the_man_page():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared == {"docs/gitcp.1": "share/man/man1/gitcp.1"}
