"""Droid's conversations: the file that its hooks name, a line for each record.

Messages are records `{type: "message", id, message: {role, content}}`; the first record
names the directory that the session began in. gitcp stores and shows these conversations,
but does not write them for the client again.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from gitcp.clients import records
from gitcp.clients.conversations import Conversations, Message

_SPOKEN = frozenset({"user", "assistant"})


class _Message(msgspec.Struct):
    role: str | None = None
    content: Any = None


class _Record(msgspec.Struct):
    """The fields of a record that gitcp reads; all others are opaque."""

    type: str | None = None
    id: str | None = None
    cwd: str | None = None
    message: _Message | None = None


_RECORD = msgspec.json.Decoder(_Record)


class DroidSessions(Conversations):
    """The conversations of Droid."""

    def messages(self, raw: bytes) -> Iterator[Message]:
        """Yields the messages."""
        for line in records.lines(raw):
            record = records.decode_or(_RECORD, line, _Record())
            said = record.message
            if record.type == "message" and said is not None:
                role = said.role or ""
                if role in _SPOKEN:
                    yield Message(record.id, role, records.content_text(said.content))

    def cwd(self, line: bytes) -> str | None:
        """Returns the directory that a record names."""
        return records.decode_or(_RECORD, line, _Record()).cwd


CONVERSATIONS = DroidSessions()
