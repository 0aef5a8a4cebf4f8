"""Converts a Codex rollout to the neutral form, and back."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gitcp.clients import codex_foreign, codex_rollbacks, exchange, known
from gitcp.clients.exchange import (
    ASSISTANT,
    FREE,
    TOOL,
    USER,
    Call,
    Message,
    Part,
    Picture,
    Result,
    Spoken,
    Text,
)
from gitcp.format import jsontext

# The client's own notes to the model, which it sends as the user's.
_TOLD = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|permissions instructions"
    r"|skills_instructions|collaboration_mode|turn_aborted|subagent_notification"
    r"|apps_instructions|personality_spec|model_switch)\b"
    r"|# AGENTS\.md instructions)"
)
_PICTURE = re.compile(r"data:(image/[\w.+-]+);base64,([A-Za-z0-9+/=\s]*)")
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def read(content: bytes, beside: Mapping[str, bytes]) -> Spoken:
    """Returns the conversation that the model has, after forks and compactions."""
    left: Counter[str] = Counter()
    messages: list[Message] = []
    for data, end in codex_foreign.parts(codex_rollbacks.active(content), beside):
        for record in known.objects(data):
            at = record.get("ordinal")
            if end is not None and type(at) is int and at >= end:
                continue
            payload = record.get("payload")
            if not isinstance(payload, dict):
                continue
            when = known.word(record.get("timestamp"))
            if record.get("type") == "compacted":
                left["messages before the last compaction"] += len(messages)
                messages = list(_summed_up(payload, when, left))
            elif record.get("type") == "response_item":
                messages += _item(payload, when, left)
    return Spoken(messages, dict(left))


def _summed_up(
    payload: dict[str, Any], when: str | None, left: Counter[str]
) -> Iterator[Message]:
    """Yields the messages of a compaction, which replace all earlier records."""
    history = payload.get("replacement_history")
    for item in history if isinstance(history, list) else ():
        if isinstance(item, dict):
            yield from _item(item, when, left)
    message = payload.get("message")
    if not isinstance(history, list) and isinstance(message, str) and message:
        yield Message(USER, (Text(message),), when)


def _item(
    payload: dict[str, Any], when: str | None, left: Counter[str]
) -> Iterator[Message]:
    kind, call = payload.get("type"), payload.get("call_id")
    if kind == "message":
        role = payload.get("role")
        found = [part for part in map(_part, _blocks(payload)) if part is not None]
        spoken = role == ASSISTANT or (role == USER and not _is_told(found))
        if found and spoken:
            yield Message(str(role), tuple(found), when)
    elif kind == "function_call" and isinstance(call, str):
        arguments = payload.get("arguments")
        yield _called(call, payload.get("name"), _decoded(arguments), when)
    elif kind == "custom_tool_call" and isinstance(call, str):
        given = payload.get("input")
        text = given if isinstance(given, str) else ""
        yield _called(call, payload.get("name"), text, when)
    elif kind == "local_shell_call" and isinstance(call, str):
        action = payload.get("action")
        given = action if isinstance(action, dict) else {}
        yield _called(call, "local_shell", given, when)
    elif kind in _OUTPUTS and isinstance(call, str):
        output = "\n".join(exchange.texts(payload.get("output")))
        yield Message(TOOL, (Result(call, output),), when)
    elif kind == "reasoning":
        left["thoughts of the model"] += 1
    else:
        left[f"records `{kind}`"] += 1


def _called(
    call: str, name: Any, given: dict[str, Any] | str, when: str | None
) -> Message:
    named = name if isinstance(name, str) else "tool"
    return Message(ASSISTANT, (Call(call, named, given),), when)


def _decoded(arguments: Any) -> dict[str, Any]:
    if not isinstance(arguments, str):
        return {}
    try:
        given = jsontext.decode(arguments.encode("utf-8", "replace"))
    except ValueError:
        given = None
    return given if isinstance(given, dict) else {FREE: arguments}


def _blocks(payload: dict[str, Any]) -> list[Any]:
    content = payload.get("content")
    return content if isinstance(content, list) else []


def _part(block: Any) -> Part | None:
    if not isinstance(block, dict):
        return None
    if isinstance(block.get("text"), str):
        return Text(block["text"])
    address = block.get("image_url")
    found = _PICTURE.fullmatch(address) if isinstance(address, str) else None
    return Picture(found[1], found[2]) if found else None


def _is_told(parts: Sequence[Part]) -> bool:
    first = parts[0] if parts else None
    return isinstance(first, Text) and _TOLD.match(first.text) is not None


def written(messages: Sequence[Message], session: str, directory: Path) -> bytes:
    """Returns a rollout: the model's records, and the records that the client shows."""
    records = _records(messages, session, directory)
    return known.lines({**one, "ordinal": at} for at, one in enumerate(records))


def _records(
    messages: Sequence[Message], thread: str, directory: Path
) -> Iterator[dict[str, Any]]:
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    meta = {
        "id": thread,
        "session_id": thread,
        "timestamp": now,
        "cwd": str(directory),
        "originator": "gitcp",
        "cli_version": "0.0.0",
        "source": "cli",
    }
    yield {"timestamp": now, "type": "session_meta", "payload": meta}
    free: set[str] = set()
    for message in messages:
        at = message.at or now
        for item in _items(message, free):
            yield {"timestamp": at, "type": "response_item", "payload": item}
        said = "\n".join(part.text for part in message.parts if isinstance(part, Text))
        if said:
            kind = "agent_message" if message.role == ASSISTANT else "user_message"
            shown = {"type": kind, "message": said}
            yield {"timestamp": at, "type": "event_msg", "payload": shown}


def _items(message: Message, free: set[str]) -> Iterator[dict[str, Any]]:
    """Yields the items of a message; `free` are the calls whose argument is one text."""
    spoken: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case Text(text):
                kind = "output_text" if message.role == ASSISTANT else "input_text"
                spoken.append({"type": kind, "text": text})
            case Picture(media_type, data):
                address = f"data:{media_type};base64,{data}"
                spoken.append({"type": "input_image", "image_url": address})
            case _:
                yield from _flushed(message.role, spoken)
                yield _tool_item(part, free)
    yield from _flushed(message.role, spoken)


def _flushed(role: str, spoken: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    if spoken:
        yield {"type": "message", "role": role, "content": spoken[:]}
        spoken.clear()


def _tool_item(part: Call | Result, free: set[str]) -> dict[str, Any]:
    if isinstance(part, Result):
        kind = (
            "custom_tool_call_output" if part.call in free else "function_call_output"
        )
        return {"type": kind, "call_id": part.call, "output": part.output}
    called = {"call_id": part.ident, "name": part.name}
    if isinstance(part.given, str):
        free.add(part.ident)
        return {"type": "custom_tool_call", **called, "input": part.given}
    arguments = json.dumps(part.given, ensure_ascii=False)
    return {"type": "function_call", **called, "arguments": arguments}
