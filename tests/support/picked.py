"""A project for tests of the picker: two conversations, a save by hand, reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agent import Agent
from tests.support.gitrepo import git, make_repo
from tests.support.inprocess import ok


class Project:
    """The project, and the agents that worked in it."""

    def __init__(self, tmp_path: Path, patched: pytest.MonkeyPatch) -> None:
        self.home = tmp_path / "home"
        patched.setenv("HOME", str(self.home))
        config = self.home / "claude"
        patched.setenv("CLAUDE_CONFIG_DIR", str(config))
        self.top = make_repo(tmp_path / "project", {"README.md": b"read me\n"})
        git(self.top, "config", "user.name", "Ann")
        self.agent = Agent(self.top, config)
        self.agent.turn("Write the module", **{"a.py": lines("one", 30)})
        self.agent.turn("Add the tests", **{"test_a.py": "two\n"})
        self.other = Agent(self.top, config)
        self.other.turn("Write the documentation", **{"DOCS.md": "# A\n"})
        changed = lines("one", 30).replace("one 2\n", "ONE 2\n")
        changed = changed.replace("one 28\n", "ONE 28\n")
        self.agent.turn("Make it fast", **{"a.py": changed})
        ok(
            self.top,
            *("save", "-m", "by hand", "--decision", "Decimal, not float"),
            *("--why", "cents are lost", "--allow-empty"),
        )


def lines(word: str, count: int) -> str:
    """So many numbered lines."""
    return "".join(f"{word} {number}\n" for number in range(count))
