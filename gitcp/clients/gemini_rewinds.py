"""Tells which messages of a Gemini chat still count after a rewind.

The client only appends: a record names the message before which the chat continues.
"""

from typing import Any

import msgspec

from gitcp.clients import records

_MARK = b'"$rewindTo"'


class _Messages(msgspec.Struct):
    messages: list[msgspec.Raw] = []


class _Record(msgspec.Struct):
    id: Any = None
    type: Any = None
    patch: _Messages | None = msgspec.field(default=None, name="$set")
    rewind: Any = msgspec.field(default=None, name="$rewindTo")


_RECORD = msgspec.json.Decoder(_Record)
_NOTHING = _Record()
_SPOKEN = frozenset({"user", "gemini"})


def active(content: bytes) -> bytes:
    """Returns a chat without the messages that the user rewound."""
    if _MARK not in content:
        return content
    # As in the client, the last version of each message takes the first one's position.
    kept: dict[object, bytes] = {}
    for at, line in enumerate(records.lines(content)):
        record = records.decode_or(_RECORD, line, _NOTHING)
        if isinstance(record.rewind, str):
            _rewind(kept, record.rewind)
            continue
        inside = record.patch.messages if record.patch is not None else []
        for message in map(bytes, inside) if inside else (line,):
            ident = _ident(records.decode_or(_RECORD, message, _NOTHING))
            kept[ident or (at, message)] = message
    return b"".join(line + b"\n" for line in kept.values())


def _ident(record: _Record) -> str | None:
    spoken = isinstance(record.type, str) and record.type in _SPOKEN
    return record.id if spoken and isinstance(record.id, str) else None


def _rewind(kept: dict[object, bytes], ident: str) -> None:
    """Drops a message and all after it; as in the client, all messages if it is unknown."""
    spoken = [key for key in kept if isinstance(key, str)]
    first = spoken.index(ident) if ident in spoken else 0
    for key in spoken[first:]:
        del kept[key]
