"""Two agents at work in one work tree at the same time: what is said of their turns."""

from __future__ import annotations

import time

import pytest

from gitcp.format.checkpoint import timestamp
from tests.support.agent import Agent
from tests.support.inprocess import invoke, ok


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return tmp_path / "claude"


class Timed(Agent):
    """An agent whose client notes when something was said, as the real ones do."""

    def spoke(self, role, text, **more):
        return super().spoke(role, text, timestamp=timestamp(time.time()), **more)


@pytest.fixture
def one(repo, config):
    return Timed(repo, config)


@pytest.fixture
def other(repo, config):
    return Timed(repo, config)


def rows(repo, *args):
    return {
        row["note"]: row for row in ok(repo, "log", *args)["checkpoints"] if row["turn"]
    }


def beside(row):
    return [each["number"] for each in row["turn"]["beside"]]


def shown(repo, *args):
    done = invoke(repo, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_turns_that_overlap_name_each_other(repo, one, other):
    one.turn("alone", a="1")
    one.ask("outer")
    other.ask("inner")
    (repo / "b").write_text("2")
    inner = other.answer("done")
    (repo / "c").write_text("3")
    outer = one.answer("done")
    other.turn("afterwards", d="4")
    found = rows(repo)
    assert beside(found["outer"]) == [inner.number]
    assert beside(found["inner"]) == [outer.number]
    assert beside(found["alone"]) == beside(found["afterwards"]) == []
    (named,) = found["inner"]["turn"]["beside"]
    assert (named["id"], named["agent"], named["prompt"], named["session"]) == (
        *(outer.id, "claude-code", "outer", outer.session),
    )
    assert rows(repo, "-s", inner.session)["inner"] == found["inner"]
    assert rows(repo, "--all")["inner"] == found["inner"]
    document = ok(repo, "show", str(inner.number))
    assert document["turn"]["beside"] == [named]

    log = shown(repo, "log")
    assert log.count(" beside ") == 2
    assert f"beside #{outer.number}" in log
    assert f'  beside   #{inner.number} Claude Code: "inner"\n' in shown(
        repo, "show", str(outer.number)
    )
    assert "beside" not in shown(repo, "show", "last")


def test_turns_that_have_no_checkpoint_of_their_beginning_overlap_by_the_clock(
    repo, one, other
):
    one.turn("first", a="1")
    other.turn("second", b="2")
    one.ask("third")
    one.answer("done")
    assert other.ask("fourth") is None
    assert one.ask("fifth") is None
    (repo / "a").write_text("3")
    fourth = other.answer("done")
    (repo / "b").write_text("3")
    fifth = one.answer("done")
    found = rows(repo)
    assert len(found["fourth"]["turn"]["checkpoints"]) == 1
    assert beside(found["fourth"]) == [fifth.number]
    assert beside(found["fifth"]) == [fourth.number]
    assert beside(found["third"]) == beside(found["second"]) == []
