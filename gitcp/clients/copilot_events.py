"""Copilot CLI's conversations: a folder each, with the events of the session as lines.

`~/.copilot/session-state/<id>/events.jsonl`: `{type, data, id, timestamp, parentId}`. The
client writes events with a delay of some tenths of a second, with or without hooks. As a
turn ends, the last event that it has written says that the hook at the turn's end has begun.
Only the first event, `session.start`, has to name the session's id.
"""

import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gitcp.clients import records, triggers
from gitcp.clients.client import ClientPlaces, Event, ResumeFiles, StoredConversation
from gitcp.clients.conversations import Conversations, Message

_ROLES = {"user.message": "user", "assistant.message": "assistant"}
_STARTED = b'"session.start"'
_STOPPING = b'"agentStop"'
_BEGUN = b'"hook.start"'


class _Context(msgspec.Struct):
    cwd: str | None = None


class _Data(msgspec.Struct):
    """The fields of an event that gitcp reads; all others are opaque."""

    sessionId: Any = None  # noqa: N815  the client's spelling
    content: Any = None
    context: _Context | None = None


class _Event(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")


_EVENT = msgspec.json.Decoder(_Event)
_DATA = msgspec.json.Decoder(_Data)


class CopilotEvents(Conversations):
    """The conversations of Copilot CLI."""

    def completed(
        self,
        event: Event,
        hook: str,
        payload: Mapping[str, Any],
        environment: Mapping[str, str],
        folder: Path,
    ) -> Event | None:
        """Adds the path of the conversation to an event, because few hooks name it."""
        del hook, payload, environment
        if event.transcript is not None or not _is_plain(event.session):
            return event
        return event._replace(transcript=_file(folder, event.session))

    def messages(self, raw: bytes) -> Iterator[Message]:
        """Yields the messages, without the text that the client puts around a prompt."""
        for line in records.lines(raw):
            if b".message" not in line:
                continue
            event = records.decode_or(_EVENT, line, _Event())
            role = _ROLES.get(event.type or "")
            if role is not None:
                data = records.decode_or(_DATA, event.data, _Data())
                yield Message(event.id, role, records.content_text(data.content))

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Whether the end of the file says that the hook at the turn's end has begun.

        The client writes the end of the previous turn's hook after gitcp stored that turn.
        """
        if event.what != triggers.TURN_END:
            return True
        lines = records.lines(tail)
        return any(_STOPPING in line and _BEGUN in line for line in lines)

    def cwd(self, line: bytes) -> str | None:
        """Returns the directory that the session began in."""
        if _STARTED not in line:
            return None
        event = records.decode_or(_EVENT, line, _Event())
        context = records.decode_or(_DATA, event.data, _Data()).context
        return context.cwd if context is not None else None

    def written(
        self, kept: StoredConversation, folder: Path, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns a copy whose first event names the new session; the rest is unchanged."""
        del places
        new = str(uuid.uuid4())
        if kept.foreign:
            # Only a restore needs it, and importing it would delay every hook.
            from gitcp.clients import copilot_foreign  # noqa: PLC0415

            content = copilot_foreign.rebuilt(kept.content, new, kept.directory)
            if not self.has_messages(content):
                return None
        else:
            # In what an older gitcp stored of a copy, the first event has the copied session.
            names = (kept.session, _named(next(records.lines(kept.content), b"")))
            content = b"\n".join(
                _renamed(line, names, new) for line in kept.content.split(b"\n")
            )
        files = ((_file(folder, new), content),)
        return ResumeFiles(new, folder, files, (new,), kept.directory)


CONVERSATIONS = CopilotEvents()


def _file(folder: Path, session: str) -> Path:
    return folder / "session-state" / session / "events.jsonl"


def _is_plain(session: str) -> bool:
    return bool(re.fullmatch(r"[\w-]{1,100}", session))


def _named(line: bytes) -> str | None:
    """Returns the session's id that an event names, if it begins the session."""
    if _STARTED not in line:
        return None
    event = records.decode_or(_EVENT, line, _Event())
    name = records.decode_or(_DATA, event.data, _Data()).sessionId
    return name if isinstance(name, str) else None


def _renamed(line: bytes, names: tuple[str | None, ...], new: str) -> bytes:
    """Returns an event with a new session id, if it names the session."""
    old = _named(line)
    if not old or old not in names:
        return line
    name = rb'("sessionId"\s*:\s*)"' + re.escape(old.encode()) + b'"'
    return re.sub(name, rb'\g<1>"' + new.encode() + b'"', line, count=1)
