"""The slash commands, in the real Claude Code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest

from gitcp.clients import skill
from tests.e2e import test_gemini, test_opencode
from tests.support import codex
from tests.support.anthropic_server import AnthropicServer, texts
from tests.support.gitrepo import make_repo
from tests.support.inprocess import ok
from tests.support.model_server import ModelServer
from tests.support.stand_in import say, use

CLAUDE = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = make_repo(tmp_path / "project", {"a.txt": b"a\n"})
    ok(path, "install", "skill", "--scope", "project")
    return path


def prompt(project: Path, server: AnthropicServer, text: str) -> list[dict[str, Any]]:
    programs = project.with_name("bin")
    programs.mkdir(exist_ok=True)
    gitcp = programs / "gitcp"
    gitcp.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m gitcp "$@"\n')
    gitcp.chmod(0o755)
    config = project.with_name("config")
    environment = {
        **os.environ,
        **server.environment,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "CLAUDE_CONFIG_DIR": str(config),
        "CLAUDE_CODE_TMPDIR": str(config),
    }
    config.mkdir(exist_ok=True)
    done = subprocess.run(
        [CLAUDE, "-p", text, "--output-format", "stream-json", "--verbose"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=120,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def said_to_the_model(server: AnthropicServer) -> str:
    """What the first request of a run says for the user, reminders left out."""
    return "\n".join(
        text
        for message in server.requests[0]["messages"]
        if message["role"] == "user"
        for text in texts(message)
        if not text.startswith("<system-reminder>")
    )


def test_checkpoint_saves_what_the_agent_knows_without_asking(project):
    command = (
        "gitcp save -m 'JWT works' --decision 'JWT instead of sessions'"
        " --why 'it'\\''s stateless' --tried 'HS256' --next 'refresh' --active a.txt"
    )
    script = {
        "re:Save a checkpoint": [[use("Bash", command=command)], [say("Saved 1.")]]
    }
    with AnthropicServer(script) as server:
        messages = prompt(project, server, '/checkpoint "JWT works"')
        asked = said_to_the_model(server)
    assert 'The user\'s note: "JWT works"' in asked
    assert "--tried" in asked
    assert messages[-1]["permission_denials"] == []
    [made] = ok(project, "log")["checkpoints"]
    assert made["note"] == "JWT works"
    entries = ok(project, "decisions")["decisions"]
    assert {one["kind"] for one in entries} == {"decision", "tried", "next", "active"}
    (decided,) = [one for one in entries if one["kind"] == "decision"]
    assert decided["why"] == "it's stateless"


def test_restore_shows_it_without_asking_and_does_it_only_after_a_question(project):
    """Without a terminal there is no one to confirm: the client denies what it would ask."""
    ok(project, "save", "-m", "good")
    (project / "a.txt").write_text("bad\n")
    risky = "gitcp restore 1 --yes --trust"
    script = {
        "re:Restore a checkpoint": [
            [use("Bash", command="gitcp restore --dry-run 1 a.txt")],
            [use("Bash", command=risky)],
            [say("Restored.")],
        ]
    }
    with AnthropicServer(script) as server:
        messages = prompt(project, server, "/restore 1 a.txt")
        assert "which paths if not all: 1 a.txt" in said_to_the_model(server)
    denied = messages[-1]["permission_denials"]
    assert [one["tool_input"]["command"] for one in denied] == [risky]
    assert (project / "a.txt").read_text() == "bad\n"


def test_prune_needs_a_yes_and_the_others_are_there(project):
    """Only the dry run goes without asking; the rest needs a terminal to confirm at."""
    script = {
        "re:Remove old": [
            [use("Bash", command="gitcp prune --keep-last 3")],
            [say("Not done.")],
        ]
    }
    with AnthropicServer(script) as server:
        messages = prompt(project, server, "/prune 3")
        assert "nothing is said): 3" in said_to_the_model(server)
    denied = messages[-1]["permission_denials"]
    assert [one["tool_input"]["command"] for one in denied] == [
        "gitcp prune --keep-last 3"
    ]
    assert {*skill.COMMANDS, "gitcp"} <= set(messages[0]["slash_commands"])


DESCRIPTION = "Checkpoints of files, conversation and decisions."


@pytest.mark.skipif(codex.PROGRAM is None, reason="there is no codex")
def test_codex_tells_its_model_of_the_skill(project, tmp_path):
    with ModelServer({"turn": [[say("ok")]]}) as server:
        client = codex.Project(project, tmp_path, server)
        client.codex("turn", trust=False)
        assert DESCRIPTION in json.dumps(server.bodies("turn")[0])


@pytest.mark.skipif(test_opencode.OPENCODE is None, reason="there is no opencode")
def test_opencode_tells_its_model_of_the_skill(project, tmp_path):
    with ModelServer({"turn": [[say("ok")]]}) as server:
        opencode = test_opencode.Project(project, tmp_path / "home", server)
        opencode.turn("turn")
        assert any(DESCRIPTION in json.dumps(body) for _, body in server.requests)


@pytest.mark.skipif(test_gemini.GEMINI is None, reason="there is no gemini")
def test_gemini_runs_the_slash_command_of_its_own_name(project, tmp_path):
    (project / ".gemini").mkdir()
    ok(project, "install", "skill", "--scope", "project")
    with ModelServer({"re:Restore a checkpoint": [[say("ok")]]}) as server:
        gemini = test_gemini.Project(project, tmp_path / "home", server)
        gemini.gemini("/gitcp:restore 1 a.txt")
        asked = json.dumps([body for _, body in server.requests])
    assert "which paths if not all: 1 a.txt" in asked
    assert DESCRIPTION in asked


@pytest.mark.skipif(test_opencode.OPENCODE is None, reason="there is no opencode")
def test_opencode_runs_the_slash_command_of_its_own_name(project, tmp_path):
    (project / ".opencode").mkdir()
    ok(project, "install", "skill", "--scope", "project")
    with ModelServer({"re:Restore a checkpoint": [[say("ok")]]}) as server:
        opencode = test_opencode.Project(project, tmp_path / "home", server)
        opencode.turn("a.txt", "--command", "gitcp/restore", "1")
        asked = json.dumps([body for _, body in server.requests])
    assert "which paths if not all: 1 a.txt" in asked
