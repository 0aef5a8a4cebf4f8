"""Histories of frameworks, in the form that everything reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gitcp.checkpoints import conversation, spoken_turns
from gitcp.search import spoken

OPENAI = [
    {"role": "user", "content": "Do it"},
    {
        "type": "function_call",
        "name": "run",
        "call_id": "c",
        "arguments": '{"command": "ls"}',
    },
    {"type": "function_call_output", "call_id": "c", "output": "a.txt"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
    },
]
PYDANTIC = [
    {
        "kind": "request",
        "parts": [
            {"part_kind": "system-prompt", "content": "Be brief."},
            {"part_kind": "user-prompt", "content": ["Do it", {"kind": "image-url"}]},
        ],
    },
    {
        "kind": "response",
        "parts": [
            {
                "part_kind": "tool-call",
                "tool_name": "run",
                "tool_call_id": "c",
                "args": {"command": "ls"},
            }
        ],
    },
    {
        "kind": "request",
        "parts": [
            {
                "part_kind": "tool-return",
                "tool_name": "run",
                "tool_call_id": "c",
                "content": "a.txt",
            }
        ],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]},
]


@pytest.mark.parametrize("records", [OPENAI, PYDANTIC], ids=["openai", "pydantic"])
def test_what_a_framework_keeps_is_read(records: list[Any]):
    raw = b"".join(json.dumps(one).encode() + b"\n" for one in records)
    (turn,) = spoken_turns.turns(raw)
    assert turn.prompt == "Do it"
    said = [text for record in records for text in spoken.texts(record)]
    assert [where for where, _ in said] == ["prompts", "tools", "tools", "talk"]
    assert [text for _, text in said][::2] == ["Do it", "a.txt"]
    assert "ls" in said[1][1]
    assert said[3][1] == "Done."
    assert list(conversation.tool_names(raw)) == ["run"]
    shown = conversation.as_markdown(raw)
    assert "Done." in shown
    assert "unknown record" not in shown
    assert "Be brief." not in shown


@pytest.mark.parametrize(
    "record",
    [
        {"kind": ["request"], "parts": []},
        {"kind": "request", "parts": [1, {"part_kind": []}, {"part_kind": "text"}]},
        {"kind": "response", "parts": {"a": 1}},
        {"type": "function_call", "name": 1, "arguments": [], "call_id": {}},
    ],
)
def test_an_odd_record_is_no_error(record: Any):
    raw = json.dumps(record).encode() + b"\n"
    list(spoken_turns.turns(raw))
    list(spoken.texts(record))
    conversation.as_markdown(raw)
