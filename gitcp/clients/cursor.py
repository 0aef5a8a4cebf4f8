"""Cursor: its hooks, and the part of the conversation that they show.

Other programs cannot read Cursor's conversations. So gitcp records each hook's payload as it
comes, in a file of its own in the user's state directory; that file is the conversation that
gitcp stores. Cursor cannot resume it: a restore restores the files, and the user can read the
conversation.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

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
from gitcp.user_state import state_directory

# hook -> its event
_HOOKS: Final = {
    "sessionStart": triggers.SESSION_START,
    "beforeSubmitPrompt": triggers.TURN_START,
    "afterAgentResponse": triggers.RECORD_ONLY,
    "postToolUse": triggers.TOOL,
    "postToolUseFailure": triggers.TOOL,
    "afterFileEdit": triggers.RECORD_ONLY,
    "afterShellExecution": triggers.RECORD_ONLY,
    "preCompact": triggers.COMPACT,
    "subagentStop": triggers.SUBAGENT_STOP,
    "stop": triggers.TURN_END,
    "sessionEnd": triggers.SESSION_END,
}
_ROLES: Final = {"beforeSubmitPrompt": "user", "afterAgentResponse": "assistant"}

# Never store whose account it is.
_LEFT_OUT = frozenset({"user_email"})

_FILES: Final = {"project": Path(".cursor/hooks.json")}


class _HookMessage(msgspec.Struct):
    role: str


class _HookPayload(msgspec.Struct):
    conversation_id: str | None = None
    generation_id: str | None = None
    workspace_roots: list[str] = []


class _HookRecord(msgspec.Struct):
    """A line of ours: a hook's payload, and its message if it has one."""

    type: str
    payload: _HookPayload
    message: _HookMessage | None = None


_RECORD = msgspec.json.Decoder(_HookRecord)


class Cursor(HooksInJson):
    """The client of this module."""

    head: Mapping[str, Any] | None = {"version": 1}
    name = "cursor"
    title = "Cursor"
    resuming: tuple[str, ...] = ()

    # --- hooks ----------------------------------------------------------------------

    def event(
        self, hook: str, payload: Mapping[str, Any], environment: Mapping[str, str]
    ) -> Event | None:
        """Returns the event that a hook call reports, with the record to store."""
        session = records.text(payload, "conversation_id")
        what = _HOOKS.get(hook)
        if what is None or session is None:
            return None
        roots = payload.get("workspace_roots")
        first = roots[0] if isinstance(roots, list) and roots else None
        cwd = first if isinstance(first, str) else records.text(payload, "cwd")
        tool = records.text(payload, "tool_name")
        return Event(
            what,
            session,
            cwd or "/",
            transcript=_spool(environment, session),
            prompt=records.text(payload, "generation_id"),
            prompt_text=records.text(payload, "prompt"),
            tools=(tool,) if tool else (),
            record=_record(hook, payload),
        )

    def answer(self, hook: str, text: str, *, quietly: bool = False) -> bytes | None:
        """Returns output that shows a text to the agent as a session begins, or to the user.

        Cursor shows the user the output of the hook before a prompt only if the hook stops
        the prompt, and gitcp's hook does not.
        """
        match hook:
            case "sessionStart":
                return json.dumps({"additional_context": text}).encode()
            case "beforeSubmitPrompt" if not quietly:
                return json.dumps({"continue": True, "user_message": text}).encode()
            case _:
                return None

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Returns True: gitcp wrote the file itself."""
        del event, tail
        return True

    def has_messages(self, tail: bytes) -> bool:
        """Whether a person or the model said something."""
        return any(record.message is not None for record in _records(tail))

    def sources(self, event: Event) -> list[Source]:
        """Returns the file of the hooks' payloads."""
        return [] if event.transcript is None else [Source("", event.transcript)]

    # --- the hooks' payloads --------------------------------------------------------

    def directory(self, content: bytes) -> str | None:
        """Returns the first folder of the workspace."""
        for record in _records(content):
            if record.payload.workspace_roots:
                return record.payload.workspace_roots[0]
        return None

    def copied(self, content: bytes) -> frozenset[str]:
        """Returns an empty set: no conversation is known to begin as a copy."""
        del content
        return frozenset()

    def first_new_message(self, content: bytes, copied: frozenset[str]) -> str | None:
        """Returns "": none of it was copied."""
        del content, copied
        return ""

    def position(self, content: bytes, ident: str) -> int | None:
        """Returns the offset of a turn."""
        for start, line in records.mentions(content, ident):
            if any(one.payload.generation_id == ident for one in _records(line)):
                return start
        return None

    def resume_files(
        self, kept: StoredConversation, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns None: Cursor cannot import a conversation."""
        del kept, places
        return None

    # --- settings -------------------------------------------------------------------

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the hooks file of a scope."""
        files = {"user": places.home / ".cursor" / "hooks.json", **_FILES}
        return words.settings_file(self, places, scope, files)

    def hooks(self, command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
        """Returns the entry in the settings for each hook."""
        return {hook: {"command": command(hook)} for hook in _HOOKS}

    def notes(self, scope: str) -> tuple[str, ...]:
        """Returns notes for the user."""
        del scope
        note = (
            "gitcp saves the part of its conversations that the hooks show; a restore"
            " brings back the files, and the conversation as text"
        )
        return (note,)


CLIENT = Cursor()


def _spool(environment: Mapping[str, str], session: str) -> Path:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", session)[:100]
    return state_directory(environment) / "cursor" / f"{plain}.jsonl"


def _record(hook: str, payload: Mapping[str, Any]) -> bytes:
    kept = {name: each for name, each in payload.items() if name not in _LEFT_OUT}
    record: dict[str, Any] = {"type": hook, "payload": kept}
    text = records.text(payload, "prompt") or records.text(payload, "text")
    if hook in _ROLES and text is not None:
        record["message"] = {"role": _ROLES[hook], "content": text}
    return msgspec.json.encode(record) + b"\n"


def _records(raw: bytes) -> Iterator[_HookRecord]:
    for line in raw.split(b"\n"):
        try:
            yield records.decode(_RECORD, line)
        except records.UNREADABLE:
            continue
