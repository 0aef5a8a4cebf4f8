"""Turns behind `gitcp acp`: what is recorded of them, and when they are saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.acp_wire import line, prompt, state, update
from tests.support.gitrepo import write_files
from tests.support.inprocess import invoke, ok

END_TURN = {"stopReason": "end_turn"}
PING = b'{"method":"x/ping"}\n'


def made(repo: Path) -> list[dict[str, Any]]:
    """The checkpoints, the oldest first."""
    found = ok(repo, "log", "--all", "--full")["checkpoints"]
    return sorted(found, key=lambda one: one["number"])


def said(repo: Path, number: int) -> list[dict[str, Any]]:
    """The conversation that a checkpoint holds."""
    raw = invoke(repo, "messages", str(number), "--format", "jsonl").stdout
    return [json.loads(one) for one in raw.splitlines()]


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [block["text"] for one in messages for block in one["content"]]


def cancel(session: str) -> bytes:
    return line({"method": "session/cancel", "params": {"sessionId": session}})


# --- what a turn becomes --------------------------------------------------------------


def test_each_answer_is_saved_word_for_word_with_the_files(saving, repo):
    wire = saving()
    wire.open(cwd=str(repo))
    asked = line(prompt("s1", "do a\u00e4 \\ \U0001f600"))
    wire.editor.send(asked)
    assert wire.heard() == asked
    wire.say("did \x1b[1m\u2028")
    write_files(repo, {"made": b"by the agent"})
    wire.reply_with(7, END_TURN)
    wire.turn("again", "did again")
    assert wire.end() == 0
    found = made(repo)
    assert [(one["trigger"], one["note"]) for one in found] == [
        ("turn-start", "before: do a\u00e4 \\ \U0001f600"),
        ("turn-end", "do a\u00e4 \\ \U0001f600"),
        ("turn-end", "again"),
    ]
    assert found[0]["conversation"] is None
    assert texts(said(repo, 2)) == ["do a\u00e4 \\ \U0001f600", "did \x1b[1m\u2028"]
    assert texts(said(repo, 3))[2:] == ["again", "did again"]
    shown = [invoke(repo, "cat", str(number), "made") for number in (1, 2)]
    assert shown[0].returncode != 0
    assert shown[1].stdout == b"by the agent"


def test_an_interrupted_turn_is_saved_with_what_was_said(saving, repo):
    wire = saving()
    wire.open(cwd=str(repo))
    wire.turn("one", "done")
    wire.editor.send(prompt("s1", "two", 8))
    wire.heard()
    wire.say("last words")
    wire.agent.send(b'{"method":"session/upd')
    assert wire.end(3) == 3
    assert wire.editor.got.endswith(b'{"method":"session/upd')
    kept = said(repo, made(repo)[-1]["number"])
    assert texts(kept) == ["one", "done", "two", "last words"]
    assert [one.get("stop_reason") for one in kept] == [
        None,
        "end_turn",
        None,
        "interrupted",
    ]


def test_a_turn_that_fails_or_is_cancelled_is_recorded_as_that(start):
    wire = start()
    wire.open()
    wire.editor.send(prompt("s1", "one"))
    wire.heard()
    failed = {"id": 7, "error": {"code": -32000, "message": "no quota"}}
    wire.agent.send(failed)
    wire.seen()
    wire.editor.send(prompt("s1", "two", "8"), cancel("s1"))
    wire.heard()
    assert wire.heard() == cancel("s1")
    wire.reply_with("8", {"stopReason": "cancelled"})
    wire.end()
    # Once each, and once at the end.
    assert [one["event"] for one in wire.asked].count("turn-end") == 3
    stops = [one["stop_reason"] for one in wire.talk("s1") if "stop_reason" in one]
    assert stops == ["error: no quota", "cancelled"]


def test_what_an_agent_tells_of_itself_is_not_part_of_the_talk(start):
    wire = start()
    wire.open()
    wire.editor.send(prompt("s1", "one"))
    wire.heard()
    for kind in ("available_commands_update", "usage_update", "user_message_chunk"):
        told = update("s1", kind, content={"type": "text", "text": "not this"})
        wire.agent.send(told)
        assert json.loads(wire.seen()) == told
    wire.say("this")
    wire.reply_with(7, END_TURN)
    # Between turns nothing belongs to one; nor does what comes for another session.
    wire.say("late")
    wire.say("unknown", "s2")
    wire.end()
    raw = wire.folder("s1").talk.read_bytes()
    assert wire.texts("s1") == ["one", "this"]
    assert b"not this" not in raw
    assert b"late" not in raw


def test_a_tool_that_has_ended_is_saved_and_recorded(start):
    wire = start()
    wire.open(cwd="/p")
    wire.editor.send(prompt("s1", "one"))
    wire.heard()
    call: dict[str, Any] = {"toolCallId": "c", "title": "Edit a", "kind": "edit"}
    for more in (
        {"status": "in_progress"},
        {"status": "completed"},
        {"status": "completed", "title": None},
    ):
        wire.agent.send(update("s1", "tool_call_update", **{**call, **more}))
        wire.seen()
    wire.reply_with(7, END_TURN)
    wire.end()
    tools = [one for one in wire.asked if one["event"] == "tool"]
    assert tools == [
        {"event": "tool", "session": "s1", "cwd": "/p", "tool": "Edit a"},
        {"event": "tool", "session": "s1", "cwd": "/p", "tool": "tool"},
    ]
    used = wire.talk("s1")[1]["content"]
    assert [(one["type"], one["id"], one["title"]) for one in used] == [
        ("tool_use", "c", "Edit a")
    ]


def test_an_agent_that_answers_a_prompt_early_ends_its_turn_by_its_state(start):
    wire = start()
    wire.editor.send({"id": 0, "method": "initialize", "params": {}})
    wire.heard()
    wire.reply_with(0, {"protocolVersion": 2})
    wire.open()
    wire.editor.send(prompt("s1", "one"))
    wire.heard()
    wire.reply_with(7, {})
    wire.say("after the answer")
    wire.agent.send(update("s1", "state_update", state="running"))
    wire.seen()
    wire.say("more")
    wire.agent.send(update("s1", "state_update", state="idle", stopReason="max_tokens"))
    wire.seen()
    wire.say("late")
    wire.end()
    assert wire.texts("s1") == ["one", "after the answermore"]
    assert wire.talk("s1")[-1]["stop_reason"] == "max_tokens"


# --- what waits -----------------------------------------------------------------------


def test_a_prompt_waits_for_its_checkpoint_and_only_its_session_waits_with_it(start):
    wire = start()
    wire.open("s1")
    wire.open("s2")
    wire.saves = False
    first, second = line(prompt("s1", "one")), line(prompt("s1", "two", 8))
    stop = line({"method": "$/cancel_request", "params": {"requestId": 7}})
    wire.editor.send(first, cancel("s1"), cancel("s2"), stop, second)
    assert wire.heard_until(PING) == cancel("s2") + PING
    wire.saves = True
    waited = [wire.heard() for _ in range(4)]
    assert waited == [first, cancel("s1"), stop, second]
    # Both prompts are one turn, which lasts until both are answered.
    wire.say("a")
    wire.reply_with(7, {"stopReason": "cancelled"})
    wire.say("b")
    wire.reply_with(8, END_TURN)
    wire.end()
    events = [(one["event"], one["session"]) for one in wire.asked if "session" in one]
    assert events.count(("turn-start", "s1")) == 1
    assert events.count(("turn-end", "s1")) == 2
    assert wire.texts("s1")[-1:] == ["ab"]


def test_what_comes_while_a_prompt_is_handed_on_comes_after_it(start):
    """The user's cancel would be lost on an agent that has no prompt yet."""
    wire = start()
    wire.open()
    wire.saves = False
    asked = line(prompt("s1", "one"))
    wire.editor.send(asked)
    request = wire.request()
    # The agent does not read: when the checkpoint is made, another line is on its way.
    large = line({"method": "x/large", "params": "z" * 1_000_000})
    wire.editor.send(large[:-99], large[-99:] + cancel("s1"))
    assert wire.agent.take()
    wire.reply(request)
    wire.saves = True
    assert [wire.heard() for _ in range(3)] == [large, asked, cancel("s1")]


def test_a_prompt_during_a_turn_is_handed_on_at_once_and_belongs_to_it(start):
    wire = start()
    wire.open()
    wire.editor.send(prompt("s1", "one"))
    wire.heard()
    wire.saves = False
    more = line(prompt("s1", "more", 8))
    assert wire.heard_until(more) == more
    wire.agent.send({"id": 7, "result": END_TURN})
    wire.seen()
    wire.say("both")
    wire.agent.send({"id": 8, "result": END_TURN})
    wire.seen()
    wire.end()
    assert wire.texts("s1")[-1:] == ["both"]
    assert [one["event"] for one in wire.asked].count("turn-start") == 1


def _ask(ident: Any, kind: str = "execute", session: str = "s1", **call: Any) -> dict:
    params = {"sessionId": session, "toolCall": {"kind": kind, **call}, "options": []}
    method = "session/request_permission"
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


@pytest.mark.parametrize(
    ("call", "command"),
    [
        ({"rawInput": {"command": "rm a"}, "title": "Remove"}, "rm a"),
        ({"rawInput": {"command": ["rm"]}, "title": "`rm b`"}, "rm b"),
        ({"title": "rm c"}, "rm c"),
        ({}, "?"),
    ],
)
def test_the_answer_to_a_command_waits_for_a_checkpoint_before_it(start, call, command):
    wire = start()
    wire.open(cwd="/p")
    wire.saves = False
    asked = _ask(0, **call)
    wire.agent.send(asked)
    assert json.loads(wire.seen()) == asked
    chosen = b'{"id": 0, "result": {"outcome":  "yes"}}\n'
    other = b'{"id":"0","result":{}}\n'
    wire.editor.send(chosen, other)
    assert wire.heard() == other
    assert wire.save() == {
        "event": "before-command",
        "session": "s1",
        "cwd": "/p",
        "command": command,
    }
    assert wire.heard() == chosen
    # An id may be used again, for what is not a command.
    wire.agent.send(_ask(0, "read"))
    wire.seen()
    assert wire.heard_until(chosen) == chosen


@pytest.mark.parametrize(
    "asked", [_ask(1, "edit"), _ask(1, session="s9"), _ask(1) | {"params": None}]
)
def test_no_other_answer_waits(start, asked):
    wire = start()
    wire.open()
    wire.saves = False
    wire.agent.send(asked)
    wire.seen()
    answer = b'{"id":1,"result":{}}\n'
    assert wire.heard_until(answer) == answer


# --- what a killed proxy left ---------------------------------------------------------


def test_turns_that_a_killed_proxy_wrote_down_are_saved_by_the_next_start(saving, repo):
    wire = saving()
    wire.open(cwd=str(repo))
    wire.turn("one", "done")
    wire.end()
    left = wire.folder("s1").begin(1 << 61)
    with open(left, "wb") as file:
        heading = {"turn": 1 << 61, "at": "2026-11-23T10:00:00Z", "cwd": str(repo)}
        spoken = update("s1", "agent_message_chunk", content={"text": "half an an"})
        file.write(line(heading) + line(prompt("s1", "two")) + line(spoken)[:-1])
    nameless = state() / "nameless"
    nameless.mkdir()
    (nameless / "1.turn").write_bytes(b"{}")
    other = saving()
    other.end()
    kept = said(repo, made(repo)[-1]["number"])
    assert texts(kept) == ["one", "done", "two", "half an an"]
    assert kept[-1]["stop_reason"] == "interrupted"
    assert wire.folder("s1").turns() == []
    assert (nameless / "1.turn").exists()


def test_a_turn_of_a_proxy_that_runs_is_not_taken_from_it(start):
    one = start()
    one.open()
    one.editor.send(prompt("s1", "one"))
    one.heard()
    other = start()
    other.end()
    assert [each["event"] for each in other.asked] == ["remove-old"]
    one.say("still here")
    one.end()
    assert one.texts("s1") == ["one", "still here"]
