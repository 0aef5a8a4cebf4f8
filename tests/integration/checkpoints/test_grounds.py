"""Reasons and the turns they are from: what about a path, and what was taken back."""

from __future__ import annotations

import pytest

from tests.support.agent import Agent
from tests.support.inprocess import invoke, ok

ROUND = "round half up, as the tax office does"


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Agent(repo, tmp_path / "claude")


@pytest.fixture
def decided(repo, agent):
    """A turn that changed a file and decided something, after one that made the file."""
    agent.turn("add VAT", vat="1", other="1")
    agent.ask("it is off by a cent")
    (repo / "vat").write_text("rounded")
    ok(repo, "decide", ROUND, "--why", "banker rounding was off")
    ok(repo, "decide", "half even", "--kind", "tried")
    return agent.answer("Rounded half up.")


def texts(repo, *args: str) -> list[str]:
    return [one["text"] for one in ok(repo, "decisions", *args)["decisions"]]


def test_the_reasons_of_turns_that_changed_a_path_are_about_it(repo, decided):
    assert set(texts(repo, "--path", "vat")) == {ROUND, "half even"}
    assert texts(repo, "--path", "other") == []
    assert set(texts(repo, "--path", ".")) == {ROUND, "half even"}
    shown = invoke(repo, "decisions", "--path", "vat").stdout.decode()
    assert ROUND in shown
    # What names its paths is about these alone.
    ok(repo, "save", "--decision", "by hand", "-s", "main", "--allow-empty")
    ok(repo, "decide", "elsewhere", "--path", "docs")
    (repo / "vat").write_text("again")
    ok(repo, "save", "-s", "main")
    assert set(texts(repo, "--path", "vat")) == {ROUND, "half even"}
    assert texts(repo, "--path", "docs") == ["elsewhere"]
    # In the log of one checkpoint, too.
    assert set(texts(repo, f"#{decided.number}", "--path", "vat")) == {
        ROUND,
        "half even",
    }


def test_a_decision_whose_files_went_back_is_marked(repo, decided, agent):
    found = ok(repo, "decisions")["decisions"]
    assert {one["taken_back"] for one in found} == {False}
    ok(repo, "restore", "-y", f"#{decided.number - 1}", "vat")
    found = {
        one["text"]: one["taken_back"] for one in ok(repo, "decisions")["decisions"]
    }
    # What was tried and failed stays true.
    assert found == {ROUND: True, "half even": False}
    shown = invoke(repo, "decisions").stdout.decode()
    assert "banker rounding was off\n            taken back: its files" in shown
    told = invoke(repo, "context").stdout.decode()
    assert "## Decisions" not in told
    assert f"## Decided, and taken back since\n\n* {ROUND} (because" in told
    assert "## Dead ends: tried, and failed\n\n* half even" in told
    new = Agent(repo, agent.transcript.parents[2])
    injected = new.told("", "SessionStart", source="startup")
    assert injected is not None
    assert "taken back since" in injected
    ok(repo, "undo", "-y")
    assert "taken back" not in invoke(repo, "decisions").stdout.decode()
    (repo / "vat").write_text("later work")
    ok(repo, "save")
    assert "taken back" not in invoke(repo, "decisions").stdout.decode()


def test_what_was_decided_twice_is_told_once(repo, decided, agent):
    agent.ask("once more")
    (repo / "vat").write_text("rounded again")
    ok(repo, "decide", ROUND, "--why", "banker rounding was off")
    ok(repo, "decide", ROUND, "--why", "for another reason")
    agent.answer("done")
    assert sorted(texts(repo)) == [*["half even"], *[ROUND] * 2]
    # The log of a checkpoint has what was recorded.
    assert len(texts(repo, "-s", "add vat")) == 4


def test_last_is_what_is_taken_where_no_checkpoint_is_named(repo, decided, agent):
    other = Agent(repo, agent.transcript.parents[2])
    other.turn("what to do?", new="1")
    for command in ("context", "decisions"):
        assert ok(repo, command, "last") == ok(repo, command), command
    told = invoke(repo, "context", "last").stdout.decode()
    assert told.startswith("# What led to the present state of this project\n")
    assert ROUND in told
    number = decided.number
    told = invoke(repo, "context", f"#{number}").stdout.decode()
    assert told.startswith(f"# What led to checkpoint #{number}\n\nit is off by a cent")
    ok(repo, "restore", "-y", f"#{number}")
    assert f": restored #{number}\n" in invoke(repo, "context").stdout.decode()
