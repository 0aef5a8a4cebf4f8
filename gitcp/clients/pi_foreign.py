"""Rebuilds a Pi session that was made elsewhere, from known fields only.

It keeps messages, tool results and summaries. It drops notes and messages of extensions,
other sessions that the header names, and every kind of entry that is not listed here.
"""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gitcp.clients import known
from gitcp.clients.known import Names, either, number, one_of, text_or, word

_TEXT = {"type": one_of("text"), "text": str}
_IMAGE = {"type": one_of("image"), "data": str, "mimeType": word}
_THINKING = {
    "type": one_of("thinking"),
    "thinking": str,
    "thinkingSignature": str,
}
_CALL = {"type": one_of("toolCall"), "id": known.ident, "name": word, "arguments": dict}
_NEEDED = {
    "text": {"text"},
    "image": {"data", "mimeType"},
    "thinking": {"thinking"},
    "toolCall": {"id", "name", "arguments"},
}


_COST = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), number)
_TOKENS = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")
_USAGE = {**dict.fromkeys(_TOKENS, number), "cost": _COST}
_NO_USAGE = {**dict.fromkeys(_TOKENS, 0), "cost": dict.fromkeys(_COST, 0)}
_MESSAGES: dict[str, dict[str, Any]] = {
    "user": {"content": text_or(either(_NEEDED, _TEXT, _IMAGE)), "timestamp": number},
    "assistant": {
        "content": text_or(either(_NEEDED, _TEXT, _THINKING, _CALL)),
        "api": word,
        "provider": word,
        "model": word,
        "usage": _USAGE,
        "stopReason": one_of("stop", "length", "toolUse", "error", "aborted"),
        "timestamp": number,
    },
    "toolResult": {
        "toolCallId": known.ident,
        "toolName": word,
        "content": text_or(either(_NEEDED, _TEXT, _IMAGE)),
        "isError": bool,
        "timestamp": number,
    },
}
_COMPACTION = {"summary": str, "tokensBefore": number}


def rebuilt(content: bytes, session: str, directory: Path) -> bytes:
    """Returns the entries under a new session's id, with new ids of their own."""
    return known.lines(_rebuilt(content, session, directory))


def _rebuilt(content: bytes, session: str, directory: Path) -> Iterator[dict[str, Any]]:
    names = Names(lambda: secrets.token_hex(4))
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    header = {"type": "session", "version": 3, "id": session, "timestamp": now}
    yield {**header, "cwd": str(directory)}
    chain = known.Chain(names)
    for entry in known.objects(content):
        parent, ident = entry.get("parentId"), entry.get("id")
        picked = _picked(entry, names)
        if picked is None:
            chain.leave_out(ident, parent)
            continue
        after, new = chain.parent(parent), chain.keep(ident)
        stamp = word(entry.get("timestamp")) or now
        yield {**picked, "id": new, "parentId": after, "timestamp": stamp}


def _picked(entry: dict[str, Any], names: Names) -> dict[str, Any] | None:
    if entry.get("type") == "compaction":
        picked = known.fields(entry, _COMPACTION)
        first = names.known(entry.get("firstKeptEntryId"))
        if first is None or "summary" not in picked:
            return None
        return {
            "type": "compaction",
            "tokensBefore": 0,
            **picked,
            "firstKeptEntryId": first,
        }
    message = entry.get("message")
    if entry.get("type") != "message" or not isinstance(message, dict):
        return None
    role = message.get("role")
    # It may be any JSON, and not all JSON values are hashable.
    shape = _MESSAGES.get(role) if isinstance(role, str) else None
    spoken = known.fields(message, shape) if shape else {}
    if "content" not in spoken or (role == "toolResult" and "toolCallId" not in spoken):
        return None
    if role == "assistant":
        defaults = {"api": "unknown", "provider": "unknown", "model": "unknown"}
        usage = {**_NO_USAGE, **spoken.get("usage", {})}
        spoken = {**defaults, "stopReason": "stop", **spoken, "usage": usage}
    if role == "toolResult":
        spoken = {"toolName": "unknown", "isError": False, **spoken}
    return {"type": "message", "message": {"role": role, "timestamp": 0, **spoken}}
