"""Pi's conversations: a file each, in a folder named after the directory Pi was started in.

`~/.pi/agent/sessions/--<path>--/<time>_<id>.jsonl`: a header with the session's id, then
entries `{type, id, parentId, timestamp, …}`; those of type `message` hold the messages. Pi
writes the file once the model has answered for the first time.
"""

import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gitcp.clients import records
from gitcp.clients.client import ClientPlaces, ResumeFiles, StoredConversation
from gitcp.clients.conversations import Conversations, Message

_SPOKEN = frozenset({"user", "assistant"})


class _Message(msgspec.Struct):
    role: str | None = None
    content: Any = None


class _Entry(msgspec.Struct):
    """The fields of an entry that gitcp reads; all others are opaque."""

    type: str | None = None
    id: str | None = None
    cwd: str | None = None
    message: _Message | None = None


_ENTRY = msgspec.json.Decoder(_Entry)


class PiSessions(Conversations):
    """The conversations of Pi."""

    def messages(self, raw: bytes) -> Iterator[Message]:
        """Yields the messages."""
        for line in records.lines(raw):
            entry = records.decode_or(_ENTRY, line, _Entry())
            spoken = entry.message
            if entry.type == "message" and spoken is not None:
                role = spoken.role or ""
                if role in _SPOKEN:
                    yield Message(entry.id, role, records.content_text(spoken.content))

    def cwd(self, line: bytes) -> str | None:
        """Returns the directory that the header names."""
        entry = records.decode_or(_ENTRY, line, _Entry())
        return entry.cwd if entry.type == "session" else None

    def written(
        self, kept: StoredConversation, folder: Path, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns a copy whose header names the new session; the rest is unchanged."""
        del places
        new = str(uuid.uuid4())
        if kept.foreign:
            # Only a restore needs it, and importing it would delay every hook.
            from gitcp.clients import pi_foreign  # noqa: PLC0415

            content = pi_foreign.rebuilt(kept.content, new, kept.directory)
            if not self.has_messages(content):
                return None
        else:
            first, end, rest = kept.content.partition(b"\n")
            content = _renamed(first, new) + end + rest
        plain = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", str(kept.directory)))
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S-000Z", time.gmtime())
        file = folder / "sessions" / f"--{plain}--" / f"{stamp}_{new}.jsonl"
        return ResumeFiles(new, folder, ((file, content),), (new,), kept.directory)


CONVERSATIONS = PiSessions()


def session_of(raw: bytes) -> str | None:
    """Returns the id in a session's header, its first record."""
    first = next(records.lines(raw), b"")
    entry = records.decode_or(_ENTRY, first, _Entry())
    return entry.id if entry.type == "session" else None


def _renamed(header: bytes, new: str) -> bytes:
    """Returns a header with another id; any other line unchanged."""
    entry = records.decode_or(_ENTRY, header, _Entry())
    if entry.type != "session" or not entry.id:
        return header
    name = rb'("id"\s*:\s*)"' + re.escape(entry.id.encode()) + b'"'
    return re.sub(name, rb'\g<1>"' + new.encode() + b'"', header, count=1)
