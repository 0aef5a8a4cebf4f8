"""Rebuilds a Copilot CLI session that was made elsewhere, from known fields only.

It keeps messages and tool results. It drops permissions, hooks' events, system messages,
attachments, opaque reasoning, and every kind of event that is not listed here.
"""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gitcp.clients import known
from gitcp.clients.known import ANYTHING, Names, one_of, word

_REQUEST = {
    "toolCallId": known.ident,
    "name": word,
    "arguments": ANYTHING,
    "type": one_of("function", "custom"),
}
_SHAPES: dict[str, dict[str, Any]] = {
    "user.message": {"content": str, "transformedContent": str},
    "assistant.message": {"content": str, "model": word, "toolRequests": [_REQUEST]},
    "tool.execution_start": {
        "toolCallId": known.ident,
        "toolName": word,
        "arguments": ANYTHING,
        "model": word,
    },
    "tool.execution_complete": {
        "toolCallId": known.ident,
        "model": word,
        "success": bool,
        "result": {"content": str, "detailedContent": str},
        "error": {"message": str, "code": word},
    },
}
_NEEDED = {
    "user.message": {"content"},
    "assistant.message": {"content"},
    "tool.execution_start": {"toolCallId", "toolName"},
    "tool.execution_complete": {"toolCallId", "success"},
}
# Ids of messages that other events refer to.
_NAMED = ("messageId", "originatingMessageId")


def rebuilt(content: bytes, session: str, directory: Path) -> bytes:
    """Returns the events under a new session's id, with new ids of their own."""
    return known.lines(_rebuilt(content, session, directory))


def _rebuilt(content: bytes, session: str, directory: Path) -> Iterator[dict[str, Any]]:
    names = Names(lambda: str(uuid.uuid4()))
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    version, parent = "1.0.0", str(uuid.uuid4())
    events = known.objects(content)
    first: dict[str, Any] = {
        "sessionId": session,
        "version": 1,
        "producer": "copilot-agent",
        "copilotVersion": version,
        "startTime": now,
        "context": {"cwd": str(directory)},
    }
    head = {"id": parent, "timestamp": now, "parentId": None}
    yield {"type": "session.start", "data": first, **head}
    for event in events:
        kind = event.get("type")
        # It may be any JSON, and not all JSON values are hashable.
        shape = _SHAPES.get(kind) if isinstance(kind, str) else None
        given = event.get("data")
        if shape is None or not isinstance(given, dict):
            continue
        data = known.fields(given, shape)
        if not _NEEDED[str(kind)] <= data.keys():
            continue
        for name in _NAMED:
            if isinstance(given.get(name), str):
                data[name] = names.new(given[name])
        if kind == "assistant.message":
            data.setdefault("messageId", str(uuid.uuid4()))
            asked = data.get("toolRequests", [])
            data["toolRequests"] = [
                one for one in asked if {"toolCallId", "name"} <= one.keys()
            ]
        ident = names.new(event.get("id"))
        stamp = word(event.get("timestamp")) or now
        yield {
            "type": kind,
            "data": data,
            "id": ident,
            "timestamp": stamp,
            "parentId": parent,
        }
        parent = ident
