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
    # The turn before was stored before its hook had ended.
    ended = lines(event("hook.end", "i", hookType="agentStop", success=True))
    assert not client.is_flushed(found, ended + COPILOT)


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


QWEN = lines(
    {
        "uuid": "a",
        "parentUuid": None,
        "sessionId": "old",
        "type": "user",
        "cwd": "/shop",
    }
    | {"message": {"role": "user", "parts": [{"text": "tidy up"}]}},
    {"uuid": "b", "parentUuid": "a", "type": "system", "systemPayload": {"x": 1}},
    {"uuid": "c", "parentUuid": "b", "type": "assistant", "cwd": "/shop"}
    | {
        "message": {
            "role": "model",
            "parts": [{"functionCall": {"id": "t", "name": "ls", "args": {"a": 1}}}],
        }
    },
    {"uuid": "d", "parentUuid": "c", "type": "tool_result"}
    | {
        "message": {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "t",
                        "name": "ls",
                        "response": {"output": "o"},
                    }
                }
            ],
        }
    },
    {"uuid": "e", "parentUuid": "d", "type": "assistant", "evil": {"cwd": "/old"}}
    | {"message": {"role": "model", "parts": [{"text": "done"}]}},
)
PI = lines(
    {"type": "session", "version": 3, "id": "old", "timestamp": "t", "cwd": "/shop"},
    {"type": "model_change", "id": "a", "parentId": None, "modelId": "m"},
    {"type": "message", "id": "b", "parentId": "a"}
    | {"message": {"role": "user", "content": [{"type": "text", "text": "tidy up"}]}},
    {"type": "message", "id": "c", "parentId": "b"}
    | {
        "message": {
            "role": "assistant",
            "content": [
                {"type": "toolCall", "id": "t", "name": "ls", "arguments": {"a": 1}}
            ],
        }
    },
    {"type": "message", "id": "d", "parentId": "c"}
    | {
        "message": {
            "role": "toolResult",
            "toolCallId": "t",
            "content": [{"type": "text", "text": "o"}],
        }
    },
    {"type": "custom", "id": "x", "parentId": "d", "data": {"cwd": "/old"}},
    {"type": "message", "id": "e", "parentId": "x"}
    | {"message": {"role": "assistant", "content": [{"type": "text", "text": "done"}]}},
)
FORMS = {"qwen": QWEN, "pi": PI}


@pytest.mark.parametrize("name", sorted(FORMS))
def test_a_conversation_is_copied_rebuilt_and_read(name):
    client, content = registry.client(name), FORMS[name]
    assert client.directory(content) == "/shop"
    assert client.copied(content) > {"e"}
    assert client.position(content, "e") == content.rindex(b"\n", 0, -1) + 1
    kept = StoredConversation("old", content, {}, Path("/here"))
    written = client.resume_files(kept, PLACES)
    assert written is not None
    [(path, copy)] = written.files
    assert written.session in path.name
    assert copy.partition(b"\n")[2] == content.partition(b"\n")[2]
    assert as_markdown(copy).splitlines() == [
        *("### user", "", "tidy up", ""),
        *("### assistant", "", '→ `ls` {"a": 1}', ""),
        *("### user", "", "← o", ""),
        *("### assistant", "", "done"),
    ]
    rebuilt = client.resume_files(kept._replace(foreign=True), PLACES)
    assert rebuilt is not None
    [(_, strange)] = rebuilt.files
    assert as_markdown(strange) == as_markdown(copy)
    assert b"/old" not in strange
    assert b'"/shop"' not in strange


def test_qwen_s_empty_prompts_are_not_turns():
    client = registry.client("qwen")
    payload = {"session_id": "old", "cwd": "/shop", "prompt": ""}
    assert client.event("UserPromptSubmit", payload, HOME) is None


def test_hooks_of_clients_that_keep_their_talk_are_written_down():
    payload = {"event_type": "UserPromptSubmit", "session_id": "s"}
    payload |= {"working_dir": "/shop", "message": "tidy up", "user_email": "me@x"}
    found = registry.client("openhands").event("UserPromptSubmit", payload, HOME)
    assert found is not None
    assert (found.cwd, found.prompt_text) == ("/shop", "tidy up")
    assert b"me@x" not in (found.record or b"me@x")
    assert as_markdown(found.record or b"").startswith("### user\n\ntidy up")
    there = {"hookEventName": "Stop", "sessionId": "s", "cwd": "/shop"}
    stop = registry.client("vscode").event("Stop", there, HOME)
    assert stop is not None
    assert (stop.what, stop.session) == (triggers.TURN_END, "s")
    # Of Copilot CLI, which reads the same files.
    other = {"hook_event_name": "Stop", "session_id": "s", "cwd": "/shop"}
    assert registry.client("vscode").event("Stop", other, HOME) is None


def test_a_command_of_droid_s_is_announced():
    payload = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/shop"}
    payload |= {"tool_name": "Execute", "transcript_path": "/t/s.jsonl"}
    given = {**payload, "tool_input": {"command": "rm x"}}
    found = registry.client("droid").event("PreToolUse", given, HOME)
    assert found is not None
    assert (found.what, found.command) == (triggers.BEFORE_COMMAND, "rm x")
    assert found.transcript == Path("/t/s.jsonl")


@pytest.mark.parametrize("name", ["copilot", "droid", "openhands", "qwen", "vscode"])
def test_hooks_are_put_in_once_and_taken_out_without_a_trace(name):
    client = registry.client(name)

    def command(hook: str) -> str:
        return f"gitcp hook {name} {hook}"

    before = b'{ "mine": [1, 2],\n "hooks": {"Stop": [{"command": "true"}]} }\n'
    merged = client.merge(before, command)
    assert client.installed(merged)
    assert client.merge(merged, command) == merged
    after = client.unmerge(merged)
    assert after is not None
    assert json.loads(after)["hooks"] == json.loads(before)["hooks"]
    assert not client.installed(after)
    assert client.unmerge(client.merge(None, command)) is None


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
