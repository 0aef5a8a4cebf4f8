"""Rebuilds a Claude Code transcript that was made elsewhere, from known fields only.

It keeps messages and tool results. It drops everything that would approve, run or replace
something: permission modes, hooks' records, file histories, plans, the system prompt, other
directories, and every kind of record that is not listed here.
"""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gitcp.clients import known
from gitcp.clients.known import ANYTHING, Names, either, number, one_of, text_or, word

_CALL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def _call(value: Any) -> str | None:
    """Accepts the id of a tool call."""
    return value if isinstance(value, str) and _CALL.fullmatch(value) else None


_INLINE = {"type": one_of("base64", "text"), "media_type": word, "data": str}
_TEXT = {"type": one_of("text"), "text": str}
_IMAGE = {"type": one_of("image"), "source": _INLINE}
_DOCUMENT = {"type": one_of("document"), "source": _INLINE, "title": str}


_NEEDED: dict[str, set[str]] = {
    "text": {"text"},
    "image": {"source"},
    "document": {"source"},
    "tool_reference": {"tool_name"},
    "tool_result": {"tool_use_id"},
    "tool_use": {"id", "name", "input"},
    "server_tool_use": {"id", "name", "input"},
    "web_search_tool_result": {"tool_use_id", "content"},
    "web_fetch_tool_result": {"tool_use_id", "content"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
_ANSWER = {
    "type": one_of("tool_result"),
    "tool_use_id": _call,
    "content": text_or(
        either(
            _NEEDED,
            _TEXT,
            _IMAGE,
            {"type": one_of("tool_reference"), "tool_name": word},
        )
    ),
    "is_error": bool,
}
_CONTENT = {
    "user": text_or(either(_NEEDED, _TEXT, _IMAGE, _DOCUMENT, _ANSWER)),
    "assistant": text_or(
        either(
            _NEEDED,
            _TEXT,
            {"type": one_of("thinking"), "thinking": str, "signature": str},
            {"type": one_of("redacted_thinking"), "data": str},
            {
                "type": one_of("tool_use", "server_tool_use"),
                "id": _call,
                "name": word,
                "input": dict,
            },
            {
                "type": one_of("web_search_tool_result", "web_fetch_tool_result"),
                "tool_use_id": _call,
                "content": ANYTHING,
            },
        )
    ),
}
_SPOKEN = {
    "timestamp": word,
    "isMeta": bool,
    "isCompactSummary": bool,
    "isVisibleInTranscriptOnly": bool,
    "isApiErrorMessage": bool,
}
_USAGE = {
    "input_tokens": number,
    "output_tokens": number,
    "cache_creation_input_tokens": number,
    "cache_read_input_tokens": number,
}


def _no_more(value: Any) -> list[Any] | None:
    """Accepts a list, and lets nothing of it through."""
    return [] if isinstance(value, list) else None


def _lists(*names: str) -> dict[str, Any]:
    return {name: [str] for name in names}


# The client's notes to the model about its surroundings, which it sends again unchanged.
_TOLD = either(
    {
        "agent_listing_delta": {"addedTypes", "addedLines", "removedTypes"},
        "date": {"date"},
        "deferred_tools_delta": {"addedNames", "addedLines", "removedNames"},
        "environment": {"snapshot"},
        "file": {"filename", "content"},
        "model": {"text"},
        "remote_session_change": set(),
        "session_context": {"context"},
        "skill_listing": {"content"},
    },
    {
        "type": one_of("agent_listing_delta"),
        **_lists("addedTypes", "addedLines", "removedTypes"),
        **_lists("builtInTypes", "builtInPluginTypes"),
        "isInitial": bool,
        "showConcurrencyNote": bool,
    },
    {"type": one_of("date"), "date": str},
    {
        "type": one_of("deferred_tools_delta"),
        **_lists("addedNames", "addedLines", "removedNames"),
        **_lists("wireHiddenNames", "readdedNames"),
        **_lists("pendingMcpServers", "needsAuthMcpServers", "failedMcpServers"),
    },
    {
        "type": one_of("environment"),
        "snapshot": {
            **dict.fromkeys(
                ("workingDirectory", "platform", "shell", "osVersion"), str
            ),
            "isWorktree": bool,
            "isGitRepo": bool,
            # Those of the stranger are none of the user's.
            "additionalWorkingDirectories": _no_more,
        },
    },
    {
        "type": one_of("file"),
        "filename": str,
        "displayPath": str,
        "content": {
            "type": word,
            "file": {
                "filePath": str,
                "content": str,
                **dict.fromkeys(("numLines", "startLine", "totalLines"), number),
            },
        },
        "savedCopyFraming": {"enveloped": bool},
    },
    {
        "type": one_of("model"),
        "identity": dict.fromkeys(("modelId", "marketingName", "knowledgeCutoff"), str),
        "text": str,
    },
    {
        "type": one_of("remote_session_change"),
        **dict.fromkeys(("url", "commit", "pr"), str),
        **dict.fromkeys(("sendUserFileHint", "managedCommit", "managedPr"), bool),
    },
    {"type": one_of("session_context"), "context": {"gitStatus": str}},
    {
        "type": one_of("skill_listing"),
        "content": str,
        "skillCount": number,
        "isInitial": bool,
        **_lists("names", "digests"),
    },
)
_ATTACHED = {
    "timestamp": word,
    "rendered": [{"content": str}],
    "renderedRole": one_of("user", "system"),
    "renderedBesideToolResult": bool,
}
_BOUNDARY = {
    "timestamp": word,
    "content": str,
    "level": word,
    "isMeta": bool,
    "subtype": one_of("compact_boundary"),
}
_COMPACTED = {"trigger": word, "preTokens": number, "postTokens": number}


def rebuilt(content: bytes, session: str, directory: Path) -> bytes:
    """Returns a transcript under a new session's id, with new ids of its records."""
    names = Names(lambda: str(uuid.uuid4()))
    return known.lines(_rebuilt(content, session, directory, names))


def rebuilt_in_place(content: bytes, session: str, directory: Path) -> bytes:
    """Returns a transcript likewise, each time with the same ids of its records.

    Records that follow it are stored behind it, and name their parents in it.
    """
    return known.lines(_rebuilt(content, session, directory, _SameIds(session)))


class _SameIds(Names):
    """Ids that are UUIDs stay; any other id becomes one that depends on nothing else."""

    def __init__(self, session: str) -> None:
        super().__init__(lambda: str(uuid.uuid4()))
        self._space = uuid.uuid5(uuid.NAMESPACE_OID, session)

    def new(self, old: Any) -> str:
        if not isinstance(old, str) or re.fullmatch(_UUID, old):
            return super().new(old) if not isinstance(old, str) else old
        return str(uuid.uuid5(self._space, old))


def _rebuilt(
    content: bytes, session: str, directory: Path, names: Names
) -> Iterator[dict[str, Any]]:
    chain = known.Chain(names)
    for record in known.objects(content):
        parent, ident = record.get("parentUuid"), record.get("uuid")
        picked = None if record.get("isSidechain") is True else _picked(record, names)
        if picked is None:
            chain.leave_out(ident, parent)
            continue
        after, new = chain.parent(parent), chain.keep(ident)
        version = word(record.get("version"))
        yield {
            "parentUuid": after,
            "isSidechain": False,
            **picked,
            "uuid": new,
            "userType": "external",
            "cwd": str(directory),
            "sessionId": session,
            **({"version": version} if version else {}),
        }


def _picked(record: dict[str, Any], names: Names) -> dict[str, Any] | None:
    """Returns the kept fields of a record, without its place in the chain, or None."""
    kind = record.get("type")
    # It may be any JSON, and not all JSON values are hashable.
    if isinstance(kind, str) and kind in _CONTENT:
        return _spoken(kind, record, names)
    if kind == "attachment":
        return _attached(record)
    if kind == "system":
        return _boundary(record, names)
    return None


def _spoken(kind: str, record: dict[str, Any], names: Names) -> dict[str, Any] | None:
    message = record.get("message")
    if not isinstance(message, dict) or message.get("role") != kind:
        return None
    content = known.pick(message.get("content"), _CONTENT[kind])
    if content is None or (isinstance(content, list) and not content):
        return None
    spoken: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        usage = {"input_tokens": 0, "output_tokens": 0}
        given = message.get("usage")
        spoken = {
            **known.fields(message, {"id": known.ident, "model": word}),
            "type": "message",
            **spoken,
            **known.fields(message, {"stop_reason": word}),
            "stop_sequence": None,
            "usage": usage | (known.pick(given, _USAGE) or {}),
        }
    prompt = record.get("promptId")
    placed = {"promptId": names.new(prompt)} if isinstance(prompt, str) else {}
    return {"type": kind, "message": spoken, **known.fields(record, _SPOKEN), **placed}


def _attached(record: dict[str, Any]) -> dict[str, Any] | None:
    attachment = _TOLD(record.get("attachment"))
    if attachment is None:
        return None
    return {
        "type": "attachment",
        "attachment": attachment,
        **known.fields(record, _ATTACHED),
    }


def _boundary(record: dict[str, Any], names: Names) -> dict[str, Any] | None:
    """Returns the record of a compaction."""
    picked = known.fields(record, _BOUNDARY)
    if "subtype" not in picked:
        return None
    given = record.get("compactMetadata")
    about = given if isinstance(given, dict) else {}
    compacted = known.fields(about, _COMPACTED)
    for name in ("preservedSegment", "preservedMessages"):
        if isinstance(about.get(name), dict):
            compacted[name] = _renamed(about[name], names)
    before = record.get("logicalParentUuid")
    more = {"logicalParentUuid": names.new(before)} if isinstance(before, str) else {}
    return {"type": "system", **picked, **more, "compactMetadata": compacted}


def _renamed(value: dict[str, Any], names: Names) -> dict[str, Any]:
    """Returns a value with the new ids in place of its ids and lists of ids."""
    shapes = ("headUuid", "anchorUuid", "tailUuid", "uuids", "allUuids")
    renamed: dict[str, Any] = {}
    for name in shapes:
        old = value.get(name)
        if isinstance(old, str):
            renamed[name] = names.new(old)
        elif isinstance(old, list):
            renamed[name] = [names.new(one) for one in old if isinstance(one, str)]
    return renamed
