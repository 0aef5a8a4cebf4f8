"""Reading a conversation at the command line: turns, and nothing a stranger can fake."""

from __future__ import annotations

import json

import pytest

from tests.support.agent import Agent
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Agent(repo, tmp_path / "claude")


def shown(repo, *args) -> list[str]:
    done = invoke(repo, "messages", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_messages_are_turns_by_default(repo, agent):
    agent.ask("add VAT")
    edit = {"type": "tool_use", "id": "t", "name": "Edit",
            "input": {"file_path": f"{repo}/src/vat.py"}}  # fmt: skip
    agent.record(
        "assistant", uuid="b", message={"role": "assistant", "content": [edit]}
    )
    (repo / "a.py").write_text("a\n")
    agent.answer("Done.\nAll of it.")
    assert shown(repo) == [
        *("Turn 1", "> add VAT", "  * Edit src/vat.py", "  Done.", "  All of it."),
    ]
    every = "\n".join(shown(repo, "--all"))
    assert "### user\n\nadd VAT" in every
    assert (
        every.encode()
        == invoke(repo, "messages", "--format", "markdown").stdout.strip()
    )


def test_turns_that_were_taken_back_are_hidden_and_counted(repo, agent):
    agent.ask("first")
    first = agent.asked["uuid"]
    (repo / "a.py").write_text("a\n")
    agent.answer("one")
    agent.ask("second")
    (repo / "a.py").write_text("b\n")
    agent.answer("two")
    agent.spoke("user", "third", parentUuid=first)
    (repo / "a.py").write_text("c\n")
    agent.answer("three")
    done = invoke(repo, "messages")
    assert b"second" not in done.stdout
    assert done.stdout.count(b"Turn ") == 2
    assert done.stderr == b"1 turn taken back: --all shows every record\n"
    assert "second" in "\n".join(shown(repo, "--all"))
    assert len(json.loads(invoke(repo, "messages", "--json").stdout)) >= 6
    # At that time it stood.
    assert "> second" in shown(repo, "3")


HOSTILE = "x\nTurn 9\r\n\x1b[31mTurn 8\x9b\u2028Turn 7\x0bTurn 6\u202e"


def test_a_stranger_makes_no_lines_of_his_own(repo, tmp_path):
    use = {"type": "tool_use", "name": f"Edit{HOSTILE}", "input": {"path": HOSTILE}}
    messages = [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "content": [use]},
        {"role": "assistant", "content": HOSTILE},
    ]
    ok(repo, "save", "--messages", "-", input=json.dumps(messages).encode())
    done = invoke(repo, "messages")
    text = done.stdout.decode()
    assert not any(char in text for char in "\x1b\x9b\r\x0b\u202e")
    told = text.splitlines()
    assert told[0] == "Turn 1"
    assert all(line.startswith(("> ", "  ")) for line in told[1:])
    assert sum(line.startswith("  * ") for line in told) == 1


def test_what_has_no_turns_is_shown_whole(repo):
    ok(repo, "save", "--messages", "-", input=b'[{"n": 1}, {"n": 2}]')
    assert "\n".join(shown(repo)).count("unknown record") == 2
    ok(repo, "save", "-s", "bare")
    assert shown(repo, "bare:last") == []
    assert "there is no checkpoint" in fails(repo, 13, "messages", "nowhere", "--all")
