"""OpenCode: its plugin, its messages, and how a session resumes.

OpenCode keeps its sessions in a database of its own. The plugin passes on what OpenCode's
API returns: each message with its parts as one JSON text, and a description of the session.
`opencode import` reads the same data, in one document, under new ids.
"""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gitcp.clients import client as words
from gitcp.clients import records, triggers
from gitcp.clients.client import (
    ClientPlaces,
    Event,
    ResumeFiles,
    Source,
    StoredConversation,
    whole_lines,
)
from gitcp.clients.plugin_file import PluginFile

# the reason of the plugin's call -> its event
_HOOKS: Final = {
    "chat.message": triggers.TURN_START,
    "tool.execute.before": triggers.BEFORE_COMMAND,
    "tool.execute.after": triggers.TOOL,
    "session.idle": triggers.TURN_END,
}
# The name under which the description of a session lies beside its messages.
DESCRIPTION: Final = "session.json"


class _Time(msgspec.Struct):
    created: float | None = None


class _Path(msgspec.Struct):
    cwd: str | None = None


class _Info(msgspec.Struct):
    id: str | None = None
    role: str | None = None
    time: _Time = msgspec.field(default_factory=_Time)
    path: _Path = msgspec.field(default_factory=_Path)


class _MessageRecord(msgspec.Struct):
    """The fields of a message that gitcp reads; all others are opaque."""

    info: _Info


class _Session(msgspec.Struct):
    id: str
    parentID: str | None = None  # noqa: N815  the client's spelling


_RECORD = msgspec.json.Decoder(_MessageRecord)


class OpenCode(PluginFile):
    """OpenCode, or a fork of it under another name."""

    meanings: Mapping[str, str] = _HOOKS
    source = "opencode_plugin.js"

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self.resuming: tuple[str, ...] = (name, "--session")
        self.renamed = {
            b"opencode": name.encode(),
            b"OpenCode": title.encode(),
            b"OPENCODE": name.upper().encode(),
        }

    # --- hooks ----------------------------------------------------------------------

    def event(
        self, hook: str, payload: Mapping[str, Any], environment: Mapping[str, str]
    ) -> Event | None:
        """Returns the event that a call of the plugin reports."""
        del environment
        what = _HOOKS.get(hook)
        session = records.text(payload, "session_id")
        if what is None or session is None:
            return None
        prompt = records.text(payload, "prompt_id")
        described = records.text(payload, "session")
        parent = _parent(described)
        content = _content(payload, prompt if what == triggers.TURN_START else None)
        inline: list[Source] = []
        if parent is not None:
            if what == triggers.TURN_START:
                return None
            if what == triggers.TURN_END:
                what = triggers.SUBAGENT_STOP
                inline.append(Source(f"{session}.jsonl", content=content))
            session = parent
        elif content is not None:
            inline.append(Source("", content=content))
            if described is not None:
                inline.append(Source(DESCRIPTION, content=described.encode()))
        tool = records.text(payload, "tool")
        command = records.text(payload, "command")
        if what == triggers.BEFORE_COMMAND and command is None:
            return None
        return Event(
            what,
            session,
            records.text(payload, "cwd") or "/",
            prompt=prompt,
            prompt_text=records.text(payload, "prompt"),
            tools=(tool,) if tool else (),
            command=command,
            inline=tuple(inline),
        )

    def answer(self, hook: str, text: str, *, quietly: bool = False) -> bytes | None:
        """Returns the text that the plugin shows to the user; it cannot tell the agent."""
        begins = _HOOKS.get(hook) in triggers.BEGINNINGS
        return text.encode() if begins and not quietly else None

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Returns True: the plugin passes all messages."""
        del event, tail
        return True

    def has_messages(self, tail: bytes) -> bool:
        """Whether there is a message."""
        return any(True for _ in _messages(tail))

    def sources(self, event: Event) -> list[Source]:
        """Returns the content that the plugin passed."""
        return list(event.inline)

    # --- messages -------------------------------------------------------------------

    def directory(self, content: bytes) -> str | None:
        """Returns the directory of the model's first answer."""
        return next((one.path.cwd for one in _messages(content) if one.path.cwd), None)

    def copied(self, content: bytes) -> frozenset[str]:
        """Returns the time and author of each message, because a fork has other ids."""
        return frozenset(map(_identity, _messages(content)))

    def first_new_message(self, content: bytes, copied: frozenset[str]) -> str | None:
        """Returns the first message that was not copied; "" if none was, None if all."""
        messages = ((one.id, _identity(one)) for one in _messages(content))
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
        """Returns a document for `opencode import`, with ids of its own."""
        content = whole_lines(kept.content)
        described = kept.beside.get(DESCRIPTION)
        if described is None or not self.has_messages(content):
            return None
        # Only a restore needs it, and importing it would delay every hook.
        from gitcp.clients import opencode_document  # noqa: PLC0415

        document = (
            opencode_document.foreign(content, described, kept.directory)
            if kept.foreign
            else opencode_document.own(content, described)
        )
        if document is None:
            return None
        root = data_directory(places, self.name) / "gitcp"
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        path = root / f"{stamp}-{document.session}.json"
        return ResumeFiles(
            document.session,
            root,
            ((path, document.content),),
            (*self.resuming, document.session),
            kept.directory,
            first=(self.name, "import", str(path)),
        )

    # --- the plugin -----------------------------------------------------------------

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the plugin's file for a scope."""
        own = places.environment.get("XDG_CONFIG_HOME")
        config = Path(own) if own else places.home / ".config"
        files = {
            "user": config / self.name / "plugin" / "gitcp.js",
            "project": Path(f".{self.name}/plugin/gitcp.js"),
        }
        return words.settings_file(self, places, scope, files)

    def notes(self, scope: str) -> tuple[str, ...]:
        """Returns notes for the user."""
        del scope
        note = (
            f"{self.title} fetches what its plugins need when it starts: without a network"
            " that may take it a minute, the first time"
        )
        return (note,)


CLIENT = OpenCode("opencode", "OpenCode")
TABLE = {
    "opencode": CLIENT,
    "kilo": OpenCode("kilo", "Kilo"),
}


def data_directory(places: ClientPlaces, name: str = "opencode") -> Path:
    """Returns the folder that the client keeps its sessions in."""
    own = places.environment.get("XDG_DATA_HOME")
    return (Path(own) if own else places.home / ".local" / "share") / name


def _parent(described: str | None) -> str | None:
    """Returns the session that a subagent's session works for; None for any other."""
    if described is None:
        return None
    try:
        return msgspec.json.decode(described, type=_Session).parentID
    except records.UNREADABLE:
        return None


def _content(payload: Mapping[str, Any], without: str | None) -> bytes | None:
    """Returns the messages as lines; if a prompt is given, only those before it."""
    given = payload.get("messages")
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        return None
    lines = []
    for one in given:
        line = one.replace("\n", " ").encode("utf-8", "replace")
        if without is not None and any(info.id == without for info in _messages(line)):
            break
        lines.append(line + b"\n")
    return b"".join(lines)


def _messages(raw: bytes) -> Iterator[_Info]:
    for line in raw.split(b"\n"):
        try:
            info = records.decode(_RECORD, line).info
        except records.UNREADABLE:
            continue
        if info.role is not None:
            yield info


def _identity(info: _Info) -> str:
    return f"{info.role} {info.time.created}"
