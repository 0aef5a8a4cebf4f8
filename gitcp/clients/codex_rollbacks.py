"""Tells which records of a Codex rollout still count after turns were rolled back.

The client only appends: a record says how many of the user's turns before it no longer count.
"""

from typing import Any

import msgspec

from gitcp.clients import codex, records

_MARK = b'"thread_rolled_back"'


class _Item(msgspec.Struct):
    type: Any = None
    role: Any = None
    content: Any = None
    num_turns: Any = None


class _Record(msgspec.Struct):
    type: Any = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


_RECORD = msgspec.json.Decoder(_Record)
_ITEM = msgspec.json.Decoder(_Item)


def active(content: bytes) -> bytes:
    """Returns a rollout without the turns that were rolled back."""
    if _MARK not in content:
        return content
    kept: list[bytes] = []
    # The index in `kept` at which each turn begins.
    starts: list[int] = []
    for line in records.lines(content):
        record = records.decode_or(_RECORD, line, _Record())
        item = records.decode_or(_ITEM, record.payload, _Item())
        turns = _rolled_back(record, item)
        if turns and starts:
            first = max(0, len(starts) - turns)
            del kept[starts[first] :]
            del starts[first:]
            continue
        if _asks(record, item):
            starts.append(len(kept))
        kept.append(line)
    return b"".join(line + b"\n" for line in kept)


def _rolled_back(record: _Record, item: _Item) -> int:
    """Returns how many turns a record rolls back."""
    if record.type != "event_msg" or item.type != "thread_rolled_back":
        return 0
    turns = item.num_turns
    return turns if type(turns) is int and turns > 0 else 0


def _asks(record: _Record, item: _Item) -> bool:
    """Whether a record is a prompt, not the client's own note to the model."""
    if record.type != "response_item" or (item.type, item.role) != ("message", "user"):
        return False
    return not codex.is_note(records.content_text(item.content))
