"""The turns of a conversation, in every client's shape; and which the user took back."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from gitcp.checkpoints.conversation import messages
from gitcp.checkpoints.spoken_turns import time_of, turns
from gitcp.checkpoints.tool_calls import calls
from gitcp.cli.layout import cells, wrap
from gitcp.clients import registry
from gitcp.search.spoken import texts
from gitcp.view.talk import spoken
from tests.support.hostile_records import CLIENTS, ROWS


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def told(raw: bytes) -> list[tuple[str | None, list[tuple[str, str]], str]]:
    return [(one.prompt, [tuple(tool) for tool in one.tools], one.answer)  # type: ignore[misc]
            for one in turns(raw)]  # fmt: skip


# --- Claude Code ------------------------------------------------------------------


def claude(ident: str, after: str | None, role: str, *blocks: Any, **more: Any) -> Any:
    return {
        "type": role,
        "uuid": ident,
        "parentUuid": after,
        "isSidechain": False,
        "message": {"role": role, "content": list(blocks)},
        **more,
    }


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def call(ident: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": given}


def result(ident: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": ident, "content": "text of a tool"}


def turn(number: int, after: str | None) -> list[dict[str, Any]]:
    return [
        claude(f"u{number}", after, "user", text(f"ask {number}")),
        claude(f"a{number}", f"u{number}", "assistant", text(f"answer {number}")),
    ]


def active(raw: bytes, client: str = "claude-code") -> list[str | None]:
    return [one.prompt for one in turns(registry.active(client, raw))]


def test_a_turn_of_claude_code():
    raw = lines(
        {"type": "queue-operation", "content": "tidy up"},
        claude("u", None, "user", text("tidy up"), timestamp="2026-01-01T00:00:00Z"),
        claude("c", "u", "user", text("what a command expands to"), isMeta=True),
        {"type": "api-request-blob", "message": {"role": "user", "content": "tidy up"}},
        claude("a", "c", "assistant", {"type": "thinking", "thinking": "hm"}),
        claude("b", "a", "assistant", text("Looking.")),
        claude("d", "b", "assistant", call("t", "Edit", file_path="/p/a.py", n=1)),
        claude("e", "d", "user", result("t")),
        claude("s", "e", "user", text("a part of it"), isSidechain=True),
        claude("f", "e", "assistant", text("Tidy.")),
        claude("g", "f", "assistant", text("All of it.")),
    )
    (one,) = turns(raw)
    assert one.prompt == "tidy up"
    assert one.tools == (("Edit", "/p/a.py"),)
    assert one.answer == "Tidy.\n\nAll of it."
    assert one.at == 1767225600


@pytest.mark.parametrize(
    ("content", "prompt"),
    [
        ("<system-reminder>x</system-reminder>", None),
        ("<local-command-stdout>x</local-command-stdout>", None),
        ("[Request interrupted by user for tool use]", None),
        (
            "<command-name>/go</command-name><command-args>far</command-args>",
            "/go far",
        ),
        ("<bash-input>ls</bash-input>", "! ls"),
        ("<div> is missing", "<div> is missing"),
    ],
)
def test_what_a_person_typed_is_told_from_what_the_client_adds(content, prompt):
    found = turns(
        lines({"type": "user", "message": {"role": "user", "content": content}})
    )
    assert [one.prompt for one in found] == ([prompt] if prompt else [])


def test_a_turn_that_was_rewound_is_left_out():
    raw = lines(*turn(1, None), *turn(2, "a1"), *turn(3, "a1"))
    assert active(raw) == ["ask 1", "ask 3"]
    raw = lines(*turn(1, None), *turn(2, "a1"), *turn(3, None))
    assert active(raw) == ["ask 3"]


def test_tools_that_ran_at_once_are_all_shown():
    raw = lines(
        *turn(1, None),
        claude("u2", "a1", "user", text("ask 2")),
        claude("b", "u2", "assistant", call("t1", "Read", path="a")),
        claude("c", "b", "assistant", call("t2", "Read", path="b")),
        claude("d", "b", "user", result("t1")),
        claude("e", "c", "user", result("t2")),
        claude("f", "d", "assistant", text("Read.")),
    )
    assert registry.active("claude-code", raw) == raw
    assert told(raw)[1][1] == [("Read", "a"), ("Read", "b")]


def test_what_came_before_a_compaction_still_counts():
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "c",
        "parentUuid": None,
        "logicalParentUuid": "a1",
    }
    summary = claude("s", "c", "user", text("so far"), isCompactSummary=True)
    raw = lines(*turn(1, None), boundary, summary, *turn(2, "s"))
    assert active(raw) == ["ask 1", "ask 2"]
    del boundary["logicalParentUuid"]
    raw = lines(*turn(1, None), boundary, summary, *turn(2, "s"))
    assert active(raw) == ["ask 1", "ask 2"]


def test_records_that_name_no_parents_are_a_line():
    plain = [*turn(1, None), *turn(2, None)]
    for record in plain:
        del record["parentUuid"]
    assert active(lines(*plain)) == ["ask 1", "ask 2"]
    # The end of a long transcript: what its first records follow was not read.
    assert active(lines(*turn(2, "unknown"), *turn(3, "a2"))) == ["ask 2", "ask 3"]


def test_a_chain_that_bites_its_tail_ends():
    loop = [*turn(1, "a2"), *turn(2, "a1")]
    assert len(active(lines(*loop))) == 2
    assert active(lines(claude("u", "u", "user", text("alone")))) == ["alone"]


# --- other clients ----------------------------------------------------------------


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": {"type": kind, **payload}}


def asked(words: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": words}]
    return item("message", role="user", content=content)


def answered(words: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": words}]
    return item("message", role="assistant", content=content)


def test_a_turn_of_codex():
    raw = lines(
        {"type": "session_meta", "payload": {"id": "t"}},
        asked("<environment_context>x</environment_context>"),
        asked("# AGENTS.md instructions for /p\n\nbe kind"),
        item("message", role="developer", content="obey"),
        asked("tidy up"),
        item("function_call", name="exec_command", arguments='{"cmd": "ls -la"}'),
        item("function_call_output", output="a"),
        item("custom_tool_call", name="apply_patch",
             input="*** Begin Patch\n*** Update File: a.py\n*** Add File: b.py\n"),
        answered("Tidy."),
        {"type": "event_msg", "payload": {"type": "task_complete", "role": "assistant"}},
    )  # fmt: skip
    assert told(raw) == [
        (
            "tidy up",
            [("exec_command", "ls -la"), ("apply_patch", "a.py, b.py")],
            "Tidy.",
        )
    ]


def rolled_back(turns: Any) -> dict[str, Any]:
    return {
        "type": "event_msg",
        "payload": {"type": "thread_rolled_back", "num_turns": turns},
    }


@pytest.mark.parametrize(
    ("number", "left"),
    [(1, ["one", "three"]), (2, ["three"]), (9, ["three"]),
     *((odd, ["one", "two", "three"]) for odd in (0, -1, "x", None, True, [1]))],
)  # fmt: skip
def test_turns_that_codex_rolled_back_are_left_out(number, left):
    raw = lines(
        {"type": "session_meta", "payload": {"id": "t"}},
        asked("<environment_context>x</environment_context>"),
        *(asked("one"), answered("1"), asked("two"), answered("2")),
        rolled_back(number),
        *(asked("three"), answered("3")),
    )
    assert active(raw, "codex") == left


def test_a_prompt_that_begins_with_a_tag_is_a_turn_that_codex_rolls_back():
    raw = lines(
        {"type": "session_meta", "payload": {"id": "t"}},
        *(asked("one"), answered("1"), asked("<div> is broken"), answered("2")),
        asked("<turn_aborted>x</turn_aborted>"),
        rolled_back(1),
        *(asked("three"), answered("3")),
    )
    assert active(raw, "codex") == ["one", "three"]
    # A prompt without an answer is a message, too.
    assert registry.client("codex").has_messages(lines(asked("<div> is broken")))
    assert not registry.client("codex").has_messages(lines(asked("<skill>x</skill>")))


def test_a_turn_of_gemini_and_its_rewind():
    def message(ident: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"id": ident, "type": kind, "content": content, **more}

    calls = [{"name": "write_file", "args": {"content": "x", "file_path": "a.txt"}}]
    response = {"functionResponse": {"name": "write_file", "response": {}}}
    begun = [
        {"sessionId": "s", "projectHash": "h"},
        {"$set": {"messages": [message("0", "user", "<session_context>x")]}},
        message("1", "user", [{"text": "tidy up"}]),
        message("2", "gemini", ""),
        message("2", "gemini", "", toolCalls=calls),
        message("3", "user", [response]),
        message("4", "gemini", "Tidy."),
        message("5", "user", "more"),
        message("6", "gemini", "Done."),
    ]
    first = ("tidy up", [("write_file", "a.txt")], "Tidy.")
    assert told(lines(*begun)) == [first, ("more", [], "Done.")]
    again = message("7", "user", "better")
    raw = lines(*begun, {"$rewindTo": "5"}, again)
    assert told(registry.active("gemini", raw)) == [first, ("better", [], "")]
    raw = lines(*begun, {"$rewindTo": "nowhere"}, again)
    assert active(raw, "gemini") == ["better"]


def test_a_turn_of_opencode():
    def message(role: str, *parts: Any) -> dict[str, Any]:
        return {"info": {"role": role, "time": {"created": 1000}}, "parts": list(parts)}

    raw = lines(
        message("user", text("tidy up"), {**text("told the model"), "synthetic": True}),
        message(
            "assistant",
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm"},
            {"type": "tool", "tool": "edit", "state": {"input": {"filePath": "a.py"}}},
        ),
        message("assistant", text("Tidy.")),
    )
    assert told(raw) == [("tidy up", [("edit", "a.py")], "Tidy.")]
    assert turns(raw)[0].at == 1


def test_a_turn_of_cursor():
    def hook(kind: str, **payload: Any) -> dict[str, Any]:
        return {"type": kind, "payload": payload}

    spoke = {"role": "assistant", "content": "Tidy."}
    ask = {**hook("beforeSubmitPrompt", prompt="tidy up"),
           "message": {"role": "user", "content": "tidy up"}}  # fmt: skip
    ran = hook("afterShellExecution", command="ls", output="a")
    raw = lines(ask, ran, {**hook("afterAgentResponse"), "message": spoke})
    assert told(raw) == [("tidy up", [("Shell", "ls")], "Tidy.")]
    newer = hook("postToolUse", tool_name="Shell", tool_input={"command": "ls"})
    assert told(lines(ask, ran, newer)) == [("tidy up", [("Shell", "ls")], "")]


def test_turns_of_plain_messages():
    function = {"name": "search", "arguments": '{"query": "rates"}'}
    raw = lines(
        {"role": "system", "content": "be kind"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "rates?"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": function}]},
        {"role": "tool", "content": "19"},
        {"role": "critic", "content": "19, it is."},
        {"role": "user", "content": [text("look"), {"type": "image", "source": {}}]},
    )
    assert told(raw) == [
        (None, [], "Hello."),
        ("rates?", [("search", "rates")], "19, it is."),
        ("look\n\n[image]", [], ""),
    ]


# --- odd and hostile records ------------------------------------------------------

ODD: list[Any] = [
    None,
    7,
    1e308,
    True,
    "",
    "x",
    [],
    [None],
    {},
    {"type": []},
    {"role": {}},
    "\ud800",
    [[]],
]


def changed(record: Any) -> Iterator[Any]:
    """The same record, each time with another field replaced by something odd."""
    if not isinstance(record, (dict, list)):
        return
    for key in record if isinstance(record, dict) else range(len(record)):
        for odd in ODD:
            other = copy.copy(record)
            other[key] = odd
            yield other
        for inside in changed(record[key]):
            other = copy.copy(record)
            other[key] = inside
            yield other


def test_a_text_is_found_however_deep_it_is():
    deep: Any = "said"
    for _ in range(5_000):
        deep = [deep]
    assert list(texts({"type": "note", "said": deep})) == [("talk", "said")]


def test_a_time_of_any_size_is_no_error():
    for created in (10**400, -(10**400), 1e308, float("inf"), float("nan"), -1, "x"):
        info = {"role": "user", "time": {"created": created}}
        assert time_of({"info": info}) is None
    assert time_of({"info": {"time": {"created": 1_500}}}) == 1.5


@pytest.mark.parametrize("client", sorted(CLIENTS | ROWS))
def test_no_odd_record_is_an_error(client):
    plain = (CLIENTS | ROWS)[client]
    for at, record in enumerate(plain):
        for odd in changed(record):
            raw = lines(*plain[:at], odd, *plain[at:])
            turns(registry.active(client, raw))
            spoken(raw)
            calls(messages(raw))
            "".join(text for _, text in texts(odd)).encode()
    for raw in (b"", b"\xff\n", b"not json\n", b"[1]\n7\nnull\n", b'{"type":"user"'):
        assert turns(raw) == []
        for name in registry.NAMES:
            assert turns(registry.active(name, raw)) == []


@pytest.mark.parametrize("words", ["plain words of some length", "漢字かな交じり文です。長い",
                                   "x" * 200, "  indented", "", "e\u0301" * 40])  # fmt: skip
@pytest.mark.parametrize("room", [1, 2, 7, 40])
def test_a_line_is_wrapped_to_the_columns_there_are(words, room):
    parts = list(wrap(words, room))
    assert all(cells(part) <= max(room, 2) for part in parts)
    assert "".join(parts).replace(" ", "") == words.replace(" ", "")
