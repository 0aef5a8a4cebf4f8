"""Clients described by one row of a table: files, hooks, field names, conversations.

Most clients adopted Claude Code's hooks, and differ in names. The form of their conversations
differs more, so each form has a module of its own (`conversations`). `rows` holds the table.
"""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from gitcp.clients import client as words
from gitcp.clients import records, triggers
from gitcp.clients.client import (
    ClientPlaces,
    Event,
    HooksInJson,
    ResumeFiles,
    Source,
    StoredConversation,
)
from gitcp.clients.conversations import Conversations


class Row(NamedTuple):
    """One client.

    `meanings` are its hooks, with the event of each. `folder` holds the client's own files,
    below the home, unless the variable `folder_variable` names another place. `files` are
    its settings by scope: the user's below that folder, others below the project.
    `conversations` is the module that reads its conversations.

    An entry of the settings has the command under `command_name` and the timeout, in the
    client's unit, under `timeout_name`; with `grouped` the entry is in a group. The client
    calls the hook before a command for the tools that match `shell_tool`. `head` are further
    fields that the settings need.

    `session`, `cwd`, `prompt`, `tool`, `given`, `final_text` and `required` are fields of a
    hook's payload: the conversation's id, the agent's directory, the prompt, a tool's name
    and arguments, the turn's last words, and the fields without which the payload is from
    another client. A name with dots leads into a field: `turn.text`.
    `told` makes a hook's answer from a text for the model (None: the model reads none).
    """

    name: str
    title: str
    meanings: Mapping[str, str]
    folder: str
    files: Mapping[str, str]
    conversations: str
    resuming: tuple[str, ...] = ()
    folder_variable: str | None = None
    grouped: bool = True
    command_name: str = "command"
    timeout_name: str = "timeout"
    timeout: int = 30
    shell_tool: str | None = "Bash"
    head: Mapping[str, Any] | None = None
    session: str = "session_id"
    cwd: str = "cwd"
    prompt: str = "prompt"
    tool: str = "tool_name"
    given: str = "tool_input"
    final_text: str = "last_assistant_message"
    required: tuple[str, ...] = ()
    project_variable: str | None = None
    told: Callable[..., bytes | None] = words.context
    notes: tuple[str, ...] = ()


class TableClient(HooksInJson):
    """A client that a row describes."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.name = row.name
        self.title = row.title
        self.resuming = row.resuming
        self.meanings = row.meanings
        self.head = row.head

    @property
    def conversations(self) -> Conversations:
        """The reader and writer of this client's conversations."""
        module = importlib.import_module(self.row.conversations)
        return cast("Conversations", module.CONVERSATIONS)

    # --- hooks ----------------------------------------------------------------------

    def event(
        self, hook: str, payload: Mapping[str, Any], environment: Mapping[str, str]
    ) -> Event | None:
        """Returns the event that a hook call reports; None if another client made the call."""
        row = self.row
        if any(records.field(payload, name) is None for name in row.required):
            return None
        common = {"session_id": row.session, "cwd": row.cwd, "prompt": row.prompt}
        common |= {"tool_name": row.tool, "tool_input": row.given}
        named = {name: records.field(payload, each) for name, each in common.items()}
        event = words.event_in_common_fields(row.meanings, hook, {**payload, **named})
        if event is None:
            return None
        place = self.folder(_places(environment))
        project = (
            environment.get(row.project_variable) if row.project_variable else None
        )
        event = event._replace(
            final_text=records.text({"": records.field(payload, row.final_text)}, ""),
            project=project,
        )
        return self.conversations.completed(event, hook, payload, environment, place)

    def answer(self, hook: str, text: str, *, quietly: bool = False) -> bytes | None:
        """Returns output that shows a text to the model, and to the user unless `quietly`."""
        if self.meanings.get(hook) not in triggers.BEGINNINGS:
            return None
        return self.row.told(hook, text, quietly=quietly)

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Whether the end of the conversation holds the event's records."""
        return self.conversations.is_flushed(event, tail)

    def has_messages(self, tail: bytes) -> bool:
        """Whether a person or the model said something."""
        return self.conversations.has_messages(tail)

    def sources(self, event: Event) -> list[Source]:
        """Returns the files of the conversation, the conversation itself first."""
        return self.conversations.sources(event)

    # --- conversations --------------------------------------------------------------

    def directory(self, content: bytes) -> str | None:
        """Returns the directory that the conversation began in."""
        return self.conversations.directory(content)

    def copied(self, content: bytes) -> frozenset[str]:
        """Returns the ids of the messages, which are the same in a copy."""
        messages = self.conversations.messages(content)
        return frozenset(one.ident for one in messages if one.ident)

    def first_new_message(self, content: bytes, copied: frozenset[str]) -> str | None:
        """Returns the first message that was not copied; "" if none was, None if all."""
        messages = self.conversations.messages(content)
        return records.first_new_message(
            ((one.ident, one.ident or "") for one in messages), copied
        )

    def position(self, content: bytes, ident: str) -> int | None:
        """Returns the offset of a message."""
        for start, line in records.mentions(content, ident):
            if any(one.ident == ident for one in self.conversations.messages(line)):
                return start
        return None

    def resume_files(
        self, kept: StoredConversation, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns the files of a copy under a new id; one made elsewhere is rebuilt."""
        if not self.resuming:
            return None
        content = words.whole_lines(kept.content)
        if not self.has_messages(content):
            return None
        written = self.conversations.written(
            kept._replace(content=content), self.folder(places), places
        )
        if written is None:
            return None
        return written._replace(command=(*self.resuming, written.session))

    # --- settings -------------------------------------------------------------------

    def folder(self, places: ClientPlaces) -> Path:
        """Returns the folder of the client's own files."""
        variable = self.row.folder_variable
        own = places.environment.get(variable) if variable else None
        return Path(own) if own else places.home / self.row.folder

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the file that holds the hooks."""
        files = {name: Path(file) for name, file in self.row.files.items()}
        if "user" in files:
            files["user"] = self.folder(places) / files["user"]
        return words.settings_file(self, places, scope, files)

    def hooks(self, command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
        """Returns the entry in the settings for each hook."""
        return {
            hook: self._entry(command(hook), what)
            for hook, what in self.row.meanings.items()
        }

    def _entry(self, command: str, what: str) -> dict[str, Any]:
        row = self.row
        entry = {
            "type": "command",
            row.command_name: command,
            row.timeout_name: row.timeout,
        }
        matcher = row.shell_tool if what == triggers.BEFORE_COMMAND else None
        match = {"matcher": matcher} if matcher else {}
        return {**match, "hooks": [entry]} if row.grouped else {**match, **entry}

    def notes(self, scope: str) -> tuple[str, ...]:
        """Returns notes for the user."""
        del scope
        return self.row.notes


def flat_context(hook: str, text: str, *, quietly: bool = False) -> bytes:
    """Returns an answer for clients that never show the output of hooks to the user."""
    del hook, quietly
    import json  # noqa: PLC0415  only hooks that answer pay for it

    return json.dumps({"additionalContext": text}).encode()


def plain_text(hook: str, text: str, *, quietly: bool = False) -> bytes:
    """Returns the text itself, for a plugin of ours."""
    del hook, quietly
    return text.encode()


def told_with_a_prompt(hook: str, text: str, *, quietly: bool = False) -> bytes | None:
    """Returns an answer for clients whose model reads only the answer of one hook."""
    if hook != "UserPromptSubmit":
        return None
    return flat_context(hook, text, quietly=quietly)


def untold(hook: str, text: str, *, quietly: bool = False) -> bytes | None:
    """Returns None: the client ignores the answers of hooks as a turn begins."""
    del hook, text, quietly
    return None


def _places(environment: Mapping[str, str]) -> ClientPlaces:
    return ClientPlaces(None, Path(environment.get("HOME", "/")), environment)
