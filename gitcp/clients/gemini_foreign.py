"""Rebuilds a Gemini CLI chat that was made elsewhere, from known fields only.

It keeps messages and tool results. It drops added directories, settings, and every kind of
record that is not listed here.
"""

import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from typing import Any

from gitcp.clients import known
from gitcp.clients.known import ANYTHING, Names, number, one_of, word

_INLINE = {"mimeType": word, "data": str}
_PART = {
    "text": str,
    "thought": bool,
    "thoughtSignature": str,
    "inlineData": _INLINE,
    "functionCall": {"id": known.ident, "name": word, "args": dict},
    "functionResponse": {"id": known.ident, "name": word, "response": dict},
}


def _part(value: Any) -> dict[str, Any] | None:
    picked: dict[str, Any] | None = known.pick(value, _PART)
    return picked or None


def _content(value: Any) -> Any:
    return value if isinstance(value, str) else known.pick(value, [_part])


_TOKENS = dict.fromkeys(
    ("input", "output", "cached", "thoughts", "tool", "total"), number
)
# Other states are dropped: the client would continue a call that has not ended.
_ENDED = one_of("success", "error", "cancelled")
_CALL = {
    "id": known.ident,
    "name": word,
    "args": dict,
    "result": [_part],
    "status": _ENDED,
    "timestamp": word,
    "description": str,
    "displayName": str,
    "resultDisplay": str,
}
_MESSAGE = {
    "timestamp": word,
    "type": one_of("user", "gemini"),
    "content": _content,
    "thoughts": [{"subject": str, "description": str, "timestamp": word}],
    "tokens": _TOKENS,
    "model": word,
    "toolCalls": [ANYTHING],
}


def rebuilt(content: bytes, session: str, root: str) -> bytes:
    """Returns a chat under a new session's id, of the project at `root`."""
    names = Names(lambda: str(uuid.uuid4()))
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    header = {
        "sessionId": session,
        "projectHash": hashlib.sha256(os.fsencode(root)).hexdigest(),
        "startTime": now,
        "lastUpdated": now,
        "kind": "main",
    }
    return known.lines([header, *_messages(content, names, now)])


def _messages(content: bytes, names: Names, now: str) -> Iterator[dict[str, Any]]:
    for record in known.objects(content):
        messages = [record]
        patch = record.get("$set")
        if isinstance(patch, dict):
            given = patch.get("messages")
            messages = [] if not isinstance(given, list) else given
        for one in messages:
            picked = known.pick(one, _MESSAGE)
            if not picked or not {"type", "content"} <= picked.keys():
                continue
            if "toolCalls" in picked:
                picked["toolCalls"] = _calls(picked["toolCalls"])
            yield {"id": names.new(one.get("id")), "timestamp": now, **picked}


def _calls(given: list[Any]) -> list[dict[str, Any]]:
    calls = known.pick(given, [_CALL])
    return [one for one in calls if {"id", "name", "args", "status"} <= one.keys()]
