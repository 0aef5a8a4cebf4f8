"""What Claude Code and Codex hand to each other, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcp.agents import neutral_talk
from gitcp.clients import claude_code_exchange, codex_exchange
from gitcp.clients.exchange import (
    ASSISTANT,
    NO_RESULT,
    TOOL,
    USER,
    Call,
    Message,
    Picture,
    Result,
    Text,
    paired,
)

HERE = Path("/p")
SAID = [
    Message(USER, (Text("fix it"), Picture("image/png", "QUJD"))),
    Message(ASSISTANT, (Text("Looking."),)),
    Message(ASSISTANT, (Call("c1", "Bash", {"command": "ls", "n": [1, None, 0.5]}),)),
    Message(ASSISTANT, (Call("c2", "apply_patch", "*** Begin Patch\n"),)),
    Message(TOOL, (Result("c1", "a\nb"),)),
    Message(TOOL, (Result("c2", "done"),)),
    Message(ASSISTANT, (Text("Fixed."),)),
    Message(USER, (Text("<div> is broken, too"),)),
]


def plain(messages: list[Message]) -> list[tuple[str, Any]]:
    """The parts with their roles: how they are grouped is each client's own matter."""
    return [
        (TOOL if isinstance(part, Result) else message.role, part)
        for message in messages
        for part in message.parts
    ]


@pytest.mark.parametrize("client", [claude_code_exchange, codex_exchange])
def test_what_was_written_is_read_back(client):
    raw = client.written(SAID, "s", HERE)
    found = client.read(raw, {})
    assert plain(found.messages) == plain(SAID)
    assert found.left == {}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
GIVEN = st.dictionaries(TEXTS, st.integers(-9, 9) | TEXTS | st.lists(TEXTS), max_size=3)


@given(st.lists(st.tuples(TEXTS, TEXTS, GIVEN, TEXTS), max_size=4))
def test_turns_come_through_both_clients_as_they_were(turns):
    said = []
    for number, (asked, answered, arguments, output) in enumerate(turns):
        said += [
            # What begins like a client's own words is no prompt to either of them.
            Message(USER, (Text(f"- {asked}"),)),
            Message(ASSISTANT, (Call(f"c{number}", "Tool", arguments),)),
            Message(TOOL, (Result(f"c{number}", output),)),
            Message(ASSISTANT, (Text(answered),)),
        ]
    there = codex_exchange.written(said, "s", HERE)
    middle = paired(codex_exchange.read(there, {}).messages)
    back = claude_code_exchange.written(middle, "s", HERE)
    assert plain(claude_code_exchange.read(back, {}).messages) == plain(said)


def test_each_call_is_followed_by_its_result():
    calls = (Call("a", "X", {}), Call("b!", "a tool.x", {}))
    given = [
        Message(ASSISTANT, calls),
        Message(USER, (Text("wait"),)),
        Message(TOOL, (Result("a", "late"),)),
        Message(TOOL, (Result("unknown", "of no call"),)),
    ]
    assert plain(paired(given)) == [
        (ASSISTANT, Call("a", "X", {})),
        (ASSISTANT, Call("call_1", "a_tool_x", {})),
        (TOOL, Result("a", "late")),
        (TOOL, Result("call_1", NO_RESULT)),
        (USER, Text("wait")),
    ]


def test_each_call_keeps_its_own_result_if_ids_come_again():
    def turn(asked: str, *outputs: str) -> list[Message]:
        return [
            Message(USER, (Text(asked),)),
            *(Message(ASSISTANT, (Call("call_0", "X", {"of": asked}),)) for _ in "ab"),
            *(Message(TOOL, (Result("call_0", one),)) for one in outputs),
        ]

    found = paired([*turn("one", "1a", "1b"), *turn("two"), *turn("three", "3a", "3b")])
    assert [part for _, part in plain(found) if isinstance(part, Text)] == [
        Text("one"),
        Text("two"),
        Text("three"),
    ]
    calls = [part for _, part in plain(found) if isinstance(part, Call)]
    outputs = {
        part.call: part.output for _, part in plain(found) if isinstance(part, Result)
    }
    assert [outputs[one.ident] for one in calls] == [
        *("1a", "1b"),
        *(NO_RESULT, NO_RESULT),
        *("3a", "3b"),
    ]


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


def test_claude_code_hands_over_what_its_model_has_now():
    def record(kind: str, content: Any, **more: Any) -> dict[str, Any]:
        return {
            "type": kind,
            "uuid": f"u{len(str(content))}",
            "message": {"role": kind, "content": content},
            **more,
        }

    raw = lines(
        record("user", "before"),
        record("user", "The summary", isCompactSummary=True),
        record("user", "of the client", isMeta=True),
        record("assistant", [{"type": "text", "text": "no"}], isSidechain=True),
        record("assistant", [{"type": "text", "text": "err"}], isApiErrorMessage=True),
        record("assistant", [{"type": "thinking", "thinking": "x", "signature": "y"}]),
        record("assistant", [{"type": "text", "text": "After all."}]),
        {"type": "attachment", "attachment": {}},
        [1],
    )
    found = claude_code_exchange.read(raw + b"{torn", {})
    assert plain(found.messages) == [
        (USER, Text("The summary")),
        (ASSISTANT, Text("After all.")),
    ]
    assert found.left == {
        "messages before the last compaction": 1,
        "thoughts of the model": 1,
    }


def test_codex_hands_over_what_its_model_has_now():
    def item(kind: str, **payload: Any) -> dict[str, Any]:
        return {"type": "response_item", "payload": {"type": kind, **payload}}

    def said(role: str, text: str) -> dict[str, Any]:
        return item("message", role=role, content=[{"type": "x_text", "text": text}])

    raw = lines(
        {"type": "session_meta", "payload": {"id": "t"}},
        said("user", "long ago"),
        {
            "type": "compacted",
            "payload": {"replacement_history": [said("user", "summed up")["payload"]]},
        },
        said("developer", "obey"),
        said("user", "<environment_context>\n"),
        said("user", "<b>real</b>"),
        item("reasoning", summary=[]),
        item("function_call", name="f", arguments="[1", call_id="c"),
        item("function_call_output", call_id="c", output=[{"type": "t", "text": "o"}]),
    )
    found = codex_exchange.read(raw, {})
    assert plain(found.messages) == [
        (USER, Text("summed up")),
        (USER, Text("<b>real</b>")),
        (ASSISTANT, Call("c", "f", {"input": "[1"})),
        (TOOL, Result("c", "o")),
    ]
    assert found.left == {
        "messages before the last compaction": 1,
        "thoughts of the model": 1,
    }


def test_other_forms_are_read_as_they_are_shown():
    gemini = lines(
        {"sessionId": "s", "projectHash": "h"},
        {"id": "1", "type": "user", "content": [{"text": "hello"}]},
        {
            "id": "2",
            "type": "gemini",
            "content": "",
            "toolCalls": [
                {
                    "id": "w",
                    "name": "write_file",
                    "args": {"file_path": "/a"},
                    "result": [
                        {"functionResponse": {"id": "w", "response": {"output": "ok"}}}
                    ],
                }
            ],
        },
        {"id": "3", "type": "gemini", "content": "done"},
    )
    assert plain(neutral_talk.read(gemini).messages) == [
        (USER, Text("hello")),
        (ASSISTANT, Call("w", "write_file", {"file_path": "/a"})),
        (TOOL, Result("w", "ok")),
        (ASSISTANT, Text("done")),
    ]
    chat = lines(
        {"role": "system", "content": "obey"},
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    )
    assert plain(neutral_talk.read(chat).messages) == [
        (USER, Text("hello")),
        (ASSISTANT, Call("c", "f", {"a": 1})),
        (TOOL, Result("c", "r")),
    ]
