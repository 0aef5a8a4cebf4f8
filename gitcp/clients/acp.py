"""Agents behind `gitcp acp`: the proxy's events, and the conversation that it recorded.

gitcp reads no agent's own files. It keeps the conversation in neutral form, in a folder of
its own for each session (`acp_folder`). A restore makes a new folder, and the next new
session of the editor continues from it.
"""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from gitcp.clients import acp_folder, known, records, triggers
from gitcp.clients.acp_folder import About, SessionFolder
from gitcp.clients.client import (
    ClientPlaces,
    Event,
    ResumeFiles,
    Source,
    StoredConversation,
)
from gitcp.errors import UsageError

NAME = "acp"
_EVENTS: Final = frozenset(
    {
        triggers.SESSION_START,
        triggers.TURN_START,
        triggers.BEFORE_COMMAND,
        triggers.TOOL,
        triggers.TURN_END,
        triggers.SESSION_END,
    }
)
# The blocks that are kept of a conversation made elsewhere.
_BLOCK = {"type": known.one_of("text"), "text": str}
_CALL = {
    "type": known.one_of("tool_use"),
    "id": known.ident,
    "name": known.word,
    "input": known.ANYTHING,
}
_RESULT = {
    "type": known.one_of("tool_result"),
    "tool_use_id": known.ident,
    "content": [_BLOCK],
}


class _Record(msgspec.Struct):
    role: str | None = None
    cwd: str | None = None


_RECORD = msgspec.json.Decoder(_Record)


class Acp:
    """The client of this module."""

    name = NAME
    title = "the agent"
    resuming: tuple[str, ...] = ()

    # --- the proxy's events ---------------------------------------------------------

    def event(
        self, hook: str, payload: Mapping[str, Any], environment: Mapping[str, str]
    ) -> Event | None:
        """Returns the proxy's event; turns that have ended are in the conversation by then."""
        session = records.text(payload, "session")
        if hook not in _EVENTS or session is None or not acp_folder.is_name(session):
            return None
        folder = SessionFolder(acp_folder.root(environment) / session)
        upto = payload.get("upto")
        if isinstance(upto, int):
            folder.fold(upto)
        tool = records.text(payload, "tool")
        return Event(
            hook,
            session,
            records.text(payload, "cwd") or "/",
            transcript=folder.talk,
            prompt_text=records.text(payload, "prompt"),
            tools=(tool,) if tool else (),
            command=records.text(payload, "command"),
        )

    def answer(self, hook: str, text: str, *, quietly: bool = False) -> bytes | None:
        """Returns the text to put before the prompt; the first prompt does not wait for it."""
        del quietly
        return text.encode() if hook == triggers.TURN_START else None

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Returns True: gitcp wrote the file itself."""
        del event, tail
        return True

    def has_messages(self, tail: bytes) -> bool:
        """Whether a person or the model said something."""
        return any(record.role is not None for record in _records(tail))

    def sources(self, event: Event) -> list[Source]:
        """Returns the file of the conversation."""
        return [] if event.transcript is None else [Source("", event.transcript)]

    # --- the conversation -----------------------------------------------------------

    def directory(self, content: bytes) -> str | None:
        """Returns the directory that the session works in."""
        return next((one.cwd for one in _records(content) if one.cwd), None)

    def copied(self, content: bytes) -> frozenset[str]:
        """Returns an empty set: the proxy sees only messages of this session."""
        del content
        return frozenset()

    def first_new_message(self, content: bytes, copied: frozenset[str]) -> str | None:
        """Returns "": none of it was copied."""
        del content, copied
        return ""

    def position(self, content: bytes, ident: str) -> int | None:
        """Returns None: the protocol has no ids of turns."""
        del content, ident
        return None

    def resume_files(
        self, kept: StoredConversation, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns a folder that the next new session in this project continues from."""
        if not self.has_messages(kept.content):
            return None
        content = rebuilt(kept.content) if kept.foreign else kept.content
        name = str(uuid.uuid4())
        root = acp_folder.root(places.environment)
        folder = SessionFolder(root / name)
        before = _session_with(root, kept)
        about = About(
            cwd=str(kept.directory),
            agent=before.agent if before else None,
            top=os.path.realpath(places.top or kept.directory),
            whole=before.session if before else None,
            replayed=False,
        )
        return ResumeFiles(
            name,
            root,
            (
                (folder.talk, content),
                (folder.path / "session.json", acp_folder.encode(about)),
            ),
            (),
            kept.directory,
            told="open a new thread with the agent in your editor: with its first prompt"
            " it is given the talk up to here",
        )

    # --- settings -------------------------------------------------------------------

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Raises: there are no settings to put hooks into."""
        del scope, places
        _refuse()

    def merge(self, text: bytes | None, command: Callable[[str], str]) -> bytes:
        """Raises: there are no settings."""
        del text, command
        _refuse()

    def unmerge(self, text: bytes) -> bytes | None:
        """Raises: there are no settings."""
        del text
        _refuse()

    def installed(self, text: bytes) -> bool:
        """Returns False: the editor starts the proxy, not a hook."""
        del text
        return False

    def notes(self, scope: str) -> tuple[str, ...]:
        """Returns nothing."""
        del scope
        return ()


CLIENT = Acp()


def _refuse() -> NoReturn:
    raise UsageError(
        "an agent behind the Agent Client Protocol has no hooks to install",
        hint="have your editor start `gitcp acp -- AGENT`",
    )


def _session_with(root: Path, kept: StoredConversation) -> About | None:
    """Returns the session with exactly this conversation, because its agent may fork it."""
    if kept.session is None or kept.foreign or not acp_folder.is_name(kept.session):
        return None
    folder = SessionFolder(root / kept.session)
    try:
        same = not folder.turns() and folder.talk.read_bytes() == kept.content
    except OSError:
        return None
    return folder.about() if same else None


def rebuilt(content: bytes) -> bytes:
    """Rebuilds a conversation that was made elsewhere from known fields only."""
    return known.lines(_rebuilt(content))


def _rebuilt(content: bytes) -> Iterator[dict[str, Any]]:
    for record in known.objects(content):
        role = known.pick(record.get("role"), known.one_of("user", "assistant", "tool"))
        given = record.get("content")
        listed = given if isinstance(given, list) else []
        if isinstance(given, str):
            listed = [{"type": "text", "text": given}]
        blocks = [block for block in map(_block, listed) if block is not None]
        if role is not None and blocks:
            yield {"role": role, "content": blocks}


def _block(block: Any) -> dict[str, Any] | None:
    kind = block.get("type") if isinstance(block, dict) else None
    shapes = {"text": _BLOCK, "tool_use": _CALL, "tool_result": _RESULT}
    if not isinstance(kind, str) or kind not in shapes:
        return None
    return known.fields(block, shapes[kind])


def _records(raw: bytes) -> Iterator[_Record]:
    for line in records.lines(raw):
        try:
            yield records.decode(_RECORD, line)
        except records.UNREADABLE:
            continue
