"""The rows of the picker: which there are, how they are moved through and found."""

from __future__ import annotations

import pytest

from tests.support.agent import Agent
from tests.support.gitrepo import make_repo
from tests.support.inprocess import ok
from tests.support.picker import drive


@pytest.fixture
def repo(tmp_path, monkeypatch):
    """A project with two conversations and a save by hand."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    config = tmp_path / "home" / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    top = make_repo(tmp_path / "project")
    agent = Agent(top, config)
    agent.turn("Write the module", **{"a.py": "one\n"})
    agent.turn("Add the tests", **{"test_a.py": "two\n"})
    other = Agent(top, config)
    other.turn("Write the documentation", **{"DOCS.md": "# A\n"})
    agent.turn("Make it fast", **{"a.py": "three\n"})
    ok(top, "save", "-m", "by hand", "--decision", "Decimal, not float")
    return top


def test_rows_stand_under_their_conversations(repo):
    async def steps(picker):
        await picker.settled()
        lines = picker.screen.splitlines()
        rows = [line.split("│")[0].strip() for line in lines]
        assert rows[1] == "(now)"
        at = rows.index('Claude Code · "Write the documentation"')
        assert "Write the documentation" in rows[at + 1]
        first = next(i for i, row in enumerate(rows) if "Write the module" in row)
        asked = ("Make it fast", "Add the tests", "Write the module")
        for text, row in zip(asked, rows[first + 1 :], strict=False):
            assert text in row
        assert rows[first + 1].endswith("~1")

    assert drive(repo, steps) is None


def test_keys_move_over_rows_and_never_stop_at_a_header(repo):
    async def steps(picker):
        await picker.settled()
        assert picker.selected == "(now)"
        seen = []
        for key in ("j", "down", "j", "k", "G", "g"):
            await picker.press(key)
            await picker.settled()
            seen.append(picker.selected)
        told = ("by hand", "fast", "tests", "fast", "documentation", "(now)")
        for row, text in zip(seen, told, strict=True):
            assert text in row

    drive(repo, steps)
