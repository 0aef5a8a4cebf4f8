"""Sessions behind `gitcp acp`: which one a prompt belongs to, and what a restore leaves to it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from gitcp.clients.acp_folder import About, SessionFolder
from tests.support.acp_wire import Wire, line, prompt, state
from tests.support.inprocess import ok

FORKS: dict[str, Any] = {"agentCapabilities": {"sessionCapabilities": {"fork": {}}}}
FAILED = {"code": -32601, "message": "not known"}


def ask(wire: Wire, method: str, ident: Any = 1, **params: Any) -> bytes:
    """Sends a request of the editor's; returns what the agent gets."""
    wire.editor.send({"id": ident, "method": method, "params": params})
    return wire.heard()


def refuse(wire: Wire, ident: Any = 1) -> None:
    wire.agent.send({"id": ident, "error": FAILED})
    assert json.loads(wire.seen()) == {"id": ident, "error": FAILED}


def initialize(wire: Wire, result: dict[str, Any]) -> None:
    ask(wire, "initialize", 0)
    wire.reply_with(0, result)


def restored(
    name: str, text: str, top: Path, *, age: float = 0, whole: str | None = None
) -> SessionFolder:
    """A folder as a restore leaves it, for the next new session."""
    folder = SessionFolder(state() / name)
    top_path = os.path.realpath(top)
    folder.note(About(str(top), top=top_path, whole=whole, replayed=False))
    said = {"role": "user", "content": [{"type": "text", "text": text}]}
    folder.talk.write_bytes(line(said))
    then = time.time() - age
    os.utime(folder.path / "session.json", (then, then))
    return folder


def given(wire: Wire, session: str, ident: Any = 7) -> list[str]:
    """The texts that the agent gets with a prompt."""
    wire.editor.send(prompt(session, "go on", ident))
    message = json.loads(wire.heard())
    wire.reply_with(ident, {"stopReason": "end_turn"})
    return [block["text"] for block in message["params"]["prompt"]]


# --- sessions that were there before --------------------------------------------------


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_session_that_is_loaded_continues_its_talk_on_its_branch(
    saving, repo, method
):
    wire = saving()
    wire.open(cwd=str(repo))
    wire.turn("one", "done")
    wire.end()
    other = saving()
    ask(other, method, sessionId="s1", cwd=str(repo))
    # What it replays belongs to no turn.
    other.say("said long ago")
    other.reply_with(1, {})
    other.turn("two", "done too")
    other.end()
    assert other.texts("s1") == ["one", "done", "two", "done too"]
    found = ok(repo, "log", "--all", "--full")["checkpoints"]
    assert {(one["session"], one["branch"]) for one in found} == {("acp-s1", "main")}


def test_a_session_that_is_prompted_unseen_continues_in_the_directory_of_the_proxy(
    start, tmp_path
):
    wire = start()
    wire.open()
    wire.turn("one", "done")
    wire.end()
    other = start()
    other.turn("two", "done too")
    other.end()
    assert other.texts("s1") == ["one", "done", "two", "done too"]
    assert other.asked[0]["cwd"] == str(tmp_path / "project")


@pytest.mark.parametrize("why", ["another directory", "another agent", "new", "in use"])
def test_an_id_of_another_session_gets_a_talk_of_its_own(start, tmp_path, why):
    one = start()
    one.open()
    one.turn("one", "done")
    if why != "in use":
        one.end()
    other = start(words=("/bin/other",) if why == "another agent" else ("/bin/agent",))
    if why == "new":
        other.open()
    else:
        cwd = tmp_path / ("elsewhere" if why == "another directory" else "project")
        ask(other, "session/load", sessionId="s1", cwd=str(cwd))
        other.reply_with(1, {})
    other.turn("two", "done too")
    other.end()
    assert one.texts("s1") == ["one", "done"]
    (name,) = {each["session"] for each in other.asked if "session" in each} - {"s1"}
    assert name.startswith("s1-")
    assert other.texts(name) == ["two", "done too"]


def test_a_session_that_cannot_be_loaded_is_not_begun(start):
    wire = start()
    ask(wire, "session/load", sessionId="s1", cwd="/p")
    refuse(wire)
    wire.end()
    assert [one["event"] for one in wire.asked] == ["remove-old"]
    assert not wire.root.exists()


def test_the_session_that_grew_last_is_loaded_if_two_have_its_id(start):
    for text in ("one", "two"):
        wire = start()
        wire.open()
        wire.turn(text, "done")
        wire.end()
    os.utime(state() / "s1" / "talk.jsonl", (1, 1))
    other = start()
    other.turn("three", "done")
    name = other.asked[0]["session"]
    other.end()
    assert other.texts(name) == ["two", "done", "three", "done"]


def test_a_session_that_is_closed_is_saved_and_may_be_opened_again(start):
    wire = start()
    wire.open()
    wire.turn("one", "done")
    ask(wire, "session/close", sessionId="s1")
    refuse(wire)
    wire.turn("two", "done", ident=8)
    ask(wire, "session/close", 2, sessionId="s1")
    wire.reply_with(2, {})
    other = start()
    other.turn("three", "done")
    other.end()
    wire.end()
    ended = [one for one in wire.asked if one["event"] == "session-end"]
    assert [one["session"] for one in ended] == ["s1"]
    assert wire.texts("s1")[::2] == ["one", "two", "three"]


def test_a_fork_by_the_editor_begins_with_the_talk_of_its_origin(start):
    wire = start()
    wire.open()
    wire.editor.send(prompt("s1", "one"))
    wire.heard()
    wire.say("done")
    # The fork is made before the turn is saved.
    wire.saves = False
    wire.reply_with(7, {"stopReason": "end_turn"})
    asked = ask(wire, "session/fork", sessionId="s1", cwd="/p")
    assert json.loads(asked)["method"] == "session/fork"
    wire.reply_with(1, {"sessionId": "f1"})
    wire.saves = True
    assert given(wire, "f1") == ["go on"]
    wire.turn("two", "done", ident=8)
    ask(wire, "session/fork", 2, sessionId="unknown", cwd="/p")
    wire.reply_with(2, {"sessionId": "f2"})
    wire.turn("three", "done", "f2", 9)
    wire.end()
    assert wire.texts("f1") == ["one", "done", "go on"]
    assert wire.texts("s1") == ["one", "done", "two", "done"]
    assert wire.texts("f2") == ["three", "done"]


def test_an_agent_that_gives_an_id_again_has_a_new_session(start):
    wire = start()
    for text in ("one", "two"):
        wire.open()
        wire.turn(text, "done")
    names = {one["session"] for one in wire.asked if "session" in one}
    wire.end()
    assert len(names) == 2
    assert sorted(wire.texts(name)[0] for name in names) == ["one", "two"]


# --- after a restore ------------------------------------------------------------------


def test_the_next_new_session_is_given_the_restored_talk_once(start, tmp_path):
    restored("older", "older", tmp_path)
    folder = restored("r", "said before", tmp_path)
    os.utime(state() / "older" / "session.json", (time.time() - 9,) * 2)
    wire = start()
    wire.open()
    first, own = given(wire, "s1")
    assert "said before" in first
    assert "older" not in first
    assert own == "go on"
    assert given(wire, "s1", 8) == ["go on"]
    wire.open("s2")
    assert given(wire, "s2", 9) == ["go on"]
    wire.end()
    assert wire.texts("r") == ["said before", "go on", "go on"]
    about = folder.about()
    assert about is not None
    assert (about.session, about.replayed) == ("s1", True)


@pytest.mark.parametrize("why", ["elsewhere", "beside", "old", "claimed", "unreadable"])
def test_no_other_session_is_given_a_restored_talk(start, tmp_path, why):
    top = tmp_path / {"elsewhere": "other", "beside": "proj"}.get(why, "project")
    top.mkdir(exist_ok=True)
    folder = restored("r", "before", top, age=13 * 3600 if why == "old" else 0)
    if why == "claimed":
        (folder.path / "waiting").touch()
    if why == "unreadable":
        (folder.path / "session.json").write_bytes(b"{")
    wire = start()
    wire.open(cwd=str(tmp_path / "project"))
    assert given(wire, "s1") == ["go on"]
    wire.end()


def test_a_talk_waits_for_the_next_session_if_one_was_not_made(start, tmp_path):
    restored("r", "said before", tmp_path)
    wire = start()
    ask(wire, "session/new")
    refuse(wire)
    wire.open()
    assert "said before" in given(wire, "s1")[0]
    wire.end()


def test_a_talk_is_given_after_a_restart_if_the_agent_had_no_prompt(start, tmp_path):
    restored("r", "said before", tmp_path)
    wire = start()
    wire.open()
    wire.end()
    other = start()
    ask(other, "session/load", sessionId="s1", cwd=str(tmp_path / "project"))
    other.reply_with(1, {})
    assert "said before" in given(other, "s1")[0]
    other.end()


def test_a_prompt_that_is_malformed_passes_and_the_talk_waits_for_the_next(
    start, tmp_path
):
    restored("r", "said before", tmp_path)
    wire = start()
    wire.open()
    bad = b'{"id":5,"method":"session/prompt","params":{"sessionId":"s1"}}\n'
    assert wire.heard_until(bad) == bad
    refuse(wire, 5)
    assert "said before" in given(wire, "s1")[0]
    wire.end()


def test_a_talk_that_is_gone_holds_no_prompt_up(start, tmp_path, capsys):
    folder = restored("r", "said before", tmp_path)
    folder.talk.unlink()
    wire = start()
    wire.open()
    assert given(wire, "s1") == ["go on"]
    wire.end()
    assert "no longer saved" in capsys.readouterr().err


def test_an_agent_that_forks_gets_the_session_that_was_restored(start, tmp_path):
    restored("r", "said before", tmp_path, whole="s0")
    wire = start()
    initialize(wire, FORKS)
    raw = b'{"id":1, "method":"session/new", "params":{"mcpServers":[1e400, 1.0]}}\n'
    wire.editor.send(raw)
    heard = wire.heard()
    assert b"[1e400, 1.0]" in heard
    asked = json.loads(heard)
    assert (asked["id"], asked["method"]) == (1, "session/fork")
    assert asked["params"]["sessionId"] == "s0"
    wire.reply_with(1, {"sessionId": "f1"})
    # It knows the talk already.
    assert given(wire, "f1") == ["go on"]
    wire.end()
    assert wire.texts("r") == ["said before", "go on"]


def test_a_session_is_new_if_the_agent_cannot_fork_after_all(start, tmp_path):
    restored("r", "said before", tmp_path, whole="s0")
    wire = start()
    initialize(wire, FORKS)
    asked = ask(wire, "session/new", cwd=str(tmp_path))
    assert json.loads(asked)["method"] == "session/fork"
    wire.agent.send({"id": 1, "error": FAILED})
    again = json.loads(wire.heard())
    assert (again["id"], again["method"]) == (1, "session/new")
    # The editor has heard nothing of the fork.
    wire.reply_with(1, {"sessionId": "s1"})
    assert "said before" in given(wire, "s1")[0]
    wire.end()


def test_a_new_session_that_is_malformed_is_no_fork(start, tmp_path):
    restored("r", "said before", tmp_path, whole="s0")
    wire = start()
    initialize(wire, FORKS)
    raw = b'{"id":1,"method":"session/new"}\n'
    assert wire.heard_until(raw) == raw
    refuse(wire)
    # The talk still waits for one.
    assert json.loads(ask(wire, "session/new"))["method"] == "session/fork"
    wire.end()


def test_an_agent_is_told_what_a_checkpoint_has_to_tell(start):
    wire = start(lambda request: {"tell": "the files \u00e4 were restored"})
    wire.open()
    assert given(wire, "s1") == ["the files \u00e4 were restored", "go on"]
    wire.end()
    assert wire.texts("s1") == ["go on"]
