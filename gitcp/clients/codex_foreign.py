"""Rebuilds a Codex rollout that was made elsewhere, from known fields only.

It keeps messages and tool results, as one thread, even if the rollout continued others. It
drops approval and sandbox policies, settings of the thread, instructions for the model, and
every kind of record that is not listed here.
"""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gitcp.clients import known
from gitcp.clients.known import ANYTHING, number, one_of, word


def _picture(value: Any) -> str | None:
    """Accepts an embedded picture, but not an address to fetch a picture from."""
    return value if isinstance(value, str) and value.startswith("data:image/") else None


def _needs(shape: Mapping[str, Any], *needed: str) -> Any:
    """Returns a shape for an object that does not pass without some of its fields."""

    def whole(value: Any) -> dict[str, Any] | None:
        picked = known.pick(value, dict(shape))
        return picked if picked is not None and picked.keys() >= {*needed} else None

    return whole


def _none_of(value: Any) -> list[Any] | None:
    """Accepts a list, but drops its items."""
    return [] if isinstance(value, list) else None


_TEXT = {
    "type": one_of("input_text", "output_text"),
    "text": str,
    "annotations": _none_of,
}
_IMAGE = {"type": one_of("input_image"), "image_url": _picture}


def _block(value: Any) -> dict[str, Any] | None:
    for shape, needed in ((_TEXT, "text"), (_IMAGE, "image_url")):
        picked = known.pick(value, shape)
        if picked and {"type", needed} <= picked.keys():
            return dict(picked)
    return None


def _output(value: Any) -> Any:
    return value if isinstance(value, str) else known.pick(value, [_block])


# Neither `developer` nor `system`: these instruct the model in the client's name.
_SPEAKERS = one_of("user", "assistant")
_ITEMS: dict[str, Any] = {
    "message": _needs(
        {
            "id": known.ident,
            "role": _SPEAKERS,
            "content": [_block],
            "phase": word,
            "status": word,
        },
        "role",
        "content",
    ),
    "reasoning": _needs(
        {
            "id": known.ident,
            "summary": [{"type": one_of("summary_text"), "text": str}],
            "encrypted_content": str,
        },
        "summary",
    ),
    "function_call": _needs(
        {
            "id": known.ident,
            "name": word,
            "arguments": str,
            "call_id": known.ident,
            "status": word,
        },
        "name",
        "arguments",
        "call_id",
    ),
    "function_call_output": _needs(
        {"id": known.ident, "call_id": known.ident, "output": _output},
        "call_id",
        "output",
    ),
    "custom_tool_call": _needs(
        {
            "id": known.ident,
            "name": word,
            "input": str,
            "call_id": known.ident,
            "status": word,
        },
        "name",
        "input",
        "call_id",
    ),
    "custom_tool_call_output": _needs(
        {"id": known.ident, "call_id": known.ident, "output": _output},
        "call_id",
        "output",
    ),
    "web_search_call": {"id": known.ident, "status": word, "action": ANYTHING},
}
_SHOWN = one_of("UserMessage", "AgentMessage")
_PARTS = [{"type": one_of("text", "Text"), "text": str}]
_META = {"cli_version": word, "model_provider": word, "history_mode": word}


def rebuilt(
    content: bytes, beside: Mapping[str, bytes], thread: str, directory: Path
) -> bytes:
    """Returns a rollout as one thread, under a new id."""
    rollout = _rebuilt(content, beside, thread, directory)
    return known.lines({**one, "ordinal": at} for at, one in enumerate(rollout))


def _rebuilt(
    content: bytes, beside: Mapping[str, bytes], thread: str, directory: Path
) -> Iterator[dict[str, Any]]:
    began = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    files = parts(content, beside)
    meta = next(filter(None, (_meta(data) for data, _ in files)), {})
    yield {
        "timestamp": began,
        "type": "session_meta",
        "payload": {
            **known.fields(meta, {"cli_version": word}),
            "id": thread,
            "session_id": thread,
            "timestamp": began,
            "cwd": str(directory),
            "originator": "gitcp",
            "source": "cli",
            **known.fields(meta, _META),
        },
    }
    for data, end in files:
        for record in known.objects(data):
            at = number(record.get("ordinal"))
            if end is not None and at is not None and at >= end:
                continue
            kind, payload = record.get("type"), _payload(record)
            picked: dict[str, Any] | None = None
            if kind == "response_item":
                picked = _item(payload)
            elif kind == "compacted":
                picked = _compacted(payload)
            elif kind == "event_msg":
                picked = _event(payload, thread)
            if picked is not None:
                stamp = word(record.get("timestamp")) or began
                yield {"timestamp": stamp, "type": kind, "payload": picked}


def parts(
    content: bytes, beside: Mapping[str, bytes]
) -> list[tuple[bytes, int | None]]:
    """Returns the files of a thread, the oldest first, each with the ordinal where it ends.

    If a later file continues a file, the records from that ordinal on do not count. No file
    occurs twice, even if an untrusted chain is a ring.
    """
    files: dict[str, bytes] = {}
    for data in beside.values():
        ident = _payload(next(known.objects(data), {})).get("id")
        if isinstance(ident, str):
            files.setdefault(ident, data)
    chain: list[tuple[bytes, int | None]] = [(content, None)]
    while True:
        last, before = chain[-1]
        meta = _meta(last)
        origin = meta.get("forked_from_id")
        end = meta.get("forked_from_ordinal_exclusive")
        found = files.pop(origin, None) if isinstance(origin, str) else None
        if found is None or type(end) is not int:
            return chain[::-1]
        chain.append((found, end if before is None else min(end, before)))


def _meta(data: bytes) -> dict[str, Any]:
    """Returns the description in a file's `session_meta` record."""
    for record in known.objects(data):
        if record.get("type") == "session_meta":
            return _payload(record)
    return {}


def _payload(record: Mapping[str, Any]) -> dict[str, Any]:
    payload = record.get("payload")
    return payload if isinstance(payload, dict) else {}


def _item(payload: Any) -> dict[str, Any] | None:
    kind = payload.get("type") if isinstance(payload, dict) else None
    shape = _ITEMS.get(kind) if isinstance(kind, str) else None
    picked = known.pick(payload, shape) if shape is not None else None
    return None if picked is None else {"type": kind, **picked}


def _compacted(payload: dict[str, Any]) -> dict[str, Any]:
    """Returns the payload of a compaction, which replaces all earlier records."""
    message = payload.get("message")
    compacted: dict[str, Any] = {"message": message if isinstance(message, str) else ""}
    if isinstance(payload.get("replacement_history"), list):
        compacted["replacement_history"] = known.pick(
            payload["replacement_history"], [_item]
        )
    return compacted


def _event(payload: dict[str, Any], thread: str) -> dict[str, Any] | None:
    """Returns the event by which the client shows a message to the user."""
    kind = payload.get("type")
    if isinstance(kind, str) and kind in {"user_message", "agent_message"}:
        picked = known.fields(payload, {"message": str})
        return {"type": kind, **picked} if picked else None
    item = payload.get("item")
    if kind != "item_completed" or not isinstance(item, dict):
        return None
    shape = {"type": _SHOWN, "id": known.ident, "content": _PARTS, "phase": word}
    picked = known.fields(item, shape)
    times = {"turn_id": known.ident, "started_at_ms": number, "completed_at_ms": number}
    if not {"type", "id", "content"} <= picked.keys():
        return None
    return {
        "type": kind,
        "thread_id": thread,
        **known.fields(payload, times),
        "item": picked,
    }
