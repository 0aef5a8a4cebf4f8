"""Qwen Code's conversations: a file each, in the folder of the project.

`~/.qwen/projects/<project>/chats/<id>.jsonl`: `{uuid, parentUuid, sessionId, type, cwd,
message: {role, parts}}`. The client finds a session by the name of the file.
"""

import os
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gitcp.clients import records, triggers
from gitcp.clients.client import ClientPlaces, Event, ResumeFiles, StoredConversation
from gitcp.clients.conversations import Conversations, Message

_ROLES = {"user": "user", "assistant": "assistant"}


class _Message(msgspec.Struct):
    parts: Any = None


class _Record(msgspec.Struct):
    """The fields of a record that gitcp reads; all others are opaque."""

    type: str | None = None
    uuid: str | None = None
    cwd: str | None = None
    message: _Message | None = None


_RECORD = msgspec.json.Decoder(_Record)


class QwenChats(Conversations):
    """The conversations of Qwen Code."""

    def completed(
        self,
        event: Event,
        hook: str,
        payload: Mapping[str, Any],
        environment: Mapping[str, str],
        folder: Path,
    ) -> Event | None:
        """Returns None for tool results, which the client announces as an empty prompt."""
        del hook, environment, folder
        empty = event.what == triggers.TURN_START and not payload.get("prompt")
        return None if empty else event

    def messages(self, raw: bytes) -> Iterator[Message]:
        """Yields the messages."""
        for line in records.lines(raw):
            record = records.decode_or(_RECORD, line, _Record())
            role = _ROLES.get(record.type or "")
            if role is not None and record.message is not None:
                text = records.content_text(record.message.parts)
                yield Message(record.uuid, role, text)

    def cwd(self, line: bytes) -> str | None:
        """Returns the directory that a record names."""
        return records.decode_or(_RECORD, line, _Record()).cwd

    def written(
        self, kept: StoredConversation, folder: Path, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns a copy under a new name."""
        new = str(uuid.uuid4())
        content = kept.content
        if kept.foreign:
            # Only a restore needs it, and importing it would delay every hook.
            from gitcp.clients import qwen_foreign  # noqa: PLC0415

            content = qwen_foreign.rebuilt(content, new, kept.directory)
            if not self.has_messages(content):
                return None
        root = runtime_folder(folder, places)
        real = os.path.realpath(kept.directory)
        project = re.sub(r"[^a-zA-Z0-9]", "-", real)
        file = root / "projects" / project / "chats" / f"{new}.jsonl"
        return ResumeFiles(new, root, ((file, content),), (new,), kept.directory)


CONVERSATIONS = QwenChats()


def runtime_folder(folder: Path, places: ClientPlaces) -> Path:
    """Returns the folder of the files that the client writes itself, such as conversations."""
    own = places.environment.get("QWEN_RUNTIME_DIR")
    return Path(own) if own else folder
