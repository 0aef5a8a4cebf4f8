"""The event that one commit of a thread holds: a graph checkpoint, or a task's writes."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gitcp.adapters.langgraph.values import Value
from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format.graph import EventHeader

FORMAT = 1

Typed = tuple[str, bytes]
Dump = Callable[[Any], Typed]
Load = Callable[[Typed], Any]


class Write(NamedTuple):
    """One pending write; `number` is negative for the special channels."""

    task: str
    path: str
    number: int
    channel: str
    value: Typed
    replace: bool


def pack(value: Any, dump: Dump) -> dict[str, Any]:
    """Returns a value for the event: as JSON where that is exact, else serialized."""
    try:
        if json.loads(json.dumps(value, allow_nan=False)) == value:
            return {"json": value}
    except (TypeError, ValueError, RecursionError):
        pass
    return {"typed": _text(dump(value))}


def unpack(packed: Mapping[str, Any], load: Load) -> Any:
    """Returns the value that `pack` was given, for the caller to change as he likes.

    LangGraph does: continuing from an old checkpoint it notes in it what it has seen. The
    event is kept for those who read it next.
    """
    if "json" in packed:
        return _copied(packed["json"])
    return load(_typed(packed["typed"]))


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    return value


def encode_put(
    thread: str,
    header: EventHeader,
    checkpoint: dict[str, Any],
    metadata: dict[str, Any],
    values: Mapping[str, Value],
) -> bytes:
    """Returns graph.json of a checkpoint; the packed parts come from `pack`."""
    channels = {}
    for name, value in values.items():
        if value.tree is None:
            channels[name] = {"value": _text((value.kind, value.data))}
        else:
            channels[name] = {"log": _text((value.kind, value.head))}
    return _encode(
        thread,
        header,
        {"checkpoint": checkpoint, "metadata": metadata, "channels": channels},
    )


def encode_writes(
    thread: str, header: EventHeader, writes: Sequence[Write]
) -> tuple[bytes, bytes]:
    """Returns graph.json of pending writes, and their values joined."""
    rows = [
        {
            "task": write.task,
            "path": write.path,
            "number": write.number,
            "channel": write.channel,
            "type": write.value[0],
            "bytes": len(write.value[1]),
            "replace": write.replace,
        }
        for write in writes
    ]
    values = b"".join(write.value[1] for write in writes)
    return _encode(thread, header, {"writes": rows}), values


def _encode(thread: str, header: EventHeader, more: dict[str, Any]) -> bytes:
    event = {
        "format": FORMAT,
        "kind": header.kind,
        "thread": thread,
        "namespace": header.key.namespace,
        "checkpoint_id": header.key.ident,
        "parent": header.parent,
        **more,
    }
    return json.dumps(event, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode_event(raw: bytes, where: str) -> dict[str, Any]:
    """Returns an event.

    Raises:
        FormatTooNewError: a newer gitcp wrote it.
        CorruptError: the file is not an event.
    """
    try:
        event: dict[str, Any] = json.loads(raw)
        version = event["format"]
    except (ValueError, RecursionError, KeyError, TypeError) as exc:
        raise CorruptError(
            f"the graph.json of {where} is damaged: {exc}", hint="run `gitcp verify`"
        ) from exc
    if version > FORMAT:
        raise FormatTooNewError(
            f"the graph of {where} has format {version}; this gitcp knows {FORMAT}",
            hint="upgrade gitcp",
        )
    return event


def decode_writes(event: Mapping[str, Any], values: bytes) -> list[Write]:
    """Returns the writes of an event."""
    writes = []
    at = 0
    for row in event["writes"]:
        end = at + row["bytes"]
        writes.append(
            Write(
                row["task"],
                row["path"],
                row["number"],
                row["channel"],
                (row["type"], values[at:end]),
                row["replace"],
            )
        )
        at = end
    return writes


def channel_value(packed: Mapping[str, Any]) -> tuple[Typed, bool]:
    """Returns type and bytes of a channel, and whether they are only the head."""
    if "value" in packed:
        return _typed(packed["value"]), False
    return _typed(packed["log"]), True


def _text(typed: Typed) -> list[str]:
    return [typed[0], base64.b64encode(typed[1]).decode()]


def _typed(pair: Sequence[str]) -> Typed:
    return pair[0], base64.b64decode(pair[1])
