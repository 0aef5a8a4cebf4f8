"""A project for tests of the picker: two conversations, a save by hand, reasons."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.agent import Agent
from tests.support.gitrepo import git, make_repo
from tests.support.inprocess import ok
from tests.support.templates import once, place_of


class Project(NamedTuple):
    """The project, and the agents that worked in it."""

    home: Path
    top: Path
    agent: Agent
    other: Agent

    @classmethod
    def make(cls, patched: pytest.MonkeyPatch) -> Project:
        """Makes the project; all tests of a process have it at the same place, one by one."""
        place = place_of("picked")
        patched.setenv("HOME", str(place / "home"))
        patched.setenv("CLAUDE_CONFIG_DIR", str(place / "home" / "claude"))
        return once(place, _build)


def _build(place: Path) -> Project:
    home, config = place / "home", place / "home" / "claude"
    top = make_repo(place / "project", {"README.md": b"read me\n"})
    git(top, "config", "user.name", "Ann")
    agent = Agent(top, config)
    agent.turn("Write the module", **{"a.py": lines("one", 30)})
    agent.turn("Add the tests", **{"test_a.py": "two\n"})
    other = Agent(top, config)
    other.turn("Write the documentation", **{"DOCS.md": "# A\n"})
    changed = lines("one", 30).replace("one 2\n", "ONE 2\n")
    changed = changed.replace("one 28\n", "ONE 28\n")
    agent.turn("Make it fast", **{"a.py": changed})
    ok(
        top,
        *("save", "-m", "by hand", "--decision", "Decimal, not float"),
        *("--why", "cents are lost", "--allow-empty"),
    )
    return Project(home, top, agent, other)


def lines(word: str, count: int) -> str:
    """So many numbered lines."""
    return "".join(f"{word} {number}\n" for number in range(count))
