"""Two real Claude Codes at work in one work tree at the same time.

The stand-in for the model holds each answer back until the other agent is where the story
wants it: no step depends on how fast a machine is.
"""

from __future__ import annotations

import shlex
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.claude_code import ClaudeCode, program, running
from tests.support.gitrepo import make_repo, run_gitcp
from tests.support.stand_in import say, use

pytestmark = [
    pytest.mark.skipif(
        program() is None, reason="needs Claude Code: `pip install claude-agent-sdk`"
    ),
    pytest.mark.slow,
]

TEST, CENT = "write a test", "it is off by a cent"
FILES = {"src/vat.py": b"def gross(net):\n    return net * 1.19\n"}
_PATIENCE = 90


class Meeting:
    """Steps of two agents that are reached together, each by its name."""

    def __init__(self) -> None:
        self._reached: dict[tuple[str, str], threading.Event] = {}
        self._lock = threading.Lock()

    def _event(self, who: str, where: str) -> threading.Event:
        with self._lock:
            return self._reached.setdefault((who, where), threading.Event())

    def at(self, who: str, where: str, *blocks: dict) -> object:
        """A step of the model's that waits until the other agent is there, too."""
        other = CENT if who == TEST else TEST

        def step(body: dict) -> tuple[dict, ...]:
            del body
            self._event(who, where).set()
            assert self._event(other, where).wait(_PATIENCE), (who, where)
            return blocks

        return step


def shell(command: str) -> dict:
    return use("Bash", command=command, description="does it")


def together(mine: Path, other: Path, command: str) -> dict:
    """A command that goes on only once the other agent's has begun."""
    here, there = shlex.quote(str(mine)), shlex.quote(str(other))
    meet = "touch {0}{2}; until [ -e {1}{2} ]; do sleep 0.05; done"
    begun, done = (meet.format(here, there, at) for at in ("", ".done"))
    return shell(f"{begun}; {command}; {done}")


def script(top: Path, apart: Path) -> dict:
    met = Meeting()
    one, two = apart / "one", apart / "two"
    test = top / "tests" / "test_vat.py"
    decided = "gitcp decide 'round half up' --why 'as the tax office does'"
    return {
        TEST: [
            met.at(TEST, "begun", use("Write", file_path=str(test), content="t\n")),
            met.at(TEST, "changed", shell("gitcp decide 'negative ones' --kind next")),
            met.at(TEST, "decided", together(one, two, "echo 1 > built")),
            met.at(TEST, "built", say("There is a test.")),
        ],
        CENT: [
            met.at(CENT, "begun", shell("sed -i 's/1.19/1.19 + 1e-9/' src/vat.py")),
            met.at(CENT, "changed", shell(decided)),
            met.at(CENT, "decided", together(two, one, "true")),
            met.at(CENT, "built", say("Rounded.")),
        ],
    }


@pytest.fixture
def project(tmp_path):
    return make_repo(tmp_path / "shop", FILES)


@pytest.fixture
def claude(tmp_path, project):
    apart = tmp_path / "apart"
    apart.mkdir()
    with running(tmp_path / "home", script(project, apart)) as client:
        client.gitcp(project, "install", "claude-code")
        client.gitcp(project, "config", "hookTimeout", "60s")
        yield client
        log = project / ".git" / "gitcp" / "hooks.log"
        assert not log.exists(), log.read_text()


def shown(project: Path, number: int) -> str:
    done = run_gitcp(project, "show", str(number))
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def paths(listed: list[dict]) -> list[str]:
    return [each["path"] for each in listed]


def test_each_turn_has_what_is_its_own(claude: ClaudeCode, project: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        turns = [
            pool.submit(claude.ask, prompt, cwd=project) for prompt in (TEST, CENT)
        ]
        sessions = [turn.result() for turn in turns]
    rows = {
        row["note"]: row
        for row in claude.gitcp(project, "log")["checkpoints"]
        if row["trigger"] == "turn-end"
    }
    test, cent = rows[TEST], rows[CENT]
    assert [row["conversation"]["agent_session"] for row in (test, cent)] == sessions
    for row, other, own, not_own, decision in (
        (test, cent, "tests/test_vat.py", "src/vat.py", "negative ones"),
        (cent, test, "src/vat.py", "tests/test_vat.py", "round half up"),
    ):
        turn = claude.gitcp(project, "show", str(row["number"]))["turn"]
        assert [each["number"] for each in turn["beside"]] == [other["number"]]
        assert paths(turn["changes"]) == [own]
        assert paths(turn["others"]) == [not_own]
        assert paths(turn["unsure"]) == ["built"]
        assert sum(row["changed"].values()) == 1
        assert row["turn"]["unsure"] == {"added": 1, "modified": 0, "deleted": 0}
        kept = claude.gitcp(project, "decisions", str(row["number"]))["decisions"]
        assert [each["text"] for each in kept] == [decision]
        text = shown(project, row["number"])
        assert decision in text
        assert f"beside   #{other['number']} Claude Code" in text
    for path, prompts in (
        ("tests/test_vat.py", [TEST]),
        ("src/vat.py", [CENT]),
        ("built", sorted([TEST, CENT])),
    ):
        found = claude.gitcp(project, "log", "--", path)["checkpoints"]
        listed = [each["note"] for each in found if each["trigger"] == "turn-end"]
        assert sorted(listed) == prompts
    assert claude.gitcp(project, "decisions")["pending"] == []
    claude.gitcp(project, "verify")
