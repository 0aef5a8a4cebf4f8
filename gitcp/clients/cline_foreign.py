"""Rebuilds a Cline CLI conversation that was made elsewhere, from known fields only.

It keeps messages and tool results. It drops the client's notes on its model, and every kind
of block that is not listed here.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gitcp.clients import known
from gitcp.clients.known import one_of, word

_TEXT = {"type": one_of("text"), "text": str}
_CALL = {"type": one_of("tool_use"), "id": known.ident, "name": word, "input": dict}
_RESULT = {
    "type": one_of("tool_result"),
    "tool_use_id": known.ident,
    "name": word,
    "content": known.ANYTHING,
    "is_error": bool,
}
_NEEDED = {
    "text": {"text"},
    "tool_use": {"id", "name", "input"},
    "tool_result": {"tool_use_id", "content"},
}


def rebuilt(content: bytes, session: str, directory: Path) -> bytes:
    """Returns the messages; none of them names a session or directory."""
    del session, directory
    return known.lines(_rebuilt(content))


def _rebuilt(content: bytes) -> Iterator[dict[str, Any]]:
    for message in known.objects(content):
        role = one_of("user", "assistant")(message.get("role"))
        blocks = [block for block in _blocks(message.get("content")) if block]
        if role is not None and blocks:
            ident = known.ident(message.get("id")) or f"msg_{secrets.token_hex(4)}"
            stamp = known.number(message.get("ts")) or 0
            yield {"id": ident, "role": role, "content": blocks, "ts": stamp}


def _blocks(content: Any) -> Iterator[dict[str, Any]]:
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        for shape in (_TEXT, _CALL, _RESULT):
            picked = known.fields(block, shape)
            if "type" in picked and picked.keys() >= _NEEDED[picked["type"]]:
                yield picked
