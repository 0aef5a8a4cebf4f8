"""Traffic through `gitcp acp`: it passes unchanged, whatever fails and whatever comes."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path

import pytest

from gitcp.acp import checkpointer
from gitcp.acp.proxy import BEHIND, Proxy
from gitcp.clients.acp_folder import SessionFolder
from gitcp.errors import NotFoundError
from tests.support.acp_wire import Wire, line, prompt, state, update

DEEP = b"[" * 100_000 + b"]" * 100_000
# What no proxy can make sense of, from either side.
ODD = [
    b"\n",
    b"\xff\xfe not JSON \x1b[31m\r\n",
    b"{}\n",
    b"null\n",
    b'  {"method" : "x/unknown", "id":1.50, "params":[1, 2]}\r\n',
    b'[{"jsonrpc":"2.0","method":"session/prompt","id":1}]\n',
    b'{"method":"x/deep","params":' + DEEP + b"}\n",
    b'{"id":' + b"9" * 5000 + b',"method":"session/prompt"}\n',
    b'{"id":{"a":1},"method":"session/prompt","params":{"sessionId":"s1"}}\n',
    b'{"id":null,"method":null}\n',
    b'{"method":7}\n',
    b'{"method":"x/surrogate","params":"\\ud83d"}\n',
    b'{"method":"x/large","params":"' + b"\xc3\xa4" * 400_000 + b'"}\n',
]
FROM_AGENT = [
    b'{"id":"never-sent","result":{"sessionId":"s1"}}\n',
    b'{"id":true,"result":{"stopReason":"end_turn"}}\n',
    b'{"id":null,"result":{"stopReason":"end_turn"}}\n',
    b'{"id":"1","result":{"stopReason":"end_turn"}}\n',
    b'{"id":1.0,"result":{"stopReason":"end_turn"}}\n',
    b'{"method":"session/update"}\n',
    b'{"method":"session/update","params":{"sessionId":"s1","update":[]}}\n',
    b'{"method":"session/update","params":{"sessionId":["s1"],"update":{}}}\n',
    b'{"method":"session/update","params":{"sessionId":"s9","update":{}}}\n',
    b'{"method":"session/request_permission","params":{"sessionId":"s1"}}\n',
    b'{"id":5,"method":"session/request_permission","params":"x"}\n',
    b'{"id":6,"method":"session/prompt","params":{"sessionId":"s1"}}\n',
    b'{"id":6,"method":"session/update","params":{"update":{"sessionUpdate":1}}}\n',
]
FROM_EDITOR = [
    b'{"id":1,"method":"session/new"}\n',
    b'{"id":1,"method":"session/new","params":[]}\n',
    b'{"id":1,"method":"session/new","params":{"cwd":"/a\\u0000b"}}\n',
    b'{"id":1,"method":"session/new","params":{"cwd":7}}\n',
    b'{"method":"session/new","params":{"cwd":"/p"}}\n',
    b'{"id":1,"method":"session/load","params":{"sessionId":"x\\u0000","cwd":"\\u0000"}}\n',
    b'{"id":1,"method":"session/fork","params":null}\n',
    b'{"id":1,"method":"session/close","params":{"sessionId":"s9"}}\n',
    b'{"id":1,"method":"session/prompt","params":{}}\n',
    b'{"id":1,"method":"session/prompt","params":{"sessionId":7}}\n',
    b'{"id":1,"method":"initialize","params":{"protocolVersion":"x"}}\n',
    b'{"id":"never-sent","result":{}}\n',
]


def whole_turn(wire: Wire, session: str = "s1") -> None:
    """A turn that must pass and be recorded, after whatever went before."""
    wire.turn("still", "recorded", session, 1)
    wire.end()
    assert wire.texts(session)[-2:] == ["still", "recorded"]


# --- what comes -----------------------------------------------------------------------


def test_everything_passes_byte_for_byte_in_both_directions(start):
    wire = start()
    wire.open()
    before = len(wire.editor.got)
    for one in ODD:
        assert wire.heard_until(one) == one
    for one in ODD:
        wire.agent.send(one)
        assert wire.seen() == one
    wire.turn("still", "recorded", ident=1)
    wire.agent.send(b'\x00{"unfinished')
    wire.editor.send(b'{"cut')
    wire.editor.close()
    while wire.agent.read >= 0:
        wire.wait_for_end()
    assert wire.agent.got.endswith(b'\n{"cut')
    wire.end()
    assert wire.editor.got[before:].startswith(b"".join(ODD))
    assert wire.editor.got.endswith(b'\n\x00{"unfinished')
    assert wire.texts("s1") == ["still", "recorded"]


@pytest.mark.parametrize("hostile", FROM_AGENT)
def test_no_message_of_an_agent_ends_a_turn_that_it_is_not_about(start, hostile):
    wire = start()
    wire.open()
    wire.editor.send(prompt("s1", "first", 1))
    wire.heard()
    wire.agent.send(hostile)
    assert wire.seen() == hostile
    wire.say("goes on")
    wire.reply_with(1, {"stopReason": "end_turn"})
    whole_turn(wire)
    assert wire.texts("s1") == ["first", "goes on", "still", "recorded"]


@pytest.mark.parametrize("result", [{}, None, [], {"sessionId": ["s1"]}, "s1", 7])
def test_an_answer_that_names_no_session_makes_none(start, result):
    wire = start()
    wire.editor.send({"id": 1, "method": "session/new", "params": {}})
    wire.heard()
    wire.reply_with(1, result)
    assert not wire.root.exists() or list(wire.root.iterdir()) == []
    wire.open("s2")
    whole_turn(wire, "s2")


@pytest.mark.parametrize("hostile", FROM_EDITOR)
def test_no_message_of_an_editor_ends_the_traffic(start, hostile):
    wire = start()
    wire.open()
    assert wire.heard_until(hostile) == hostile
    ident = json.loads(hostile).get("id")
    if ident == 1:
        wire.reply_with(1, {"sessionId": "s2", "protocolVersion": "x"})
    whole_turn(wire)


@pytest.mark.parametrize("removed", [b'{"id":1,"method":"session/new"}\n'])
def test_a_directory_that_was_removed_ends_no_traffic(start, tmp_path, removed):
    wire = start()
    (tmp_path / "project").rmdir()
    assert wire.heard_until(removed) == removed
    wire.reply_with(1, {"sessionId": "s1"})
    wire.turn("still", "recorded", ident=2)
    wire.end()
    assert wire.asked[0] == {"event": "session-start", "session": "s1", "cwd": "/"}
    assert wire.texts("s1") == ["still", "recorded"]


def test_ids_of_sessions_that_lead_elsewhere_stay_in_the_folder(start, tmp_path):
    wire = start()
    for ident in ("../../up", "/abs", "", ".", "a\x00b", "\U0001f600" * 300):
        wire.open(ident)
        wire.turn("where", "here", ident)
    wire.end()
    assert not (tmp_path / "up").exists()
    assert all(len(one.name) < 100 for one in wire.root.iterdir())
    assert len(list(wire.root.glob("*/talk.jsonl"))) == 6


# --- what fails -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        {"code": "busy", "error": "the disk\n\x1b[31mis full"},
        None,
        b"not JSON\n",
        b"[]\n",
        b'{"unknown":1}\n',
    ],
)
def test_a_checkpoint_that_fails_holds_nothing_up_and_is_told_once(
    start, answer, capsys
):
    wire = start(lambda request: answer)
    wire.open()
    for number in range(3):
        wire.turn(f"asked {number}", f"said {number}", ident=number)
    assert wire.end() == 0
    told = capsys.readouterr().err.splitlines()
    fails = answer not in (b"[]\n", b'{"unknown":1}\n')
    assert len(told) == fails
    assert all(one.startswith("gitcp acp: not saved: ") for one in told)
    assert all(one.isprintable() for one in told)
    assert wire.texts("s1")[-2:] == ["asked 2", "said 2"]


def test_a_checkpoint_that_takes_too_long_is_given_up_and_a_new_worker_made(
    start, monkeypatch, capsys
):
    monkeypatch.setattr(checkpointer, "_PATIENCE", 0.01)
    wire = start()
    wire.saves = False
    wire.editor.send({"id": 1, "method": "session/new", "params": {}})
    wire.heard()
    wire.reply_with(1, {"sessionId": "s1"})
    stuck = wire.request()
    assert stuck["event"] == "session-start"
    while wire.worker is not None:
        wire.wait_for_end()
    monkeypatch.setattr(checkpointer, "_PATIENCE", 60.0)
    wire.saves = True
    wire.turn("still", "recorded")
    wire.end()
    told = capsys.readouterr().err
    assert told.endswith(
        "not saved: ValueError: no checkpoint was made within 0.01 s\n"
    )
    assert [one["event"] for one in wire.asked][:2] == ["turn-start", "turn-end"]
    assert wire.texts("s1") == ["still", "recorded"]


def test_a_session_outside_of_any_repository_passes_and_is_told_of_once(
    start, tmp_path, capsys
):
    wire = start(lambda request: {"code": "no-repository", "error": "no git"})
    wire.open(cwd=str(tmp_path / "a\nb"))
    for number in range(2):
        asked = line(prompt("s1", "x", number))
        wire.editor.send(asked)
        assert wire.heard() == asked
        wire.say("y")
        wire.agent.send(update("s1", "tool_call_update", status="completed"))
        wire.seen()
        wire.reply_with(number, {"stopReason": "end_turn"})
    wire.end()
    (told,) = capsys.readouterr().err.splitlines()
    shown = f"{tmp_path}/a\\nb"
    assert told == f"gitcp acp: {shown} is not in a git repository; nothing is saved"
    # The first prompt may have come before it was known.
    events = [one["event"] for one in wire.asked]
    assert set(events) <= {"session-start", "turn-start", "remove-old"}
    assert events.count("turn-start") <= 1
    assert wire.folder("s1").said() == [wire.folder("s1").talk]


@pytest.mark.parametrize("when", ["start", "prompt", "answer"])
def test_a_full_disk_ends_the_record_and_not_the_traffic(
    start, monkeypatch, capsys, when
):
    reading, writing = os.pipe()

    def begin(folder: SessionFolder, turn: int) -> int:
        if when == "start":
            raise OSError(28, "No space left on device")
        return os.open("/dev/full", os.O_WRONLY) if when == "prompt" else writing

    wire = start()
    wire.open()
    with monkeypatch.context() as patch:
        patch.setattr(SessionFolder, "begin", begin)
        wire.editor.send(prompt("s1", "one", 1))
        assert json.loads(wire.heard()) == prompt("s1", "one", 1)
        os.close(reading)
        wire.say("two")
        wire.reply_with(1, {"stopReason": "end_turn"})
        if when != "answer":
            os.close(writing)
    # It is not taken up again in the midst of the talk.
    wire.turn("three", "four")
    wire.end()
    (told,) = capsys.readouterr().err.splitlines()
    assert "no longer saved: [Errno" in told
    assert wire.folder("s1").turns() == []
    assert not wire.folder("s1").talk.exists()


def test_without_a_place_for_records_all_passes(start, tmp_path, capsys):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "gitcp").write_bytes(b"in the way")
    wire = start()
    wire.editor.send({"id": 1, "method": "session/new", "params": {}})
    wire.heard()
    wire.reply_with(1, {"sessionId": "s1"})
    wire.turn("asked", "said")
    assert wire.end() == 0
    assert "its turns are not saved" in capsys.readouterr().err


# --- who goes -------------------------------------------------------------------------


def test_what_an_agent_says_after_its_editor_is_gone_is_recorded(start):
    wire = start()
    wire.open()
    wire.editor.send(prompt("s1", "one"))
    wire.heard()
    wire.editor.deafen()
    last = update("s1", "agent_message_chunk", content={"text": "to no one"})
    wire.agent.send(last, {"id": 7, "result": {"stopReason": "end_turn"}})
    # Its input ends, so that it ends.
    while wire.agent.read >= 0:
        wire.wait_for_end()
    assert wire.end() == 0
    assert wire.texts("s1") == ["one", "to no one"]
    assert wire.talk("s1")[-1]["stop_reason"] == "end_turn"


def test_an_agent_that_writes_before_it_reads_is_read_though_the_editor_is_gone(start):
    wire = start()
    wire.open()
    large = line({"method": "x/large", "params": "z" * 1_000_000})
    wire.editor.send(large)
    assert wire.agent.take()
    wire.editor.deafen()
    # The agent has not read the line, which is on its way for so long.
    for _ in range(20):
        _, ready, _ = select.select([], [wire.agent.write], [], 10)
        assert ready, "the agent waits for us, and we for it"
        os.write(wire.agent.write, b"said\n" * 800)
    assert wire.heard() == large
    while wire.agent.read >= 0:
        wire.wait_for_end()
    wire.end()


def test_a_prompt_that_waits_is_handed_on_though_the_editor_has_closed(start):
    wire = start()
    wire.open()
    wire.saves = False
    asked = line(prompt("s1", "one"))
    wire.editor.send(asked)
    wire.editor.close()
    request = wire.request()
    wire.reply(request)
    wire.saves = True
    assert wire.heard() == asked
    while wire.agent.read >= 0:
        wire.wait_for_end()
    wire.agent.send(update("s1", "agent_message_chunk", content={"text": "two"}))
    wire.end()
    assert wire.texts("s1") == ["one", "two"]


def test_a_prompt_for_an_agent_that_is_gone_is_kept(start):
    wire = start()
    wire.open()
    wire.saves = False
    wire.editor.send(prompt("s1", "one"))
    request = wire.request()
    wire.agent.deafen()
    wire.reply(request)
    assert wire.end(9) == 9
    assert wire.texts("s1") == ["one"]


def test_signals_reach_the_agent_and_an_interrupt_does_not_end_the_proxy(start):
    wire = start()
    wire.open()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        wire.handlers[number](number, None)
    assert wire.program.signals == [signal.SIGTERM, signal.SIGHUP]
    assert wire.environment == {"A": "b", BEHIND: "1"}
    wire.turn("one", "still here")
    assert wire.end(130) == 130
    assert wire.texts("s1") == ["one", "still here"]


def test_an_agent_that_cannot_be_started_is_an_error(tmp_path):
    with pytest.raises(NotFoundError, match="no-such-agent"):
        Proxy([str(tmp_path / "no-such-agent")], tmp_path, dict(os.environ)).run()
    assert list(Path(tmp_path).iterdir()) == []
    assert not state().exists()
