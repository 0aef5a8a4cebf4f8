"""Rebuilding a stranger's conversation: whatever a field holds, it is an answer or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitcp.clients import (
    claude_code_foreign,
    codex_foreign,
    gemini_foreign,
    opencode_document,
)
from tests.support.hostile import places, replaced, values
from tests.support.hostile_records import CLIENTS, DESCRIBED

HERE = Path("/project")
RAWS = values(Path("/canary"))


def rebuilt(kind: str, content: bytes, described: bytes) -> object:
    if kind == "claude-code":
        return claude_code_foreign.rebuilt(content, "new", HERE)
    if kind == "codex":
        return codex_foreign.rebuilt(content, {}, "new", HERE)
    if kind == "gemini":
        return gemini_foreign.rebuilt(content, "new", "/project")
    return opencode_document.foreign(content, described, HERE)


def lines(records: list[bytes]) -> bytes:
    return b"".join(one + b"\n" for one in records)


def packed(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("kind", ["claude-code", "codex", "gemini", "opencode"])
def test_any_value_in_any_field_is_rebuilt_or_left_out(kind):
    records = CLIENTS[kind]
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
