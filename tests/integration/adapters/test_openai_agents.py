"""GitcpSession, as the OpenAI Agents SDK uses a session."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import SessionSettings
from agents.memory import Session

import gitcp
from gitcp.adapters import openai_agents
from gitcp.adapters.openai_agents import GitcpSession
from gitcp.checkpoints import save as saving
from gitcp.errors import UsageError
from tests.support.clones import clone, make_hub, results
from tests.support.gitrepo import write_files
from tests.support.inprocess import ok

ASKED = {"role": "user", "content": "Do it"}
CALL = {"type": "function_call", "name": "run", "arguments": "{}", "call_id": "c"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "\ud83d ran"}
ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}


@pytest.fixture
def history(repo: Path) -> GitcpSession:
    made: Session = GitcpSession(gitcp.open(repo).session("work"))
    assert isinstance(made, GitcpSession)
    return made


def items(history: GitcpSession, limit: int | None = None) -> list[Any]:
    return asyncio.run(history.get_items(limit))


def add(history: GitcpSession, *added: Any) -> None:
    asyncio.run(history.add_items(list(added)))


def test_items_come_back_equal_and_in_order(history, repo):
    assert items(history) == []
    add(history)
    assert gitcp.open(repo).session("work").last is None
    add(history, ASKED)
    add(history, CALL, OUTPUT)
    add(history, ANSWER)
    assert items(history) == [ASKED, CALL, OUTPUT, ANSWER]
    assert items(history, 2) == [OUTPUT, ANSWER]
    assert items(history, 0) == []
    assert items(history, 9) == [ASKED, CALL, OUTPUT, ANSWER]


def test_each_addition_is_a_checkpoint_of_a_turn(history, repo):
    session = gitcp.open(repo).session("work")
    parts: list[list[Any]] = [[ASKED], [CALL, OUTPUT], [ANSWER]]
    for number, added in enumerate(parts):
        write_files(repo, {"file": b"%d" % number})
        add(history, *added)
    found = [(one.trigger, one.note) for one in session.checkpoints()]
    assert found == [
        ("turn-end", "Do it"),
        ("tool", "run: Do it"),
        ("turn-start", "before: Do it"),
    ]
    session.restore("last~1")
    assert (repo / "file").read_bytes() == b"1"
    assert items(history) == [ASKED, CALL, OUTPUT]


def test_a_strangers_history_is_none_of_an_agent(tmp_path):
    hub = make_hub(tmp_path)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    add(GitcpSession(gitcp.open(ann).session("work")), ASKED, CALL)
    results(ann, "push")
    results(bob, "pull")
    session = gitcp.open(bob).session("work")
    for how in (GitcpSession.get_items, GitcpSession.pop_item):
        with pytest.raises(UsageError, match="made elsewhere"):
            asyncio.run(how(GitcpSession(session)))
    trusting = GitcpSession(session, trust=True)
    add(trusting, OUTPUT)
    assert items(trusting) == [ASKED, CALL, OUTPUT]
    # What continues it here has it, too.
    with pytest.raises(UsageError, match="made elsewhere"):
        items(GitcpSession(session))
    ok(bob, "trust", "origin")
    assert items(GitcpSession(session)) == [ASKED, CALL, OUTPUT]


def test_the_settings_limit_what_is_read(repo):
    settings = SessionSettings(limit=1)
    history = GitcpSession(gitcp.open(repo).session("work"), session_settings=settings)
    add(history, ASKED, ANSWER)
    assert items(history) == [ANSWER]
    assert items(history, 2) == [ASKED, ANSWER]


def test_the_newest_item_is_taken_away_and_then_all(history):
    assert asyncio.run(history.pop_item()) is None
    asyncio.run(history.clear_session())
    add(history, ASKED, ANSWER)
    assert asyncio.run(history.pop_item()) == ANSWER
    assert items(history) == [ASKED]
    add(history, ANSWER)
    assert items(history) == [ASKED, ANSWER]
    asyncio.run(history.clear_session())
    assert items(history) == []
    assert asyncio.run(history.pop_item()) is None
    add(history, ASKED)
    assert items(history) == [ASKED]


def test_what_another_one_adds_meanwhile_is_not_lost(history, repo, monkeypatch):
    """It is there after the look that finds something to pop, and before the change."""
    other = GitcpSession(gitcp.open(repo).session("work"))
    add(history, ASKED)
    save = saving.save

    def later(*args, **given):
        monkeypatch.setattr(openai_agents, "save", save)
        other._session.save(append=[ANSWER])
        return save(*args, **given)

    monkeypatch.setattr(openai_agents, "save", later)
    assert asyncio.run(history.pop_item()) == ANSWER
    assert items(history) == [ASKED]


def test_a_change_is_made_though_the_caller_is_cancelled(history):
    async def add_and_cancel() -> None:
        task = asyncio.ensure_future(history.add_items([ASKED]))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await history.get_items() == [ASKED]

    asyncio.run(add_and_cancel())


def test_what_is_not_json_is_refused(history):
    with pytest.raises(gitcp.UsageError):
        add(history, {"role": "user", "content": object()})
    assert items(history) == []
