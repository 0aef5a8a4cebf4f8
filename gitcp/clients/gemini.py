"""Gemini CLI: its hooks, its chats, and how a conversation resumes.

A chat is `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`: a header with the
session's id, then messages (a later one with the same id replaces the earlier), and
patches (`{"$set": {…}}`), which may hold messages too. `~/.gemini/projects.json` names the
project of each directory. A client that resumes a chat writes a new file.
"""

import json
import os
import re
import time
import unicodedata
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gitcp.clients import client as words
from gitcp.clients import records, triggers
from gitcp.clients.client import (
    ClientPlaces,
    Event,
    GrownList,
    HooksInJson,
    ResumeFiles,
    Source,
    StoredConversation,
    whole_lines,
)

_TIMEOUT_MS = 30_000

# hook -> its event. PreCompress is not among them: it runs before every answer.
_HOOKS: Final = {
    "SessionStart": triggers.SESSION_START,
    "BeforeAgent": triggers.TURN_START,
    "BeforeTool": triggers.BEFORE_COMMAND,
    "AfterTool": triggers.TOOL,
    "AfterAgent": triggers.TURN_END,
    "SessionEnd": triggers.SESSION_END,
}

_FILES: Final = {"project": Path(".gemini/settings.json")}


class _Patch(msgspec.Struct):
    messages: list[msgspec.Raw] = []


class _ChatRecord(msgspec.Struct):
    """The fields of a record that gitcp reads; all others are opaque."""

    id: str | None = None
    type: str | None = None
    content: Any = None
    patch: _Patch | None = msgspec.field(default=None, name="$set")


class _NewName(msgspec.Struct):
    sessionId: str | None = None  # noqa: N815  the client's spelling


class _ChatHeader(msgspec.Struct):
    sessionId: str | None = None  # noqa: N815  the client's spelling
    projectHash: str | None = None  # noqa: N815
    patch: _NewName = msgspec.field(default_factory=_NewName, name="$set")


class _Projects(msgspec.Struct):
    projects: dict[str, str] = {}


_RECORD = msgspec.json.Decoder(_ChatRecord)
_HEADER = msgspec.json.Decoder(_ChatHeader)
_SPOKEN = frozenset({"user", "gemini"})
_CONTEXT = "<session_context>"


class Gemini(HooksInJson):
    """The client of this module."""

    name = "gemini"
    title = "Gemini CLI"
    resuming: tuple[str, ...] = ("gemini", "--resume")
    meanings: Mapping[str, str] = _HOOKS

    # --- hooks ----------------------------------------------------------------------

    def event(
        self, hook: str, payload: Mapping[str, Any], environment: Mapping[str, str]
    ) -> Event | None:
        """Returns the event that a hook call reports."""
        event = words.event_in_common_fields(_HOOKS, hook, payload)
        if event is None:
            return None
        return event._replace(
            final_text=records.text(payload, "prompt_response"),
            project=environment.get("GEMINI_PROJECT_DIR"),
        )

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Whether the end of the chat holds the last words of the turn."""
        expected = (event.final_text or "").strip()
        if event.what != triggers.TURN_END or not expected:
            return True
        return any(
            record.type == "gemini" and _text(record) == expected
            for record in _messages(tail)
        )

    def has_messages(self, tail: bytes) -> bool:
        """Whether a person or the model said something."""
        return any(True for _ in _spoken(tail))

    def sources(self, event: Event) -> list[Source]:
        """Returns the chat."""
        return [] if event.transcript is None else [Source("", event.transcript)]

    # --- chats ----------------------------------------------------------------------

    def directory(self, content: bytes) -> str | None:
        """Returns None: a chat names its project only by a digest."""
        del content
        return None

    def copied(self, content: bytes) -> frozenset[str]:
        """Returns the ids of the messages, which stay the same in a resumed chat."""
        return frozenset(one.id for one in _spoken(content) if one.id)

    def first_new_message(self, content: bytes, copied: frozenset[str]) -> str | None:
        """Returns the first message that was not copied; "" if none was, None if all."""
        messages = ((one.id, one.id or "") for one in _spoken(content))
        return records.first_new_message(messages, copied)

    def position(self, content: bytes, ident: str) -> int | None:
        """Returns the offset of a message."""
        for start, line in records.mentions(content, ident):
            if any(one.id == ident for one in _messages(line)):
                return start
        return None

    def resume_files(
        self, kept: StoredConversation, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns a copy of the chat with another id in its headers.

        A chat that was made elsewhere is rebuilt.
        """
        content = whole_lines(kept.content)
        if not self.has_messages(content):
            return None
        new = str(uuid.uuid4())
        root = os.path.realpath(kept.directory)
        if kept.foreign:
            # Only a restore needs it, and importing it would delay every hook.
            from gitcp.clients import gemini_foreign  # noqa: PLC0415

            written = gemini_foreign.rebuilt(content, new, root)
            if not self.has_messages(written):
                return None
        else:
            # In what an older gitcp stored of a copy, the first header has the copied chat.
            names = {kept.session, _named(content)}
            written = b"\n".join(
                _renamed(line, names, new) for line in content.split(b"\n")
            )
        home = places.home / ".gemini"
        slug, grown = _project(home / "projects.json", root)
        stamp = time.strftime("%Y-%m-%dT%H-%M", time.gmtime())
        chats = home / "tmp" / slug / "chats"
        files = [(chats / f"session-{stamp}-{new[:8]}.jsonl", written)]
        mark = home / "tmp" / slug / ".project_root"
        if grown is not None and not mark.exists():
            files.append((mark, os.fsencode(root)))
        return ResumeFiles(
            new,
            home,
            tuple(files),
            (*self.resuming, new),
            kept.directory,
            grown=grown,
        )

    # --- settings -------------------------------------------------------------------

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the settings file of a scope."""
        files = {"user": places.home / ".gemini" / "settings.json", **_FILES}
        return words.settings_file(self, places, scope, files)

    def hooks(self, command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
        """Returns the entry in the settings for each hook."""
        shell = "run_shell_command"
        return {
            hook: words.grouped(
                command(hook),
                _TIMEOUT_MS,
                shell if what == triggers.BEFORE_COMMAND else None,
            )
            for hook, what in _HOOKS.items()
        }

    def notes(self, scope: str) -> tuple[str, ...]:
        """Returns notes for the user."""
        if scope != "project":
            return ()
        return ("Gemini CLI runs a project's hooks only in a folder that you trust",)


CLIENT = Gemini()


def _project(registry: Path, root: str) -> tuple[str, GrownList | None]:
    """Returns the client's name for a project, and its registry if that needs a new entry."""
    try:
        raw: bytes | None = registry.read_bytes()
    except FileNotFoundError:
        raw = None
    except OSError:
        return _slug(registry, root, ()), None
    try:
        known: dict[str, Any] = json.loads(raw or b"{}")
        names = msgspec.json.decode(raw or b"{}", type=_Projects).projects
    except (ValueError, *records.UNREADABLE):
        # gitcp does not rewrite a file that it cannot read: it may name other projects.
        return _slug(registry, root, ()), None
    if root in names:
        return names[root], None
    slug = _slug(registry, root, names.values())
    known["projects"] = {**names, root: slug}
    after = json.dumps(known, indent=2, ensure_ascii=False).encode()
    return slug, GrownList(registry, raw, after)


def _slug(registry: Path, root: str, used: Collection[str]) -> str:
    """Returns a name that no other project has."""
    plain = unicodedata.normalize("NFKD", os.path.basename(root)).lower()
    base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "project"
    slug, number = base, 1
    while slug in used or (registry.parent / "tmp" / slug).exists():
        slug, number = f"{base}-{number}", number + 1
    return slug


def _named(content: bytes) -> str | None:
    """Returns the session's id in the first header."""
    first = next(records.lines(content), b"")
    return records.decode_or(_HEADER, first, _ChatHeader()).sessionId


def _renamed(line: bytes, names: Collection[str | None], new: str) -> bytes:
    """Returns a record with the session's id replaced, if it names the session.

    Headers name it, and in a resumed chat also a `$set` after each later header.
    """
    if b'"sessionId"' not in line:
        return line
    try:
        header = records.decode(_HEADER, line)
    except records.UNREADABLE:
        return line
    old = header.sessionId if header.projectHash else header.patch.sessionId
    if not old or old not in names:
        return line
    name = rb'("sessionId"\s*:\s*)"' + re.escape(old.encode()) + b'"'
    return re.sub(name, rb'\g<1>"' + new.encode() + b'"', line, count=1)


def _text(record: _ChatRecord) -> str:
    return records.content_text(record.content).strip()


def _messages(raw: bytes) -> Iterator[_ChatRecord]:
    for line in raw.split(b"\n"):
        try:
            record = records.decode(_RECORD, line)
            inner = [record]
            if record.patch is not None:
                inner = [records.decode(_RECORD, one) for one in record.patch.messages]
        except records.UNREADABLE:
            continue
        yield from (one for one in inner if one.type in _SPOKEN)


def _spoken(raw: bytes) -> Iterator[_ChatRecord]:
    """Yields the messages of a person or the model, not those the client puts before them.

    The client makes the ids of its own messages from their text, so chats that begin on one
    day share them.
    """
    for one in _messages(raw):
        if one.type == "gemini" or not _text(one).startswith(_CONTEXT):
            yield one
