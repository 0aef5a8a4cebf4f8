"""Rebuilds a Qwen Code conversation that was made elsewhere, from known fields only.

It keeps messages and tool results. It drops the client's own notes, and every kind of record
that is not listed here.
"""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gitcp.clients import known
from gitcp.clients.known import Names, one_of, word

_PART = {
    "text": str,
    "thought": bool,
    "inlineData": {"mimeType": word, "data": str},
    "functionCall": {"id": known.ident, "name": word, "args": dict},
    "functionResponse": {"id": known.ident, "name": word, "response": dict},
}
_KINDS = one_of("user", "assistant", "tool_result")
_MESSAGE = {"role": one_of("user", "model"), "parts": list}


def rebuilt(content: bytes, session: str, directory: Path) -> bytes:
    """Returns the records under a new session's id, with new ids of their own."""
    return known.lines(_rebuilt(content, session, directory))


def _rebuilt(content: bytes, session: str, directory: Path) -> Iterator[dict[str, Any]]:
    names = Names(lambda: str(uuid.uuid4()))
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    chain = known.Chain(names)
    for record in known.objects(content):
        parent, ident = record.get("parentUuid"), record.get("uuid")
        kind = _KINDS(record.get("type"))
        message = known.pick(record.get("message"), _MESSAGE)
        parts = _parts(message) if message else []
        if kind is None or not parts:
            chain.leave_out(ident, parent)
            continue
        after, new = chain.parent(parent), chain.keep(ident)
        model = word(record.get("model"))
        yield {
            "uuid": new,
            "parentUuid": after,
            "sessionId": session,
            "timestamp": word(record.get("timestamp")) or now,
            "type": kind,
            "cwd": str(directory),
            "version": word(record.get("version")) or "0",
            **({"model": model} if model else {}),
            "message": {**message, "parts": parts},
        }


def _parts(message: dict[str, Any]) -> list[Any]:
    if not {"role", "parts"} <= message.keys():
        return []
    picked = (known.pick(part, _PART) for part in message["parts"])
    return [part for part in picked if part]
