"""Rebuilding a stranger's conversation: whatever a field holds, it is an answer or nothing."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gitcp.clients import (
    acp,
    claude_code_foreign,
    cline_foreign,
    codex_foreign,
    copilot_foreign,
    gemini_foreign,
    known,
    opencode_document,
    pi_foreign,
    qwen_foreign,
)
from gitcp.errors import AgentRecordError
from tests.support.hostile import places, replaced, values
from tests.support.hostile_records import CLIENTS, DESCRIBED, OTHERS, ROWS

HERE = Path("/project")
RAWS = values(Path("/canary"))


_ROWS = {
    "cline": cline_foreign.rebuilt,
    "copilot": copilot_foreign.rebuilt,
    "pi": pi_foreign.rebuilt,
    "qwen": qwen_foreign.rebuilt,
}
_RECORDS = {**CLIENTS, **ROWS, **OTHERS}
_KINDS = [
    "acp",
    "claude-code",
    "cline",
    "codex",
    "copilot",
    "gemini",
    "opencode",
    "pi",
    "qwen",
]


def rebuilt(kind: str, content: bytes, described: bytes) -> object:
    if kind == "acp":
        return acp.rebuilt(content)
    if kind == "claude-code":
        return claude_code_foreign.rebuilt(content, "new", HERE)
    if kind in _ROWS:
        return _ROWS[kind](content, "new", HERE)
    if kind == "codex":
        return codex_foreign.rebuilt(content, {}, "new", HERE)
    if kind == "gemini":
        return gemini_foreign.rebuilt(content, "new", "/project")
    return opencode_document.foreign(content, described, HERE)


def lines(records: list[bytes]) -> bytes:
    return b"".join(one + b"\n" for one in records)


def packed(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("kind", _KINDS)
def test_any_value_in_any_field_is_rebuilt_or_left_out(kind):
    records = _RECORDS[kind]
    done = 0
    for at, one in enumerate(records):
        for path in places(one):
            for raw in RAWS:
                whole = list(map(packed, records))
                whole[at] = replaced(one, path, raw)
                rebuilt(kind, lines(whole), packed(DESCRIBED))
                done += 1
    assert done > 10 * len(records)


def test_any_value_in_what_opencode_says_of_a_session_is_rebuilt_or_left_out():
    content = lines(list(map(packed, CLIENTS["opencode"])))
    for path in places(DESCRIBED):
        for raw in RAWS:
            rebuilt("opencode", content, replaced(DESCRIBED, path, raw))


@pytest.mark.parametrize("value", ["x/../../../.claude/settings", "a..b", "--trust"])
@pytest.mark.parametrize("kind", _KINDS)
def test_an_id_is_no_path_and_no_option(kind, value):
    """Clients name files after the ids of calls."""
    records = _RECORDS[kind]
    done = 0
    for at, one in enumerate(records):
        for path in places(one):
            name = str(path[-1])
            # A model may have any name, and what a tool is given is the tool's.
            if (
                not re.search(r"(?i)^(uu)?id$|[a-z_]id$", name)
                or "model" in name.lower()
            ):
                continue
            if {"input", "args", "arguments"} & set(path) or path[-2:-1] == ("model",):
                continue
            whole = list(map(packed, records))
            whole[at] = replaced(one, path, packed(value))
            made = rebuilt(kind, lines(whole), packed(DESCRIBED))
            raw = made if isinstance(made, bytes) else repr(made).encode()
            assert value.encode() not in raw, (at, path)
            done += 1
    assert done


NOTES: list[dict[str, Any]] = [
    {
        "type": "agent_listing_delta",
        "addedTypes": ["a"],
        "addedLines": ["- a"],
        "removedTypes": [],
        "isInitial": True,
    },
    {"type": "date", "date": "2026-11-27"},
    {
        "type": "deferred_tools_delta",
        "addedNames": ["A"],
        "addedLines": ["A"],
        "removedNames": [],
        "failedMcpServers": [],
    },
    {
        "type": "environment",
        "snapshot": {
            "workingDirectory": "/a",
            "isGitRepo": True,
            "additionalWorkingDirectories": [],
        },
    },
    {
        "type": "file",
        "filename": "/a/b",
        "displayPath": "b",
        "content": {"type": "text", "file": {"filePath": "/a/b", "content": "x"}},
    },
    {"type": "model", "identity": {"modelId": "m"}, "text": "t"},
    {"type": "remote_session_change", "commit": "c", "managedPr": False},
    {"type": "session_context", "context": {"gitStatus": "clean"}},
    {"type": "skill_listing", "content": "- a", "skillCount": 1, "names": ["a"]},
]


@pytest.mark.parametrize("note", NOTES, ids=[one["type"] for one in NOTES])
def test_a_note_of_claude_code_keeps_its_known_fields_only(note):
    def told(attachment: dict[str, Any]) -> list[Any]:
        record = {"type": "attachment", "uuid": "a", "attachment": attachment}
        raw = claude_code_foreign.rebuilt(packed(record) + b"\n", "new", HERE)
        return [json.loads(line)["attachment"] for line in raw.splitlines()]

    assert told(note) == [note]
    assert told({**note, "allowedTools": ["Bash"], "hooks": {"a": "b"}}) == [note]
    assert told({**note, "type": "hook_success"}) == []


def test_a_strangers_directories_are_not_the_users():
    snapshot = {"workingDirectory": "/a", "additionalWorkingDirectories": ["/home/bob"]}
    note = {"type": "environment", "snapshot": snapshot}
    record = {"type": "attachment", "uuid": "a", "attachment": note}
    raw = claude_code_foreign.rebuilt(packed(record) + b"\n", "new", HERE)
    assert b"additionalWorkingDirectories" in raw
    assert b"/home/bob" not in raw


# --- size ---------------------------------------------------------------------------------


def spoken(*texts: str) -> bytes:
    """Returns a chat of Gemini's, its messages in one record."""
    messages = [{"id": "m", "type": "user", "content": text} for text in texts]
    return packed({"$set": {"messages": messages}}) + b"\n"


def test_a_record_that_stands_for_many_is_refused(monkeypatch):
    monkeypatch.setattr(known, "_MOST_RECORDS", 3)
    known.refuse_if_dense(spoken("a", "b", "c"))
    with pytest.raises(AgentRecordError, match="more than 3 records"):
        gemini_foreign.rebuilt(spoken("a", "b", "c"), "new", "/project")
    assert gemini_foreign.rebuilt(spoken("a", "b"), "new", "/project").count(b"\n") == 3


@pytest.mark.parametrize("kind", _KINDS)
def test_what_grows_too_large_is_refused(monkeypatch, kind):
    monkeypatch.setattr(known, "_MOST_MADE", 50)
    with pytest.raises(AgentRecordError, match="more than"):
        rebuilt(kind, lines(list(map(packed, _RECORDS[kind]))), packed(DESCRIBED))


def test_a_record_of_many_values_is_refused_and_a_long_text_is_not(monkeypatch):
    monkeypatch.setattr(known, "_MOST_VALUES", 10)
    known.refuse_if_dense(packed({"text": "x" * 100}) + b"\n" + b"[[[[],[]]]]\n" * 50)
    with pytest.raises(AgentRecordError, match="more than 10 values"):
        known.refuse_if_dense(b"{}\n" + b"[" + b"[]," * 10 + b"[]]\n")


def rollout(ident: str, after: str | None, *texts: str, end: int = 9) -> bytes:
    """Returns a rollout of Codex, which goes on where another one was left."""
    meta = {"id": ident, "forked_from_id": after, "forked_from_ordinal_exclusive": end}
    items = [
        {
            "type": "response_item",
            "ordinal": at,
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": text}],
            },
        }
        for at, text in enumerate(texts, 1)
    ]
    return lines(
        [packed({"type": "session_meta", "payload": meta}), *map(packed, items)]
    )


def test_a_thread_that_continues_others_is_one():
    beside = {
        "1": rollout("first", None, "a", "b", "c"),
        "2": rollout("second", "first", "d", "e", end=3),
    }
    last = rollout("third", "second", "f", end=2)
    made = codex_foreign.rebuilt(last, beside, "new", HERE)
    told = [
        one["payload"]["content"][0]["text"]
        for one in map(json.loads, made.splitlines())
        if one["type"] == "response_item"
    ]
    assert told == ["a", "d", "f"]


def test_threads_that_continue_one_another_in_a_ring_end():
    beside = {
        "1": rollout("one", "two", *"x" * 9),
        "2": rollout("two", "one", *"y" * 9),
        "3": b'{"payload":{"id":[]}}\n',
    }
    made = codex_foreign.rebuilt(rollout("two", "one", "z"), beside, "new", HERE)
    assert made.count(b'"text":"x"') == 8
    assert made.count(b'"text":"y"') == 8


def test_the_child_of_a_record_that_is_left_out_follows_the_nearest_one_that_is_kept():
    numbers = itertools.count(1)
    chain = known.Chain(known.Names(lambda: f"new-{next(numbers)}"))
    assert chain.parent(None) is None
    assert chain.keep("a") == "new-1"
    chain.leave_out("b", "a")
    chain.leave_out("c", "b")
    assert chain.parent("c") == "new-1"
    assert chain.keep("d") == "new-2"
    assert chain.parent("d") == "new-2"
    # One whose ancestors are all left out, or unknown, begins a conversation.
    chain.leave_out("e", "unknown")
    assert chain.parent("e") is None
    # An id of another type is that of no record.
    chain.leave_out(["a"], "a")
    assert chain.parent(["a"]) is None
    assert chain.keep(7) == "new-3"
