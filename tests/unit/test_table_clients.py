"""Clients that rows of the table describe: what their hooks and conversations mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitcp.checkpoints.conversation import as_markdown
from gitcp.clients import registry, triggers
from gitcp.clients.client import ClientPlaces, StoredConversation

HOME = {"HOME": "/home/you"}
PLACES = ClientPlaces(None, Path("/home/you"), HOME)


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def event(kind: str, ident: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "id": ident, "timestamp": "t", "parentId": None, "data": data}


COPILOT = lines(
    event("session.start", "a", sessionId="old", context={"cwd": "/shop"}),
    event("hook.start", "b", hookType="sessionStart", input={"sessionId": "old"}),
    event("user.message", "c", content="tidy up", transformedContent="<now> tidy up"),
    event("system.message", "d", role="system", content="You are"),
    event(
        "assistant.message",
        "e",
        messageId="m",
        content="",
        toolRequests=[
            {"toolCallId": "t", "name": "bash", "arguments": {"command": "ls"}}
        ],
    ),
    event(
        "tool.execution_complete",
        "f",
        toolCallId="t",
        success=True,
        result={"content": "a.txt"},
    ),
    event("assistant.message", "g", messageId="n", content="done", toolRequests=[]),
)
STOP = lines(event("hook.start", "h", hookType="agentStop", input={}))


def test_copilot_s_hooks_have_the_place_of_the_conversation():
    client = registry.client("copilot")
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "old",
        "cwd": "/shop",
        "prompt": "tidy up",
        "of_next_year": [1],
    }
    found = client.event("UserPromptSubmit", payload, HOME)
    assert found is not None
    assert (found.what, found.prompt_text) == (triggers.TURN_START, "tidy up")
    file = Path("/home/you/.copilot/session-state/old/events.jsonl")
    assert found.transcript == file
    assert client.event("OfNextYear", payload, HOME) is None
    # VS Code reads the same files, and sends other fields.
    other = {"hookEventName": "UserPromptSubmit", "sessionId": "old", "cwd": "/shop"}
    assert client.event("UserPromptSubmit", other, HOME) is None
    away = client.event("UserPromptSubmit", {**payload, "session_id": "../x"}, HOME)
    assert away is not None
    assert away.transcript is None


def test_copilot_s_turn_is_written_once_its_last_hook_has_begun():
    client = registry.client("copilot")
    payload = {"hook_event_name": "Stop", "session_id": "old", "cwd": "/shop"}
    found = client.event("Stop", payload, HOME)
    assert found is not None
    assert not client.is_flushed(found, COPILOT)
    assert client.is_flushed(found, COPILOT + STOP)


def test_a_copy_of_copilot_s_session_differs_in_its_first_event_only():
    client = registry.client("copilot")
    kept = StoredConversation("old", COPILOT, {}, Path("/shop"))
    written = client.resume_files(kept, PLACES)
    assert written is not None
    [(path, content)] = written.files
    assert path.parent.name == written.session
    assert written.command == ("copilot", "--resume", written.session)
    first, _, rest = content.partition(b"\n")
    assert json.loads(first)["data"]["sessionId"] == written.session
    assert rest == COPILOT.partition(b"\n")[2]


def test_what_was_said_elsewhere_reaches_copilot_and_nothing_else_does():
    client = registry.client("copilot")
    bad = lines(
        event("session.permissions_changed", "p", allowAllPermissions=True),
        event("user.message", "q", content="hi", attachments=[{"path": "/etc/passwd"}]),
    )
    kept = StoredConversation(None, COPILOT + bad, {}, Path("/here"), foreign=True)
    written = client.resume_files(kept, PLACES)
    assert written is not None
    [(_, content)] = written.files
    kinds = [json.loads(line)["type"] for line in content.splitlines()]
    assert kinds == [
        "session.start",
        *("user.message", "assistant.message", "tool.execution_complete"),
        *("assistant.message", "user.message"),
    ]
    for absent in (b"attachments", b"You are", b'"old"', b'"/shop"', b'"c"'):
        assert absent not in content


@pytest.mark.parametrize("name", ["copilot"])
def test_a_conversation_with_no_messages_is_not_resumed(name):
    client = registry.client(name)
    kept = StoredConversation("old", STOP, {}, Path("/shop"))
    assert client.resume_files(kept, PLACES) is None


def test_copilot_s_session_is_read_as_talk():
    assert as_markdown(COPILOT + STOP).splitlines() == [
        *("### user", "", "tidy up", ""),
        *("### assistant", "", '→ `bash` {"command": "ls"}', ""),
        *("### user", "", "← a.txt", ""),
        *("### assistant", "", "done"),
    ]
