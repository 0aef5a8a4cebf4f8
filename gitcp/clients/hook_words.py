"""Records conversations of clients that keep none on disk, from their hooks' payloads.

gitcp records each hook call as it comes, in a file of its own in the user's state directory:
`{type, payload, message}`. No conversation can be resumed from it.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gitcp.clients import records
from gitcp.clients.client import Event
from gitcp.clients.conversations import Conversations, Message
from gitcp.user_state import state_directory

# Never store whose account it is.
_LEFT_OUT = frozenset({"user_email"})


class _HookMessage(msgspec.Struct):
    role: str
    content: Any = None


class _HookRecord(msgspec.Struct):
    """A line of ours: a hook's payload, and its message if it has one."""

    ident: str | None = None
    cwd: str | None = None
    message: _HookMessage | None = None


_RECORD = msgspec.json.Decoder(_HookRecord)


class HookWords(Conversations):
    """The payloads that a client sent to its hooks."""

    def completed(
        self,
        event: Event,
        hook: str,
        payload: Mapping[str, Any],
        environment: Mapping[str, str],
        folder: Path,
    ) -> Event | None:
        """Adds to an event the record to store, and the file to store it in."""
        kept = {name: each for name, each in payload.items() if name not in _LEFT_OUT}
        record: dict[str, Any] = {"type": hook, "cwd": event.cwd, "payload": kept}
        if event.prompt_text:
            record["message"] = {"role": "user", "content": event.prompt_text}
        elif event.final_text:
            record["message"] = {"role": "assistant", "content": event.final_text}
        line = msgspec.json.encode(record) + b"\n"
        spool = _spool(environment, folder.name, event.session)
        return event._replace(transcript=spool, record=line)

    def messages(self, raw: bytes) -> Iterator[Message]:
        """Yields the messages."""
        for line in records.lines(raw):
            record = records.decode_or(_RECORD, line, _HookRecord())
            said = record.message
            if said is not None:
                text = records.content_text(said.content)
                yield Message(record.ident, said.role, text)

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Returns True: gitcp wrote the file itself."""
        del event, tail
        return True

    def cwd(self, line: bytes) -> str | None:
        """Returns the directory that a record names."""
        return records.decode_or(_RECORD, line, _HookRecord()).cwd


CONVERSATIONS = HookWords()


def _spool(environment: Mapping[str, str], client: str, session: str) -> Path:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", session)[:100]
    hooks = state_directory(environment) / "hooks"
    return hooks / client.lstrip(".") / f"{plain}.jsonl"
