"""Cline CLI's conversations: a folder each, with a document that is rewritten each time.

`~/.cline/data/sessions/ID/ID.messages.json` has `{…, "messages": [{id, role, content, ts}]}`
beside `ID.json`, which describes the session. gitcp stores each message as a line, and the
rest of both documents beside these lines, so that a turn only adds lines. The client finds a
session by the name of its folder.
"""

import re
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gitcp.clients import history, known, records, triggers
from gitcp.clients.client import (
    ClientPlaces,
    Event,
    ResumeFiles,
    Source,
    StoredConversation,
)
from gitcp.clients.conversations import Conversations, Message
from gitcp.clients.known import word

# The name under which the description of a session lies beside its messages.
DESCRIPTION: Final = "session.json"
_SPOKEN = frozenset({"user", "assistant"})
_LARGEST = 1 << 28
# The client wraps a prompt in this tag.
_SAID = re.compile(r"\s*<user_input[^<>]*>(.*)</user_input>\s*", re.DOTALL)
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class _Document(msgspec.Struct):
    messages: list[msgspec.Raw]


class _Line(msgspec.Struct):
    """The fields of a message that gitcp reads; all others are opaque."""

    id: str | None = None
    role: str | None = None
    content: Any = None


_DOCUMENT = msgspec.json.Decoder(_Document)
_LINE = msgspec.json.Decoder(_Line)


class ClineSessions(Conversations):
    """The conversations of Cline CLI."""

    def completed(
        self,
        event: Event,
        hook: str,
        payload: Mapping[str, Any],
        environment: Mapping[str, str],
        folder: Path,
    ) -> Event | None:
        """Returns an event with its file; None for a subagent's turn."""
        del hook
        borders = {triggers.TURN_START, triggers.TURN_END}
        if event.what in borders and payload.get("parent_agent_id") is not None:
            return None
        name = event.session
        if not re.fullmatch(r"[\w-]{1,128}", name):
            return None
        file = sessions(folder, environment) / name / f"{name}.messages.json"
        event = event._replace(transcript=file)
        if event.what != triggers.TURN_END:
            return event
        return event._replace(prompt_text=self._asked(_lines(file)))

    def messages(self, raw: bytes) -> Iterator[Message]:
        """Yields the messages; the client stores tool results as messages of the user."""
        for line in records.lines(raw):
            record = records.decode_or(_LINE, line, _Line())
            if record.role in _SPOKEN:
                text = records.content_text(record.content)
                yield Message(record.id, record.role, _plain(text))

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Whether the document's last message is the turn's last; it is read as a whole."""
        del tail
        expected = (event.final_text or "").strip()
        if event.what != triggers.TURN_END or not expected or event.transcript is None:
            return True
        spoken = [*self.messages(_lines(event.transcript))][-1:]
        return any(
            one.role == "assistant" and one.text.strip() == expected for one in spoken
        )

    def sources(self, event: Event) -> list[Source]:
        """Returns the messages as lines, and the description of the session."""
        if event.transcript is None:
            return []
        lines = _lines(event.transcript)
        name = event.transcript.name.removesuffix(".messages.json")
        described = _read(event.transcript.with_name(f"{name}.json"))
        found = [Source("", content=lines)] if lines else []
        if lines and described:
            found.append(Source(DESCRIPTION, content=described))
        return found

    def written(
        self, kept: StoredConversation, folder: Path, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns both documents of a copy; only the messages are unchanged."""
        stamp = time.time_ns() // 1_000_000
        tail = "".join(secrets.choice(_BASE36) for _ in range(5))
        new = f"{stamp}_{tail}"
        content = kept.content
        if kept.foreign:
            # Only a restore needs it, and importing it would delay every hook.
            from gitcp.clients import cline_foreign  # noqa: PLC0415

            content = cline_foreign.rebuilt(content, new, kept.directory)
            if not self.has_messages(content):
                return None
        root = sessions(folder, places.environment)
        own = root / new
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        about = _about(kept.beside.get(DESCRIPTION, b""), self._asked(content))
        about |= {
            "session_id": new,
            "started_at": now,
            "ended_at": now,
            "cwd": str(kept.directory),
            "workspace_root": str(kept.directory),
            "messages_path": str(own / f"{new}.messages.json"),
        }
        head = {"version": 1, "updated_at": now, "agent": "lead", "sessionId": new}
        said = b",\n".join(records.lines(content))
        document = (
            msgspec.json.encode(head)[:-1] + b',"messages":[\n' + said + b"\n]}\n"
        )
        files = (
            (own / f"{new}.messages.json", document),
            (own / f"{new}.json", msgspec.json.encode(about) + b"\n"),
        )
        return ResumeFiles(new, root, files, (new,), kept.directory)

    def _asked(self, lines: bytes) -> str | None:
        """Returns the last prompt."""
        asked = None
        for one in self.messages(lines):
            if one.role == "user" and one.text:
                asked = one.text
        return asked


CONVERSATIONS = ClineSessions()


def sessions(folder: Path, environment: Mapping[str, str]) -> Path:
    """Returns the folder that the client keeps its sessions in."""
    own = environment.get("CLINE_SESSION_DATA_DIR")
    data = environment.get("CLINE_DATA_DIR")
    return Path(own) if own else (Path(data) if data else folder / "data") / "sessions"


def _plain(text: str) -> str:
    match = _SAID.fullmatch(text)
    return match[1] if match else text


def _read(path: Path) -> bytes:
    """Returns the content of a regular file of up to 256 MiB; empty if there is none."""
    raw = history.head(path, _LARGEST + 1)
    return raw if len(raw) <= _LARGEST else b""


def _lines(path: Path) -> bytes:
    """Returns the messages of a document, a line each, as the client wrote them."""
    document = records.decode_or(_DOCUMENT, _read(path), _Document([]))
    formatted = (msgspec.json.format(one, indent=-1) for one in document.messages)
    return b"".join(bytes(one) + b"\n" for one in formatted)


# --- restored documents ---------------------------------------------------------------

_ABOUT = {
    "provider": word,
    "model": word,
    "interactive": bool,
    "enable_tools": bool,
    "enable_spawn": bool,
    "enable_teams": bool,
}


def _about(described: bytes, asked: str | None) -> dict[str, Any]:
    """Returns the description of a session, from known fields only."""
    title = " ".join((asked or "Restored session").split())[:80]
    return {
        "version": 1,
        "source": "cli",
        "pid": 0,
        "exit_code": 0,
        "status": "completed",
        "interactive": False,
        "enable_tools": True,
        **known.fields(known.one(described) or {}, _ABOUT),
        "prompt": title,
        "metadata": {"title": title},
    }
