"""The real Claude Code stays open while a person restores beside it, or it restores itself.

It runs in its streaming mode: one process, several prompts, closed at its stdin's end.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.claude_code import ClaudeCode, program, running
from tests.support.gitrepo import make_repo, tree_bytes
from tests.support.stand_in import say, use

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        program() is None, reason="needs Claude Code: `pip install claude-agent-sdk`"
    ),
]


def script(top: Path) -> dict:
    def shell(command: str) -> dict:
        return use("Bash", command=command, description="does it")

    return {
        "first": [[shell("echo one > a.txt")], [say("Done first.")]],
        "second": [[shell("echo two > a.txt; echo b > b.txt")], [say("Done second.")]],
        "third": [[shell("echo three > c.txt")], [say("Done third.")]],
        "lose it": [
            [use("Write", file_path=str(top / "work"), content="hours\n")],
            [shell("ls -la; cat work")],
            [shell("rm work")],
            [say("Lost it.")],
        ],
        "go back": [[shell("gitcp restore '#2' --yes")], [say("Went back.")]],
        "undo it": [[shell("gitcp undo --yes")], [say("Undid it.")]],
        "what now": [[say("I see.")]],
    }


class Open:
    """A client that is open, and takes one prompt after the other."""

    def __init__(self, claude: ClaudeCode, top: Path) -> None:
        client = program()
        assert client is not None
        self.process = subprocess.Popen(
            [
                *claude.prefix,
                str(client),
                *("-p", "--input-format", "stream-json", "--verbose"),
                *("--output-format", "stream-json"),
                *("--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
            ],
            cwd=top,
            env=claude.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, prompt: str) -> dict[str, Any]:
        """Lets it do one turn, and returns how that ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"role": "user", "content": prompt}
        line = json.dumps({"type": "user", "message": message}).encode() + b"\n"
        self.process.stdin.write(line)
        self.process.stdin.flush()
        for raw in self.process.stdout:
            found: dict[str, Any] = json.loads(raw)
            if found.get("type") == "result":
                return found
        raise AssertionError("the client ended")

    def close(self) -> None:
        """Closes it as a user does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


@pytest.fixture
def project(tmp_path):
    return make_repo(tmp_path / "project", {"keep.txt": b"keep\n"})


@pytest.fixture
def claude(tmp_path, project) -> Iterator[ClaudeCode]:
    with running(tmp_path / "home", script(project)) as client:
        client.gitcp(project, "install", "claude-code")
        client.gitcp(project, "config", "hookTimeout", "60s")
        yield client
        log = project / ".git" / "gitcp" / "hooks.log"
        assert not log.exists() or "Traceback" not in log.read_text()


@contextmanager
def opened(claude: ClaudeCode, project: Path) -> Iterator[Open]:
    client = Open(claude, project)
    try:
        yield client
    finally:
        client.process.kill()
        client.process.wait()
        for stream in (client.process.stdin, client.process.stdout):
            assert stream is not None
            stream.close()


def numbers(claude: ClaudeCode, top: Path) -> dict[int, str]:
    listed = claude.gitcp(top, "log", "--all", "--full")["checkpoints"]
    return {one["number"]: one["id"] for one in listed}


def test_closing_the_client_after_a_restore_changes_nothing(claude, project):
    with opened(claude, project) as client:
        client.ask("first")
        client.ask("second")
        before = tree_bytes(project)
        made = numbers(claude, project)
        first = next(
            one
            for one in claude.gitcp(project, "log")["checkpoints"]
            if one["note"] == "first"
        )
        claude.gitcp(project, "restore", f"#{first['number']}", "--yes")
        restored = tree_bytes(project)
        listed = numbers(claude, project)
        client.close()
    assert tree_bytes(project) == restored
    # No fork, nothing that mixes what was restored with what was said since.
    assert numbers(claude, project) == listed
    assert made.items() <= listed.items()
    assert not any(
        branch["name"].startswith(("fork-", "after-restore"))
        for session in claude.gitcp(project, "sessions")["sessions"]
        for branch in session["branches"]
    )
    claude.gitcp(project, "undo", "--yes")
    assert tree_bytes(project) == before


def test_an_open_client_is_told_and_goes_on_as_a_branch(claude, project):
    with opened(claude, project) as client:
        client.ask("first")
        client.ask("second")
        first = next(
            one
            for one in claude.gitcp(project, "log")["checkpoints"]
            if one["note"] == "first"
        )
        claude.gitcp(project, "restore", f"#{first['number']}", "--yes")
        client.ask("third")
        asked = json.dumps(claude.server.messages("third"))
        assert f"restored to #{first['number']}" in asked
        client.close()
    last = claude.gitcp(project, "log")["checkpoints"][0]
    assert (last["note"], last["branch"]) == (
        "third",
        f"after-restore-{first['number']}",
    )
    assert (project / "c.txt").exists()
    assert not (project / "b.txt").exists()


def test_the_clients_own_restore_and_undo_are_those_of_a_person(claude, project):
    with opened(claude, project) as client:
        client.ask("first")
        after_first = tree_bytes(project)
        client.ask("second")
        after_second = tree_bytes(project)
        client.ask("go back")
        assert tree_bytes(project) == after_first
        client.ask("undo it")
        assert tree_bytes(project) == after_second
        client.close()
    claude.gitcp(project, "undo", "--yes")
    assert tree_bytes(project) == after_first


def test_what_a_turn_wrote_is_saved_before_a_command_that_deletes_it(claude, project):
    claude.ask("lose it", cwd=project)
    end, before = claude.gitcp(project, "log", "--full")["checkpoints"][:2]
    assert (before["trigger"], before["note"]) == (
        "before-command",
        "before `rm work`: lose it",
    )
    assert end["trigger"] == "turn-end"
    assert not (project / "work").exists()
    claude.gitcp(project, "restore", before["id"], "work", "-y")
    assert (project / "work").read_bytes() == b"hours\n"


def test_a_new_conversation_knows_what_the_one_before_decided(claude, project):
    claude.ask("first", cwd=project)
    claude.gitcp(project, "decide", "keep the old format", "--why", "others read it")
    claude.gitcp(project, "decide", "do the tests", "--kind", "next")
    claude.ask("second", cwd=project)
    assert "keep the old format" in json.dumps(claude.server.messages("second"))
    claude.ask("what now", cwd=project)
    asked = json.dumps(claude.server.messages("what now"))
    assert "keep the old format" in asked
    assert "do the tests" in asked
    found = claude.gitcp(project, "decisions")["decisions"]
    assert {one["text"] for one in found} == {"keep the old format", "do the tests"}


def test_numbers_mean_the_same_beside_another_client(claude, project):
    with opened(claude, project) as one, opened(claude, project) as other:
        one.ask("first")
        listed = numbers(claude, project)
        other.ask("second")
        one.ask("third")
        for number, ident in listed.items():
            shown = claude.gitcp(project, "show", f"#{number}")["checkpoint"]
            assert shown["id"] == ident
        assert listed.items() <= numbers(claude, project).items()
