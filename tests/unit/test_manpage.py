"""docs/gitcp.1 knows every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcp.cli.app import COMMANDS

PAGE = Path(__file__).parents[2] / "docs" / "gitcp.1"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_man_page_lists_each_command(name):
    # After a change: python docs/manpage.py
    assert f'.SS "gitcp {name.replace("-", chr(92) + "-")} ' in PAGE.read_text("utf-8")
