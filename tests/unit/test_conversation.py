"""A conversation for people: who said what, and what was done; the rest is not in the way."""

from __future__ import annotations

import json
from typing import Any

from gitcp.checkpoints.conversation import as_markdown, last_spoken


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "ordinal": 1, "payload": {"type": kind, **payload}}


def test_codex_shows_what_its_tools_did_and_not_what_it_notes():
    said = [{"type": "input_text", "text": "tidy up"}]
    raw = lines(
        {"type": "session_meta", "payload": {"id": "t"}},
        {"type": "event_msg", "payload": {"type": "task_started"}},
        item("message", role="user", content=said),
        {"type": "turn_context", "payload": {"cwd": "/"}},
        item("function_call", name="exec_command", arguments='{"cmd": "ls"}'),
        item("function_call_output", call_id="c", output="a.txt"),
        item("custom_tool_call", name="apply_patch", input="*** Begin"),
        item("custom_tool_call_output", output=[{"type": "x", "text": "ok"}]),
        {"type": "of_next_year", "payload": {"a": 1}},
    )
    assert as_markdown(raw).splitlines() == [
        *("### user", "", "tidy up", ""),
        *("### assistant", "", '→ `exec_command` {"cmd": "ls"}', ""),
        *("### tool", "", "← a.txt", ""),
        *("### assistant", "", "→ `apply_patch` *** Begin", ""),
        *("### tool", "", "← ok", ""),
        '*(of_next_year)* `{"type": "of_next_year", "payload": {"a": 1}}`',
    ]
    assert b"apply_patch" in last_spoken(raw, 2)


def test_gemini_shows_a_message_once_with_its_calls():
    asked = {"id": "1", "type": "user", "content": [{"text": "tidy up"}]}
    empty = {"id": "2", "type": "gemini", "content": ""}
    call = {"name": "ls", "args": {"dir": "."}}
    response = {"functionResponse": {"name": "ls", "response": {"output": "a.txt"}}}
    raw = lines(
        {"sessionId": "s", "projectHash": "h"},
        {"$set": {"messages": [asked]}},
        empty,
        {"$set": {"lastUpdated": "now"}},
        {**empty, "toolCalls": [call]},
        {"id": "3", "type": "user", "content": [response]},
        {"id": "4", "type": "gemini", "content": "done"},
        # Resumed: all of it once more.
        {"$set": {"messages": [asked, {**empty, "toolCalls": [call]}]}},
    )
    assert as_markdown(raw).splitlines() == [
        *("### user", "", "tidy up", ""),
        *("### gemini", "", '→ `ls` {"dir": "."}', ""),
        *("### user", "", "← a.txt", ""),
        *("### gemini", "", "done"),
    ]


def test_what_claude_code_notes_for_itself_is_left_out():
    raw = lines(
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s"},
        {"type": "user", "uuid": "u", "message": {"role": "user", "content": "hi"}},
        {"type": "last-prompt", "lastPrompt": "hi"},
    )
    assert as_markdown(raw) == "### user\n\nhi\n"


def test_what_is_no_record_is_shown_as_it_is():
    shown = as_markdown(b'not json\n[1]\n"x"\n7\nnull\n{"payload":[]}\n')
    assert shown.count("*(unknown record)*") == 6
    odds: tuple[Any, ...] = ([], {}, 7, None)
    for odd in odds:
        raw = lines({"type": odd, "content": [{"type": odd}], "payload": {"type": odd}})
        assert as_markdown(raw).startswith("*(")
