"""The real clients continue each other's conversations, against stand-in models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import claude_code
from tests.support.claude_code import ClaudeCode, running
from tests.support.codex import PROGRAM, Project
from tests.support.gitrepo import tree_bytes
from tests.support.model_server import ModelServer
from tests.support.stand_in import say, use

pytestmark = [
    pytest.mark.skipif(
        PROGRAM is None, reason="there is no codex (npm i @openai/codex)"
    ),
    pytest.mark.skipif(
        claude_code.program() is None,
        reason="needs Claude Code: `pip install claude-agent-sdk`",
    ),
    pytest.mark.timeout(600),
]

CLAUDE = {
    "first": [
        [say("Looking."), use("Bash", command="echo one", description="says one")],
        [use("Bash", command="exit 3", description="fails")],
        [say("Done first.")],
    ],
    "go on": [[say("Went on.")]],
}
CODEX = {
    "uno": [
        [use("exec_command", cmd="echo uno > uno")],
        [use("exec_command", cmd="cat uno")],
        [say("Hecho.")],
    ],
    "go on": [[say("Went on.")]],
}


@pytest.fixture
def clients(repo: Path, tmp_path: Path):
    with ModelServer(CODEX) as server, running(tmp_path / "home", CLAUDE) as claude:
        codex = Project(repo, tmp_path, server)
        codex.environment["HOME"] = str(claude.home)
        yield claude, codex


def gitcp(clients: tuple[ClaudeCode, Project], *args: str) -> Any:
    claude, codex = clients
    claude_side = {"CLAUDE_CONFIG_DIR": str(claude.config), "HOME": str(claude.home)}
    codex.home_variable |= claude_side
    return codex.gitcp(*args)


def taken(document: dict[str, Any], *words: str) -> str:
    """The id that the printed command continues."""
    found: list[str] = document["resume"].split()
    assert found[:-1] == [*words]
    return found[-1]


def test_codex_continues_what_was_said_in_claude_code(repo, clients):
    claude, codex = clients
    claude.ask("first", cwd=repo)
    (imported,) = gitcp(clients, "import-history")["conversations"]
    number = str(imported["checkpoint"]["number"])
    before = tree_bytes(repo)
    done = gitcp(clients, "resume", number, "--with", "codex")
    assert done["how"] == "converted"
    assert tree_bytes(repo) == before
    codex.codex("resume", taken(done, "codex", "resume"), "go on")
    items = [
        one
        for one in codex.said_before("go on")
        if one.get("role") != "developer"
        and "<environment_context>" not in json.dumps(one)
    ]
    shape = [
        (one["type"], one.get("role") or one.get("name") or one.get("output"))
        for one in items
    ]
    assert shape[:4] == [
        ("message", "user"),
        ("message", "assistant"),
        ("function_call", "Bash"),
        ("function_call_output", "one"),
    ]
    assert [kind for kind, _ in shape[4:]] == [
        "function_call",
        "function_call_output",
        "message",
    ]
    assert items[0]["content"][-1]["text"] == "first"
    assert items[1]["content"][0]["text"] == "Looking."
    assert json.loads(items[2]["arguments"]) == {
        "command": "echo one",
        "description": "says one",
    }
    assert "3" in items[5]["output"]
    assert items[2]["call_id"] == items[3]["call_id"]
    assert items[6]["content"][0]["text"] == "Done first."


def test_claude_code_continues_what_was_said_in_codex(repo, clients):
    claude, codex = clients
    codex.codex("uno")
    (imported,) = gitcp(clients, "import-history")["conversations"]
    number = str(imported["checkpoint"]["number"])
    done = gitcp(clients, "resume", number, "--with", "claude-code")
    assert done["how"] == "converted"
    session = taken(done, "claude", "--resume")
    claude.ask("go on", cwd=repo, resume=session)
    sent = claude.server.messages("go on")
    blocks = [
        (message["role"], block)
        for message in sent
        for block in (
            [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], str)
            else message["content"]
        )
        if "<system-reminder>" not in json.dumps(block) and message["role"] != "system"
    ]
    shape = [(role, one["type"]) for role, one in blocks]
    assert shape == [
        ("user", "text"),
        ("assistant", "tool_use"),
        ("user", "tool_result"),
        ("assistant", "tool_use"),
        ("user", "tool_result"),
        ("assistant", "text"),
        ("user", "text"),
    ]
    assert blocks[0][1]["text"] == "uno"
    assert (blocks[1][1]["name"], blocks[1][1]["input"]) == (
        "exec_command",
        {"cmd": "echo uno > uno"},
    )
    assert blocks[1][1]["id"] == blocks[2][1]["tool_use_id"]
    assert "uno" in json.dumps(blocks[4][1]["content"])
    assert blocks[5][1]["text"] == "Hecho."
