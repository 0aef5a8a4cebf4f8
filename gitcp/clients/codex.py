"""Codex: its hooks, its transcripts (rollouts), and how a conversation resumes.

A rollout is `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-<local time>-<thread>.jsonl`, a line
for each record: `{timestamp, ordinal, type, payload}`. The model's input and output are
records of type `response_item`. The first record (`session_meta`) names the thread of a
file; the file's name does not count. When a turn ends, the rollout holds all of it. While
the hook after a tool runs, the rollout does not hold the tool's result yet.

A thread that the client forks does not begin with a copy: its first record says which thread
it continues, and up to which record. So gitcp stores that thread's rollout beside it.
"""

import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
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
    whole_lines,
)

_TIMEOUT = 30
# In seconds: the client allows a hook at a session's end no more.
_TIMEOUT_AT_END = 3

# hook -> its event
_HOOKS: Final = {
    "SessionStart": triggers.SESSION_START,
    "UserPromptSubmit": triggers.TURN_START,
    "PreToolUse": triggers.BEFORE_COMMAND,
    "PostToolUse": triggers.TOOL,
    "Stop": triggers.TURN_END,
    "PreCompact": triggers.COMPACT,
    "SubagentStop": triggers.SUBAGENT_STOP,
    "SessionEnd": triggers.SESSION_END,
}

_FILES: Final = {"project": Path(".codex/hooks.json")}


class _RolloutPayload(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    forked_from_id: str | None = None
    forked_from_ordinal_exclusive: int | None = None
    turn_id: str | None = None
    role: str | None = None
    cwd: str | None = None
    content: Any = None


class _RolloutRecord(msgspec.Struct):
    """The fields of a record that gitcp reads; all others are opaque."""

    type: str | None = None
    ordinal: int | None = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


_RECORD = msgspec.json.Decoder(_RolloutRecord)
_PAYLOAD = msgspec.json.Decoder(_RolloutPayload)
_META = b'"session_meta"'
# What the client tells the model as the user. Any other text that begins with "<" is a
# prompt, as the client itself sees it.
_NOTE = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|user_shell_command|skill"
    r"|turn_aborted|subagent_notification|hook_prompt|permissions instructions"
    r"|skills_instructions|apps_instructions|plugins_instructions|personality_spec"
    r"|collaboration_mode|model_switch)[\s>]|# AGENTS\.md instructions)",
    re.IGNORECASE,
)
# A longer chain of forks can only be a loop made by hand.
_DEEPEST = 50
_HEAD = 1 << 20
# sessions/YYYY/MM/DD/rollout
_DATED = 4


class Codex(HooksInJson):
    """The client of this module."""

    name = "codex"
    title = "Codex"
    resuming: tuple[str, ...] = ("codex", "resume")
    meanings: Mapping[str, str] = _HOOKS

    # --- hooks ----------------------------------------------------------------------

    def event(
        self, hook: str, payload: Mapping[str, Any], environment: Mapping[str, str]
    ) -> Event | None:
        """Returns the event that a hook call reports."""
        del environment
        event = words.event_in_common_fields(_HOOKS, hook, payload)
        if event is None:
            return None
        what, session, transcript = event.what, event.session, event.transcript
        subagent = None
        if what == triggers.SUBAGENT_STOP:
            subagent = records.path(payload, "agent_transcript_path")
            if subagent is None or not subagent.exists():
                return None
        elif records.text(payload, "agent_id") is not None:
            if what in {
                triggers.SESSION_START,
                triggers.TURN_START,
                triggers.SESSION_END,
            }:
                return None
            subagent, transcript = transcript, None
        if subagent is not None:
            # A subagent's hooks name the session that it works for, but its own rollout.
            transcript = _parent(subagent, session) or transcript
        return event._replace(
            transcript=transcript,
            prompt=records.text(payload, "turn_id"),
            subagent=subagent,
        )

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Whether the end of the rollout holds the last words of the turn."""
        if event.what not in {triggers.TURN_END, triggers.SUBAGENT_STOP}:
            return True
        expected = (event.final_text or "").strip()
        if not expected:
            return True
        return any(
            payload.role == "assistant" and _text(payload) == expected
            for payload in _messages(tail)
        )

    def has_messages(self, tail: bytes) -> bool:
        """Whether a person or the model said something."""
        return any(
            payload.role == "assistant"
            or (payload.role == "user" and not is_note(_text(payload)))
            for payload in _messages(tail)
        )

    def sources(self, event: Event) -> list[Source]:
        """Returns the rollout, those that it continues, and the active subagent's."""
        if event.transcript is None:
            return []
        sources = [Source("", event.transcript)]
        sources += [Source(path.name, path) for path in _continued(event.transcript)]
        if event.subagent is not None and event.subagent != event.transcript:
            sources.append(Source(event.subagent.name, event.subagent))
        return sources

    # --- rollouts -------------------------------------------------------------------

    def directory(self, content: bytes) -> str | None:
        """Returns the directory that the conversation began in."""
        return _meta(content).cwd

    def copied(self, content: bytes) -> frozenset[str]:
        """Returns which thread this one continues, and up to which record.

        Returns an empty set if it continues none.
        """
        meta = _meta(content)
        if not meta.forked_from_id:
            return frozenset()
        return frozenset(
            {meta.forked_from_id, _ordinal(meta.forked_from_ordinal_exclusive)}
        )

    def first_new_message(self, content: bytes, copied: frozenset[str]) -> str | None:
        """Returns the first message of this thread that the fork `copied` does not continue.

        Returns an empty text if the fork does not continue this thread at all.
        """
        if _meta(content).id not in copied:
            return ""
        for line in records.lines(content):
            record = _record(line)
            if _ordinal(record.ordinal) in copied:
                copied = frozenset()
            payload = _payload(record)
            if not copied and record.type == "response_item" and payload.id:
                return payload.id
        return None

    def position(self, content: bytes, ident: str) -> int | None:
        """Returns the offset of a turn or message."""
        for start, line in records.mentions(content, ident):
            payload = _payload(_record(line))
            if ident in {payload.id, payload.turn_id}:
                return start
        return None

    def resume_files(
        self, kept: StoredConversation, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns a copy of the rollout with a new id in its first record.

        Everything else stays byte for byte. A rollout that was made elsewhere is rebuilt.
        """
        content = whole_lines(kept.content)
        if not self.has_messages(content):
            return None
        new = _thread_id()
        beside = kept.beside
        if kept.foreign:
            # Only a restore needs it, and importing it would delay every hook.
            from gitcp.clients import codex_foreign  # noqa: PLC0415

            written = codex_foreign.rebuilt(content, beside, new, kept.directory)
            if not self.has_messages(written):
                return None
            beside = {}
        else:
            # In what an older gitcp stored of a copy, the first record has the copied thread.
            names = {kept.session, _meta(content).id}
            written = b"\n".join(
                _renamed(line, names, new) for line in content.split(b"\n")
            )
        sessions = home_directory(places) / "sessions"
        now = time.localtime()
        folder = sessions / time.strftime("%Y/%m/%d", now)
        name = f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', now)}-{new}.jsonl"
        files = [(folder / name, written)]
        for other, data in sorted(beside.items()):
            thread = _meta(data).id
            # An existing file may be in use, and may have grown since.
            if thread and re.fullmatch(_ROLLOUT, other) and not _find(sessions, thread):
                files.append((folder / other, data))
        return ResumeFiles(
            new,
            home_directory(places),
            tuple(files),
            (*self.resuming, new),
            kept.directory,
        )

    # --- settings -------------------------------------------------------------------

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the hooks file of a scope."""
        files = {"user": home_directory(places) / "hooks.json", **_FILES}
        return words.settings_file(self, places, scope, files)

    def hooks(self, command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
        """Returns the entry in the settings for each hook."""
        at_end = triggers.SESSION_END
        return {
            hook: words.grouped(
                command(hook),
                _TIMEOUT_AT_END if what == at_end else _TIMEOUT,
                "Bash" if what == triggers.BEFORE_COMMAND else None,
            )
            for hook, what in _HOOKS.items()
        }

    def notes(self, scope: str) -> tuple[str, ...]:
        """Returns notes for the user, who has to answer Codex's question about trust."""
        del scope
        note = (
            "Codex runs hooks only once you have trusted them, and says nothing until"
            " then: start `codex` and trust those of gitcp when it asks, or enter /hooks"
        )
        return (note,)


CLIENT = Codex()


_ROLLOUT = r"rollout-[\w.-]+\.jsonl"


def is_note(text: str) -> bool:
    """Whether a text of the user's role is the client's note to the model, not a prompt."""
    return _NOTE.match(text) is not None


def _meta(content: bytes) -> _RolloutPayload:
    """Returns the description of the thread in the first record."""
    for line in records.lines(content):
        record = _record(line)
        if record.type == "session_meta":
            return _payload(record)
    return _RolloutPayload()


def _ordinal(number: int | None) -> str:
    return f"#{number}"


def _find(sessions: Path, thread: str) -> Path | None:
    """Returns the rollout of a thread."""
    if not re.fullmatch(r"[\w-]+", thread):
        return None
    name = f"rollout-*-{thread}.jsonl"
    for folder in _days(sessions, thread):
        for rollout in folder.glob(name):
            return rollout
    return next(iter(sorted(sessions.rglob(name))), None)


def _days(sessions: Path, thread: str) -> Iterator[Path]:
    """Yields the folders in which a rollout should be: there may be years of folders.

    The id begins with the time; the folder is named after the local date of that place.
    """
    try:
        began = int(thread[:8] + thread[9:13], 16) / 1000
        for hours in (0, -24, 24):
            day = time.localtime(began + hours * 3600)
            yield sessions / time.strftime("%Y/%m/%d", day)
    except (ValueError, OverflowError, OSError):
        return


def _parent(subagent: Path, thread: str) -> Path | None:
    """Returns the rollout of the thread that a subagent works for."""
    if len(subagent.parts) <= _DATED:
        return None
    return _find(subagent.parents[3], thread)


def _continued(rollout: Path) -> Iterator[Path]:
    """Yields the rollouts that a rollout continues, the nearest first."""
    if len(rollout.parts) <= _DATED:
        return
    sessions = rollout.parents[3]
    seen = {rollout}
    current: Path | None = rollout
    while current is not None and len(seen) < _DEEPEST:
        origin = _meta(records.beginning(current, _HEAD, follow=True)).forked_from_id
        current = _find(sessions, origin) if origin else None
        if current is None or current in seen:
            return
        seen.add(current)
        yield current


def home_directory(places: ClientPlaces) -> Path:
    """Returns the folder that the client keeps all its files in."""
    own = places.environment.get("CODEX_HOME")
    return Path(own) if own else places.home / ".codex"


def _thread_id() -> str:
    """Returns a UUID of version 7, because the client sorts threads by their ids."""
    stamp = time.time_ns() // 1_000_000
    tail = secrets.randbits(74)
    number = stamp << 80 | 7 << 76 | (tail >> 62) << 64 | 2 << 62 | tail & (1 << 62) - 1
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _renamed(line: bytes, names: Collection[str | None], new: str) -> bytes:
    """Returns a record with the thread's id replaced, if it names the thread."""
    if _META not in line:
        return line
    record = _record(line)
    old = _payload(record).id
    if record.type != "session_meta" or not old or old not in names:
        return line
    named = rb'("(?:id|session_id|thread_id)"\s*:\s*)"' + re.escape(old.encode()) + b'"'
    return re.sub(named, rb'\g<1>"' + new.encode() + b'"', line)


def _record(line: bytes) -> _RolloutRecord:
    return records.decode_or(_RECORD, line, _RolloutRecord())


def _payload(record: _RolloutRecord) -> _RolloutPayload:
    return records.decode_or(_PAYLOAD, record.payload, _RolloutPayload())


def _text(payload: _RolloutPayload) -> str:
    return records.content_text(payload.content).strip()


def _messages(raw: bytes) -> Iterator[_RolloutPayload]:
    for line in records.lines(raw):
        if b'"response_item"' in line:
            record = _record(line)
            payload = _payload(record)
            if record.type == "response_item" and payload.type == "message":
                yield payload
