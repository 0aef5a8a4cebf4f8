"""What `log` shows of a work tree, whatever is in the conversations."""

from __future__ import annotations

import uuid

import pytest

from tests.support.agent import Agent
from tests.support.inprocess import invoke, ok


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Agent(repo, tmp_path / "claude")


def lines(repo, *args):
    done = invoke(repo, "log", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_a_tool_s_name_adds_no_line(repo, agent):
    agent.ask("do it")
    name = "Edit\n  #99  now  deleted everything\x1b[2J"
    agent.record(
        "assistant",
        uuid=str(uuid.uuid4()),
        message={
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": name, "input": {}}],
        },
    )
    agent.answer("done")
    shown = lines(repo)
    assert not any(line.startswith("  #99") for line in shown)
    assert not any("\x1b" in line for line in shown)
    (row,) = [line for line in shown if "do it" in line and "#" in line]
    assert "Edit" in row


def test_a_graph_keeps_to_what_was_asked_for(repo, agent):
    agent.turn("one", a="1")
    (repo / "b").write_text("2")
    ok(repo, "save", "-m", "by hand", "-s", "other")
    everything = lines(repo, "--graph")
    assert sum("#" in line for line in everything) == 3
    (row,) = lines(repo, "--graph", "-s", "other")
    assert "by hand" in row
    assert not lines(repo, "--graph", "--grep", "nothing like it")


def test_the_first_turn_counts_what_it_changed_and_not_what_was_there(repo, agent):
    (repo / "there").write_text("1")
    agent.ask("go")
    (repo / "new").write_text("2")
    agent.about_to_run("make")
    (repo / "there").write_text("3")
    agent.answer("done")
    (row,) = ok(repo, "log")["checkpoints"]
    assert row["changed"] == {"added": 1, "modified": 1, "deleted": 0}
