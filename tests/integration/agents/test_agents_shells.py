"""What an agent records in its own shell belongs to its conversation."""

from __future__ import annotations

import json
import os
from unittest import mock

import msgspec
import pytest

from gitcp.agents import bindings
from gitcp.project.workspace import open_workspace
from tests.support import hooks
from tests.support.agent import Agent
from tests.support.gitrepo import git
from tests.support.inprocess import invoke, ok


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    for name in ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_CLI"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "claude"


@pytest.fixture
def one(repo, config):
    return Agent(repo, config)


@pytest.fixture
def other(repo, config):
    return Agent(repo, config)


def shell(agent):
    return {"CLAUDE_CODE_SESSION_ID": agent.ident}


def decided(checkpoint):
    return [entry.text for entry in checkpoint.decisions()]


def waiting(repo):
    return [entry["text"] for entry in ok(repo, "decisions")["pending"]]


def test_a_decision_in_an_agent_s_shell_goes_into_that_agent_s_turn(repo, one, other):
    one.ask("write a test")
    other.ask("it is off by a cent")
    noted = ok(repo, "decide", "round half up", env=shell(other))
    assert (noted["agent"], noted["agent_session"]) == ("claude-code", other.ident)
    ok(repo, "decide", "of a person")
    (repo / "test").write_text("1")
    assert decided(one.answer("done")) == ["of a person"]
    assert waiting(repo) == ["round half up"]
    ok(repo, "save", "-m", "by hand", "--allow-empty")
    assert waiting(repo) == ["round half up"]
    assert decided(other.answer("done")) == ["round half up"]
    assert waiting(repo) == []
    found = ok(repo, "decisions")["decisions"]
    assert sorted(each["text"] for each in found) == ["of a person", "round half up"]


def test_it_waits_in_the_list_with_the_session_s_name(repo, one):
    one.ask("go")
    done = invoke(repo, "decide", "why", env=shell(one))
    assert done.stdout.startswith(b"Noted for the next save of this conversation:\n")
    (line,) = (repo / ".git/gitcp/pending.jsonl").read_bytes().splitlines()
    found = json.loads(line)
    assert (found["agent"], found["agent_session"]) == ("claude-code", one.ident)
    assert found["text"] == "why"


def test_a_shell_of_a_session_that_saves_nothing_here_is_a_person_s(repo, one, other):
    one.turn("one", a="1")
    for variables in (
        shell(other),
        {**shell(one), "CODEX_THREAD_ID": "01a205bb-c1d4-77e1-8f5c-cf6cd3be83bd"},
        {"GEMINI_CLI": "1"},
    ):
        assert ok(repo, "decide", "x", env=variables)["agent"] is None
    one.hook("SessionEnd", reason="other")
    assert ok(repo, "decide", "x", env=shell(one))["agent"] is None


def test_a_client_that_names_no_session_is_told_where_one_is_open(repo, one):
    one.turn("one", a="1")
    workspace = open_workspace(repo)
    binding = bindings.find(workspace, "claude-code", one.ident)
    assert binding is not None
    gemini = msgspec.structs.replace(binding, agent="gemini", agent_session="g-1")
    bindings.keep(workspace, gemini)
    noted = ok(repo, "decide", "x", env={"GEMINI_CLI": "1"})
    assert (noted["agent"], noted["agent_session"]) == ("gemini", "g-1")
    bindings.keep(workspace, msgspec.structs.replace(gemini, agent_session="g-2"))
    assert ok(repo, "decide", "x", env={"GEMINI_CLI": "1"})["agent"] is None


def test_what_a_killed_agent_recorded_is_not_lost(repo, one, other):
    one.ask("go")
    ok(repo, "decide", "before the crash", env=shell(one))
    path = repo / ".git/gitcp/pending.jsonl"
    raw = path.read_bytes()
    made = other.turn("later", b="2")
    assert decided(made) == []
    entry = json.loads(raw)
    for at in ("2020-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z"):
        path.write_text(json.dumps({**entry, "at": at}) + "\n")
        made = other.turn(f"later {at}", b=at)
        assert decided(made)[-1:] == ["before the crash"]
        assert not path.exists()


def test_the_end_of_a_session_takes_what_is_left(repo, one):
    one.turn("one", a="1")
    ok(repo, "decide", "late", env=shell(one))
    made = one.hook("SessionEnd", reason="other")
    assert decided(made) == ["late"]


def test_a_commit_in_an_agent_s_shell_is_that_agent_s(repo, one, other):
    hooks.install(repo)
    one.ask("commit it")
    (repo / "a").write_text("1")
    ok(repo, "decide", "as one piece", env=shell(one))
    # The other one spoke last.
    other.turn("meanwhile", b="2")
    git(repo, "add", "-A")
    with mock.patch.dict(os.environ, shell(one)):
        git(repo, "commit", "-qm", "a piece")
    made = one.line()[-1]
    assert (made.trigger, decided(made)) == ("commit", ["as one piece"])
