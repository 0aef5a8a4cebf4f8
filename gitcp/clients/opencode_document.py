"""Builds the document for `opencode import` from a stored session.

This module always builds the document itself from known fields: a document made from stored
text could hold anything, such as another session's id or another file's content. Messages of
the user's own session stay byte for byte, except their ids. Messages of a session that was
made elsewhere are built from known fields, too.
"""

import re
import secrets
import string
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gitcp.clients import known, records
from gitcp.clients.known import ANYTHING, Names, number, one_of, word

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
# An id that is a whole JSON string, not part of another string.
_ID = re.compile(rb'(?<!\\)"((ses|msg|prt)_([0-9a-f]{12}))[0-9A-Za-z]{14}"')
_TITLE = 200
_AGENT = "build"

_TIME = {"created": number, "updated": number, "completed": number}
_SPAN = {"start": number, "end": number, "compacted": number}
_MODEL = {"id": word, "providerID": word, "modelID": word, "variant": word}
_TOKENS = {
    "total": number,
    "input": number,
    "output": number,
    "reasoning": number,
    "cache": {"read": number, "write": number},
}
# Without the fields for directory, user and permissions.
_FOREIGN_INFO = {"slug": word, "model": _MODEL, "version": word, "time": _TIME}
_OWN_INFO = {
    **_FOREIGN_INFO,
    "projectID": word,
    "directory": str,
    "path": str,
    "title": str,
    "agent": str,
    "summary": ANYTHING,
    "cost": number,
    "tokens": _TOKENS,
    "permission": [
        {
            "permission": str,
            "pattern": str,
            "action": one_of("allow", "ask", "deny"),
        }
    ],
}
_USER = {"time": _TIME, "model": _MODEL}
_ASSISTANT = {
    "time": _TIME,
    "modelID": word,
    "providerID": word,
    "cost": number,
    "tokens": _TOKENS,
    "finish": word,
}


class Document(NamedTuple):
    """The session's new id, and the document."""

    session: str
    content: bytes


class _ExportedMessage(msgspec.Struct):
    """The form of each message: an object of these two fields."""

    info: dict[str, Any]
    parts: list[dict[str, Any]]


_MESSAGE = msgspec.json.Decoder(_ExportedMessage)
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)


def own(content: bytes, described: bytes) -> Document | None:
    """Returns the document of the user's own session.

    The part of an id that holds its time stays, because the client sorts messages by it.
    """
    info = known.one(described)
    if info is None:
        return None
    old = f'"{info.get("id")}"'.encode()
    match = _ID.fullmatch(old)
    session = f"{match[1].decode()}{_tail()}" if match else _id("ses", _descending())
    renamed = {old: f'"{session}"'.encode()}

    def rename(match: re.Match[bytes]) -> bytes:
        if match[0] not in renamed:
            renamed[match[0]] = b'"' + match[1] + _tail().encode() + b'"'
        return renamed[match[0]]

    picked = {"id": session, **known.fields(info, _OWN_INFO)}
    lines = (_ID.sub(rename, line) for line, _ in _messages(content))
    return Document(session, _assembled(picked, lines))


def foreign(content: bytes, described: bytes, directory: Path) -> Document | None:
    """Returns the document of a session that was made elsewhere.

    Nothing in it approves or runs anything: no permissions, no other directory, no
    pending work, no snapshot or patch that a `revert` would act upon.
    """
    info = known.one(described)
    if info is None:
        return None
    session = _id("ses", _descending())
    picked = {
        "id": session,
        "slug": "session",
        **known.fields(info, _FOREIGN_INFO),
        "projectID": "global",
        "directory": str(directory),
        "title": _title(info),
    }
    stamps = _ascending()
    names = Names(lambda: _id("msg", next(stamps)))
    lines = (
        _foreign_line(message, session, names, stamps, str(directory))
        for _, message in _messages(content)
    )
    return Document(session, _assembled(picked, known.bounded(filter(None, lines))))


def _foreign_line(
    message: _ExportedMessage,
    session: str,
    names: Names,
    stamps: Iterator[int],
    directory: str,
) -> bytes | None:
    """Returns a message with its parts under new ids; None if it is dropped."""
    rebuilt = _foreign_message(message, session, names, directory)
    if rebuilt is None:
        return None
    ident = rebuilt["id"]
    parts = [
        {
            "id": _id("prt", next(stamps)),
            "sessionID": session,
            "messageID": ident,
            **part,
        }
        for part in filter(None, map(_foreign_part, message.parts))
    ]
    return msgspec.json.encode({"info": rebuilt, "parts": parts})


def _assembled(info: dict[str, Any], lines: Iterator[bytes]) -> bytes:
    head = b'{"info":' + msgspec.json.encode(info)
    return head + b',"messages":[\n' + b",\n".join(lines) + b"\n]}\n"


def _messages(content: bytes) -> Iterator[tuple[bytes, _ExportedMessage]]:
    """Yields the lines that hold exactly one message."""
    for line in records.lines(content):
        try:
            yield line, records.decode(_MESSAGE, line)
        except _UNREADABLE:
            continue


def _title(info: dict[str, Any]) -> str:
    title = info.get("title")
    shown = title if isinstance(title, str) else ""
    plain = "".join(char if char.isprintable() else " " for char in shown)
    return plain[:_TITLE].strip() or "Restored session"


def _foreign_message(
    message: _ExportedMessage, session: str, names: Names, directory: str
) -> dict[str, Any] | None:
    info = message.info
    head = {"id": names.new(info.get("id")), "sessionID": session}
    if info.get("role") == "user":
        return {**head, "role": "user", "agent": _AGENT, **known.fields(info, _USER)}
    if info.get("role") != "assistant":
        return None
    parent = names.known(info.get("parentID"))
    return {
        **head,
        **({"parentID": parent} if parent else {}),
        "role": "assistant",
        "mode": _AGENT,
        "agent": _AGENT,
        "path": {"cwd": directory, "root": directory},
        **known.fields(info, _ASSISTANT),
    }


def _data_url(value: Any) -> str | None:
    """Accepts embedded content, but not a file or address that the client would fetch."""
    return value if isinstance(value, str) and value.startswith("data:") else None


_PARTS: dict[str, dict[str, Any]] = {
    "text": {"text": str, "synthetic": bool, "time": _SPAN},
    "reasoning": {"text": str, "time": _SPAN, "metadata": ANYTHING},
    "file": {"mime": word, "url": _data_url},
    "step-start": {},
    "step-finish": {"reason": word, "cost": number, "tokens": _TOKENS},
    "compaction": {"auto": bool},
}
_NEEDED = {
    "text": {"text"},
    "reasoning": {"text"},
    "file": {"mime", "url"},
}
_STATE = {"input": dict, "output": str, "title": str, "time": _SPAN, "error": str}


def _foreign_part(part: dict[str, Any]) -> dict[str, Any] | None:
    kind = part.get("type")
    if kind == "tool":
        return _foreign_tool(part)
    shape = _PARTS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        return None
    picked = known.fields(part, shape)
    if not _NEEDED.get(str(kind), set()) <= picked.keys():
        return None
    return {"type": kind, **picked}


def _foreign_tool(part: dict[str, Any]) -> dict[str, Any] | None:
    """Returns a call that has ended; the client would continue one that has not."""
    tool, call = word(part.get("tool")), known.ident(part.get("callID"))
    given = part.get("state")
    if tool is None or call is None or not isinstance(given, dict):
        return None
    picked = known.fields(given, _STATE)
    state = {"input": picked.get("input", {}), "time": _ended(picked.get("time", {}))}
    if given.get("status") == "completed":
        state |= {
            "status": "completed",
            "output": picked.get("output", ""),
            "title": picked.get("title", ""),
            "metadata": {},
        }
    else:
        state |= {"status": "error", "error": picked.get("error", "interrupted")}
    return {"type": "tool", "tool": tool, "callID": call, "state": state}


def _ended(span: dict[str, Any]) -> dict[str, Any]:
    start = span.get("start", 0)
    return {"start": start, "end": span.get("end", start)}


# --- ids ------------------------------------------------------------------------------


def _now() -> int:
    return time.time_ns() // 1_000_000 * 0x1000


def _descending() -> int:
    """Returns a time for a session's id: the client sorts sessions by it, the newest first."""
    return ~_now()


def _ascending() -> Iterator[int]:
    """Yields times for the ids of messages and parts, by which the client sorts them."""
    at = _now()
    while True:
        at += 1
        yield at


def _id(kind: str, stamp: int) -> str:
    return f"{kind}_{stamp & (1 << 48) - 1:012x}{_tail()}"


def _tail() -> str:
    return "".join(secrets.choice(_BASE62) for _ in range(14))
