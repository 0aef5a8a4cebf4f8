"""Turns of the Agent Client Protocol as neutral messages."""

import json

from gitcp.clients.acp_talk import messages

HEADING = {"turn": 5, "at": "2026-11-23T10:00:00+00:00", "cwd": "/p", "agent": "a"}


def _turn(*lines: object) -> list:
    return messages(b"".join(json.dumps(one).encode() + b"\n" for one in lines))


def _prompt(*blocks: dict) -> dict:
    params = {"sessionId": "s", "prompt": list(blocks)}
    return {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}


def _update(kind_of: str, **more: object) -> dict:
    update = {"sessionUpdate": kind_of, **more}
    params = {"sessionId": "s", "update": update}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def _chunk(text: str, kind: str = "agent_message_chunk", **more: object) -> dict:
    return _update(kind, content={"type": "text", "text": text}, **more)


def test_chunks_are_one_text_and_calls_have_their_last_state():
    asked, said, result, last = _turn(
        HEADING,
        _prompt({"type": "text", "text": "fix it"}),
        _chunk("let me ", "agent_thought_chunk"),
        _chunk("think", "agent_thought_chunk"),
        _chunk("I "),
        _chunk("look."),
        _update("tool_call", toolCallId="c1", title="`ls`", kind="execute"),
        _update("tool_call_update", toolCallId="c1", rawInput={"command": "ls -l"}),
        _update(
            "tool_call_update",
            toolCallId="c1",
            status="completed",
            content=[{"type": "content", "content": {"type": "text", "text": "a"}}],
        ),
        _chunk("Done."),
        {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}},
    )
    assert asked["role"] == "user"
    assert asked["content"] == [{"type": "text", "text": "fix it"}]
    assert (asked["cwd"], asked["agent"]) == ("/p", "a")
    assert [block["type"] for block in said["content"]] == [
        "thinking",
        "text",
        "tool_use",
    ]
    assert said["content"][1]["text"] == "I look."
    assert said["content"][2]["name"] == "shell"
    assert said["content"][2]["input"] == {"command": "ls -l"}
    assert result["role"] == "tool"
    assert result["content"][0]["content"] == [{"type": "text", "text": "a"}]
    assert last["content"] == [{"type": "text", "text": "Done."}]
    assert last["stop_reason"] == "end_turn"


def test_another_message_id_is_another_text():
    _, said = _turn(
        HEADING,
        _prompt(),
        _chunk("one", messageId="m1"),
        _chunk("two", messageId="m2"),
    )
    assert [block["text"] for block in said["content"]] == ["one", "two"]


def test_an_edit_shows_what_it_wrote():
    diff = {"type": "diff", "path": "/p/a", "oldText": "1", "newText": "2"}
    call = _update("tool_call", toolCallId="c", title="t", kind="edit", content=[diff])
    _, said, _ = _turn(HEADING, _prompt(), call)
    assert said["content"][0]["input"] == {
        "file_path": "/p/a",
        "old_string": "1",
        "new_string": "2",
    }


def test_a_turn_without_an_end_was_interrupted():
    lines = [json.dumps(one).encode() for one in (HEADING, _prompt(), _chunk("half"))]
    _, said = messages(b"\n".join([*lines, b'{"torn":']))
    assert said["content"] == [{"type": "text", "text": "half"}]
    assert said["stop_reason"] == "interrupted"


def test_an_error_ends_a_turn():
    failed = {"id": 2, "error": {"code": -1, "message": "no quota"}}
    (asked,) = _turn(HEADING, _prompt({"type": "text", "text": "x"}), failed)
    assert asked["stop_reason"] == "error: no quota"


def test_bulk_is_not_kept():
    resource = {"type": "resource", "resource": {"uri": "f", "text": "x" * 400_000}}
    (asked,) = _turn(HEADING, _prompt(resource))
    text = asked["content"][0]["resource"]["text"]
    assert text.endswith("more characters, not kept]")
    assert len(text) < 300_000
