"""Converts a Claude Code transcript to the neutral form, and back."""

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gitcp.clients import claude_code_chain, exchange, known
from gitcp.clients.exchange import (
    ASSISTANT,
    FREE,
    USER,
    Call,
    Message,
    Part,
    Picture,
    Result,
    Spoken,
    Text,
)

# Tools of other clients whose argument is one text.
_FREE_TOOLS = frozenset({"apply_patch"})


def read(content: bytes, beside: Mapping[str, bytes]) -> Spoken:
    """Returns the part of a conversation that the model has: from its last compaction on."""
    del beside
    left: Counter[str] = Counter()
    records = list(known.objects(claude_code_chain.active(content)))
    summed_up = [
        at for at, one in enumerate(records) if one.get("isCompactSummary") is True
    ]
    messages = []
    for record in records[summed_up[-1] if summed_up else 0 :]:
        message = _message(record, left)
        if message is not None:
            messages.append(message)
    if summed_up:
        left["messages before the last compaction"] = summed_up[-1]
    return Spoken(messages, dict(left))


def _message(record: dict[str, Any], left: Counter[str]) -> Message | None:
    role, message = record.get("type"), record.get("message")
    if role not in (USER, ASSISTANT) or not isinstance(message, dict):
        return None
    if record.get("isSidechain") is True or record.get("isMeta") is True:
        return None
    if record.get("isApiErrorMessage") is True:
        return None
    content = message.get("content")
    blocks = (
        [{"type": "text", "text": content}] if isinstance(content, str) else content
    )
    parts: list[Part] = []
    for block in blocks if isinstance(blocks, list) else ():
        part = _part(block) if isinstance(block, dict) else None
        if part is not None:
            parts.append(part)
        elif isinstance(block, dict):
            left[_name(block)] += 1
    at = known.word(record.get("timestamp"))
    return Message(role, tuple(parts), at) if parts else None


def _name(block: dict[str, Any]) -> str:
    kind = block.get("type")
    return "thoughts of the model" if kind in _THOUGHTS else f"blocks `{kind}`"


_THOUGHTS = ("thinking", "redacted_thinking")


def _part(block: dict[str, Any]) -> Part | None:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"])
    if kind == "tool_use" and isinstance(block.get("id"), str):
        name, given = block.get("name"), block.get("input")
        if not isinstance(name, str) or not isinstance(given, dict):
            return None
        if name in _FREE_TOOLS and [*given] == [FREE] and isinstance(given[FREE], str):
            return Call(block["id"], name, given[FREE])
        return Call(block["id"], name, given)
    if kind == "tool_result" and isinstance(block.get("tool_use_id"), str):
        output = "\n".join(exchange.texts(block.get("content")))
        return Result(block["tool_use_id"], output, block.get("is_error") is True)
    source = block.get("source")
    if kind == "image" and isinstance(source, dict) and source.get("type") == "base64":
        media, data = known.word(source.get("media_type")), source.get("data")
        if media is not None and isinstance(data, str):
            return Picture(media, data)
    return None


def written(messages: Sequence[Message], session: str, directory: Path) -> bytes:
    """Returns a transcript: a record for each part; parts of one answer share one id."""
    return known.lines(_records(messages, session, directory))


def _records(
    messages: Sequence[Message], session: str, directory: Path
) -> Iterator[dict[str, Any]]:
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    parent: str | None = None
    answer = ""
    before: str | None = None
    for message in messages:
        if message.role == ASSISTANT and before != ASSISTANT:
            answer = f"msg_{uuid.uuid4().hex[:24]}"
        before = message.role
        blocks = [_block(part) for part in message.parts]
        groups = [[one] for one in blocks] if message.role == ASSISTANT else [blocks]
        for group in groups:
            ident = str(uuid.uuid4())
            yield {
                "parentUuid": parent,
                "isSidechain": False,
                "type": ASSISTANT if message.role == ASSISTANT else USER,
                "message": _spoken(message.role, group, answer),
                "uuid": ident,
                "timestamp": message.at or now,
                "userType": "external",
                "cwd": str(directory),
                "sessionId": session,
            }
            parent = ident


def _spoken(role: str, blocks: list[dict[str, Any]], answer: str) -> dict[str, Any]:
    if role != ASSISTANT:
        return {"role": USER, "content": blocks}
    return {
        "id": answer,
        "type": "message",
        "role": ASSISTANT,
        "model": "another",
        "content": blocks,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Picture(media_type, data):
            source = {"type": "base64", "media_type": media_type, "data": data}
            return {"type": "image", "source": source}
        case Call(ident, name, given):
            named = given if isinstance(given, dict) else {FREE: given}
            return {"type": "tool_use", "id": ident, "name": name, "input": named}
        case Result(call, output, failed):
            told = {"type": "tool_result", "tool_use_id": call, "content": output}
            return {**told, "is_error": True} if failed else told
