"""Claude Code: its hooks, its transcripts, and how a conversation resumes.

A transcript is `<config>/projects/<slug>/<session>.jsonl`; those of subagents lie below
`<slug>/<session>/subagents/`. A hook runs before the client has written all records of its
event: the last words of a turn follow within milliseconds, a tool's result once its
whole batch is done, and a prompt only after the hook has ended.
"""

import os
import re
import unicodedata
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
    whole_lines,
)

_SLUG_LIMIT = 200
_SUBAGENTS = "subagents"
_TIMEOUT = 30

# hook -> its event
_HOOKS: Final = {
    "SessionStart": triggers.SESSION_START,
    "UserPromptSubmit": triggers.TURN_START,
    "PreToolUse": triggers.BEFORE_COMMAND,
    "PostToolBatch": triggers.TOOL,
    "Stop": triggers.TURN_END,
    "StopFailure": triggers.TURN_END,
    "PreCompact": triggers.COMPACT,
    "SubagentStop": triggers.SUBAGENT_STOP,
    "SessionEnd": triggers.SESSION_END,
}

_FILES: Final = {
    "project": Path(".claude/settings.json"),
    "local": Path(".claude/settings.local.json"),
}


class _ForkOrigin(msgspec.Struct):
    messageUuid: str | None = None  # noqa: N815  the client's spelling


class _TranscriptRecord(msgspec.Struct):
    """The fields of a record that gitcp reads; all others are opaque."""

    type: str | None = None
    cwd: str | None = None
    uuid: str | None = None
    promptId: str | None = None  # noqa: N815
    isMeta: bool | None = None  # noqa: N815
    forkedFrom: _ForkOrigin | None = None  # noqa: N815
    message: msgspec.Raw = msgspec.Raw(b"null")


class _SpokenMessage(msgspec.Struct):
    id: str | None = None
    content: str | list[dict[str, Any]] | None = None


_SPOKEN = frozenset({"user", "assistant"})
_RECORD = msgspec.json.Decoder(_TranscriptRecord)
_MESSAGE = msgspec.json.Decoder(_SpokenMessage)


class ClaudeCode(HooksInJson):
    """The client of this module."""

    name = "claude-code"
    title = "Claude Code"
    resuming: tuple[str, ...] = ("claude", "--resume")
    meanings: Mapping[str, str] = _HOOKS

    # --- hooks ----------------------------------------------------------------------

    def event(
        self, hook: str, payload: Mapping[str, Any], environment: Mapping[str, str]
    ) -> Event | None:
        """Returns the event that a hook call reports."""
        # Copilot CLI runs the hooks of a project's settings for Claude Code, too.
        if environment.get("COPILOT_PROJECT_DIR"):
            return None
        event = words.event_in_common_fields(_HOOKS, hook, payload)
        if event is None:
            return None
        subagent = None
        if event.what == triggers.SUBAGENT_STOP or "agent_id" in payload:
            subagent = _subagent(payload)
            if event.what == triggers.SUBAGENT_STOP and subagent is None:
                # A helper does the compaction, and leaves no transcript.
                return None
        given = payload.get("tool_calls")
        calls = [
            call
            for call in (given if isinstance(given, list) else ())
            if isinstance(call, dict)
        ]
        return event._replace(
            prompt=records.text(payload, "prompt_id"),
            results=tuple(
                filter(None, (records.text(call, "tool_use_id") for call in calls))
            ),
            tools=tuple(
                filter(None, (records.text(call, "tool_name") for call in calls))
            ),
            project=environment.get("CLAUDE_PROJECT_DIR"),
            subagent=subagent,
        )

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Whether the end of the transcript holds the event's records."""
        if event.results:
            return all(f'"{one}"'.encode() in tail for one in event.results) and any(
                _holds_result(line, event.results[-1]) for line in _backwards(tail)
            )
        if event.what not in {triggers.TURN_END, triggers.SUBAGENT_STOP}:
            return True
        expected = (event.final_text or "").strip()
        return not expected or _was_said(tail, expected)

    def has_messages(self, tail: bytes) -> bool:
        """Whether a person, the model or a compaction said something."""
        if b'"user"' not in tail and b'"assistant"' not in tail:
            return False
        return any(True for _ in _messages(tail))

    def sources(self, event: Event) -> list[Source]:
        """Returns the transcript, and those of subagents with their descriptions."""
        main = event.transcript
        if main is None:
            return []
        sources = [Source("", main)]
        folder = main.with_suffix("") / _SUBAGENTS
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return sources
        sources += [Source(name, folder / name) for name in names if _is_beside(name)]
        return sources

    # --- transcripts ----------------------------------------------------------------

    def directory(self, content: bytes) -> str | None:
        """Returns the directory that the conversation began in."""
        for line in records.lines(content):
            cwd = _record(line).cwd
            if cwd:
                return cwd
        return None

    def copied(self, content: bytes) -> frozenset[str]:
        """Returns the ids that the messages had before a copy was made."""
        idents = set()
        for record in _messages(content):
            fork = record.forkedFrom
            ident = fork.messageUuid if fork is not None else record.uuid
            if ident:
                idents.add(ident)
        return frozenset(idents)

    def first_new_message(self, content: bytes, copied: frozenset[str]) -> str | None:
        """Returns the first message that was not copied; "" if none was, None if all."""
        messages = ((one.uuid, one.uuid or "") for one in _messages(content))
        return records.first_new_message(messages, copied)

    def position(self, content: bytes, ident: str) -> int | None:
        """Returns where a prompt or message begins.

        In the copy that the client makes for a fork, all older prompts have the id of the
        first new prompt as well. So the last prompt with an id is the right one.
        """
        newest = None
        for start, line in records.mentions(content, ident):
            record = _record(line)
            if record.uuid == ident:
                return start
            if record.promptId == ident and (newest is None or _asks(record)):
                newest = start
        return newest

    def resume_files(
        self, kept: StoredConversation, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns the files of a copy under a new id; the records stay as they are.

        The client finds a conversation by the name of its file. Records keep the id that
        they were written under, so that the stored copy shares its beginning with the
        original. A conversation that was made elsewhere is rebuilt, without other files.
        """
        content = whole_lines(kept.content)
        if not self.has_messages(content):
            return None
        import uuid  # noqa: PLC0415  hooks do without it

        new = str(uuid.uuid4())
        config = config_directory(places)
        folder = config / "projects" / slug(str(kept.directory))
        command = (*self.resuming, new)
        if kept.foreign:
            from gitcp.clients import claude_code_foreign  # noqa: PLC0415  as above

            transcript = claude_code_foreign.rebuilt(content, new, kept.directory)
            if not self.has_messages(transcript):
                return None
            alone = ((folder / f"{new}.jsonl", transcript),)
            return ResumeFiles(new, config, alone, command, kept.directory)
        files = [(folder / f"{new}.jsonl", content)]
        files += [
            (folder / new / _SUBAGENTS / name, data)
            for name, data in sorted(kept.beside.items())
            if _is_beside(name)
        ]
        copies = []
        if kept.session is not None and re.fullmatch(r"[\w-]+", kept.session):
            # The client's own rewind keeps copies of edited files here.
            history = config / "file-history"
            copies.append((history / kept.session, history / new))
        return ResumeFiles(
            new,
            config,
            tuple(files),
            command,
            kept.directory,
            tuple(copies),
        )

    # --- settings -------------------------------------------------------------------

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the settings file of a scope."""
        files = {"user": config_directory(places) / "settings.json", **_FILES}
        return words.settings_file(self, places, scope, files)

    def hooks(self, command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
        """Returns the entry in the settings for each hook."""
        return {
            hook: words.grouped(
                command(hook),
                _TIMEOUT,
                "Bash" if what == triggers.BEFORE_COMMAND else None,
            )
            for hook, what in _HOOKS.items()
        }

    def notes(self, scope: str) -> tuple[str, ...]:
        """Returns notes for the user."""
        del scope
        return ("sessions that are open already do not see the hooks; start a new one",)


CLIENT = ClaudeCode()


def slug(directory: str) -> str:
    """Returns the name of the directory that holds a project's transcripts."""
    real = unicodedata.normalize("NFC", os.path.realpath(directory))
    # As in JavaScript, in units of UTF-16.
    units = [
        int.from_bytes(pair, "little")
        for pair in _pairs(real.encode("utf-16-le", "surrogatepass"))
    ]
    plain = "".join(
        chr(unit) if unit < 128 and chr(unit).isalnum() else "-"  # noqa: PLR2004
        for unit in units
    )
    if len(plain) <= _SLUG_LIMIT:
        return plain
    total = 0
    for unit in units:
        total = (total * 31 + unit) & 0xFFFFFFFF
    signed = total - 0x100000000 if total >= 0x80000000 else total  # noqa: PLR2004
    return f"{plain[:_SLUG_LIMIT]}-{_base36(abs(signed))}"


def _pairs(raw: bytes) -> Iterator[bytes]:
    return (raw[at : at + 2] for at in range(0, len(raw), 2))


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    shown = ""
    while True:
        number, last = divmod(number, 36)
        shown = digits[last] + shown
        if not number:
            return shown


def config_directory(places: ClientPlaces) -> Path:
    """Returns the folder that the client keeps all its files in."""
    own = places.environment.get("CLAUDE_CONFIG_DIR")
    return Path(unicodedata.normalize("NFC", own)) if own else places.home / ".claude"


def _subagent(payload: Mapping[str, Any]) -> Path | None:
    """Returns a subagent's transcript, if there is one."""
    path = records.path(payload, "agent_transcript_path")
    main, agent = (
        records.path(payload, "transcript_path"),
        records.text(payload, "agent_id"),
    )
    if path is None and main is not None and agent is not None:
        path = main.with_suffix("") / _SUBAGENTS / f"agent-{agent}.jsonl"
    return path if path is not None and path.exists() else None


def _is_beside(name: str) -> bool:
    return bool(re.fullmatch(r"agent-[\w.-]+\.(jsonl|meta\.json)", name))


def _record(line: bytes) -> _TranscriptRecord:
    return records.decode_or(_RECORD, line, _TranscriptRecord())


def _messages(raw: bytes) -> Iterator[_TranscriptRecord]:
    return (one for one in map(_record, records.lines(raw)) if one.type in _SPOKEN)


def _asks(record: _TranscriptRecord) -> bool:
    """Whether a record is a prompt that a person typed, not a tool's result."""
    if record.type != "user" or record.isMeta:
        return False
    return b'"tool_use_id"' not in bytes(record.message)


def _backwards(raw: bytes) -> Iterator[bytes]:
    return reversed(list(records.lines(whole_lines(raw))))


def _blocks(line: bytes, kind: str) -> tuple[str | None, list[dict[str, Any]]]:
    """Returns the id and the blocks of a message, if the record is of this kind."""
    record = _record(line)
    if record.type != kind:
        return None, []
    message = records.decode_or(_MESSAGE, record.message, _SpokenMessage())
    if isinstance(message.content, str):
        return message.id, [{"type": "text", "text": message.content}]
    return message.id, message.content or []


def _holds_result(line: bytes, call: str) -> bool:
    _, blocks = _blocks(line, "user")
    return any(block.get("tool_use_id") == call for block in blocks)


def _was_said(tail: bytes, expected: str) -> bool:
    """Whether the assistant's last message is there, as one block or as several."""
    texts: list[str] = []
    last: str | None = None
    for line in _backwards(tail):
        ident, blocks = _blocks(line, "assistant")
        block_texts = [
            block["text"]
            for block in blocks
            if block.get("type") == "text" and isinstance(block.get("text"), str)
        ]
        if not block_texts:
            continue
        if texts and ident != last:
            # This is an earlier message: the expected one has not been written yet.
            return False
        last = ident
        texts = [*block_texts, *texts]
        if any(one.strip() == expected for one in block_texts) or any(
            glue.join(texts).strip() == expected for glue in ("", "\n", "\n\n")
        ):
            return True
    return False
