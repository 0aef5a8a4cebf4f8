"""The interface that each coding agent's module implements.

A client's module knows that client's files and hooks, but nothing about checkpoints. The
modules `hook_events`, `install` and `resume` of `gitcp.agents` use it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gitcp.clients import records
from gitcp.clients.triggers import BEFORE_COMMAND, BEGINNINGS, SESSION_START
from gitcp.errors import UsageError

# The places of settings: the user's own, the project's shared, the project's private.
SCOPES = ("user", "project", "local")


class Event(NamedTuple):
    """One hook event, in terms that all clients share.

    `session` is the client's own id of the conversation. `start_reason` says how a session
    began, if the client tells: `startup`, `resume`, `fork`, `compact` or `clear`.
    `prompt` is the client's id of the turn, `prompt_text` the prompt, `tools` the names of
    the tools used, `command` the command that a shell is about to run. The transcript, or
    with `subagent` that file, must hold `final_text` (the last words of the turn) and
    `results` (ids of tool calls) before gitcp reads it. `cwd` is the directory that the
    agent works in now, `project` the directory that it was started in. `inline` is the
    conversation, if the hook passes it; `record` is a line to add to the `transcript`, if
    the client writes none itself.
    """

    what: str
    session: str
    cwd: str
    transcript: Path | None = None
    prompt: str | None = None
    prompt_text: str | None = None
    final_text: str | None = None
    results: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    command: str | None = None
    start_reason: str | None = None
    project: str | None = None
    subagent: Path | None = None
    inline: "tuple[Source, ...]" = ()
    record: bytes | None = None


class Source(NamedTuple):
    """A file to store. The conversation itself has the name "", files beside it other names.

    For a client that keeps no file, `content` replaces the path.
    """

    name: str
    path: Path | None = None
    content: bytes | None = None


class ClientPlaces(NamedTuple):
    """The places to look for a client: the work tree (None outside one), the home."""

    top: Path | None
    home: Path
    environment: Mapping[str, str]


class StoredConversation(NamedTuple):
    """A conversation to restore: the bytes, and the files beside it by name.

    `session` is its former id in the client, `directory` the directory to continue in. A
    `foreign` conversation was made elsewhere: only its known fields may reach the client.
    """

    session: str | None
    content: bytes
    beside: Mapping[str, bytes]
    directory: Path
    foreign: bool = False


class ResumeFiles(NamedTuple):
    """The files to write, and the command to run, to resume a conversation.

    `session` is the new id. `root` is the client's own folder: gitcp writes nothing outside
    it, and replaces nothing in it. `copies` are directories to copy if they exist.
    `directory` is the directory to run the command in, `first` a command to run before it.
    `grown` is a list of the client's that needs a new entry. If there is no command, `told`
    tells the user what to do.
    """

    session: str
    root: Path
    files: tuple[tuple[Path, bytes], ...]
    command: tuple[str, ...]
    directory: Path
    copies: tuple[tuple[Path, Path], ...] = ()
    first: tuple[str, ...] = ()
    grown: "GrownList | None" = None
    told: str | None = None


class GrownList(NamedTuple):
    """A client's list with one more entry: the content before (None: no file) and after."""

    path: Path
    before: bytes | None
    after: bytes


class Permission(NamedTuple):
    """Whether a client lets the hooks of its settings run.

    `granted` is None if gitcp cannot look it up, or the client needs no permission. If it
    is False, `reason` tells the user what to do.
    """

    granted: bool | None = None
    reason: str | None = None


class Client(Protocol):
    """One coding agent.

    `resuming` is the command that continues a conversation, without the conversation's
    id; empty if the client has none.
    """

    name: str
    title: str
    resuming: tuple[str, ...]

    def event(
        self, hook: str, payload: Mapping[str, Any], environment: Mapping[str, str]
    ) -> Event | None:
        """Returns the event that a hook call reports; None if gitcp ignores it.

        Raises:
            ValueError: this client does not send such a payload.
        """

    def answer(self, hook: str, text: str, *, quietly: bool = False) -> bytes | None:
        """Returns the output of a hook that shows a text to the user and the agent.

        If `quietly`, only the agent sees it. None if the client shows no output.
        """

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Whether the end of the transcript holds the event's records."""

    def has_messages(self, tail: bytes) -> bool:
        """Whether it has messages; bookkeeping alone is not a reason to save."""

    def sources(self, event: Event) -> list[Source]:
        """Returns the files of the conversation, the conversation itself first."""

    def directory(self, content: bytes) -> str | None:
        """Returns the directory of the conversation, from its first records."""

    def copied(self, content: bytes) -> frozenset[str]:
        """Returns the ids that messages had before they may have been copied."""

    def first_new_message(self, content: bytes, copied: frozenset[str]) -> str | None:
        """Returns the first message that is not among the copied ones; None if all are.

        Returns an empty text if not even the first message was copied.
        """

    def position(self, content: bytes, ident: str) -> int | None:
        """Returns the offset of the prompt or message with an id, or None."""

    def resume_files(
        self, kept: StoredConversation, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns the files and the command to resume a conversation under a new id.

        None if it has no messages yet.
        """

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the file that holds the hooks.

        Raises:
            UsageError: the client has no such scope, or there is no project.
        """

    def merge(self, text: bytes | None, command: Callable[[str], str]) -> bytes:
        """Returns the settings with our hooks, the rest unchanged; idempotent.

        `command` makes the shell command for one of the client's hook names.

        Raises:
            ValueError: the file cannot be understood.
        """

    def unmerge(self, text: bytes) -> bytes | None:
        """Returns the settings without our hooks; None if nothing is left.

        Raises:
            ValueError: the file cannot be understood.
        """

    def installed(self, text: bytes) -> bool:
        """Whether our hooks are in the settings."""

    def notes(self, scope: str) -> tuple[str, ...]:
        """Returns notes for the user after an installation."""


class HooksInJson:
    """The part of a client whose hooks are in a JSON file (`hook_settings`).

    `meanings` are its hooks, with the event of each; `head` are further fields that the
    file needs.
    """

    name: str
    meanings: Mapping[str, str] = {}
    head: Mapping[str, Any] | None = None

    def answer(self, hook: str, text: str, *, quietly: bool = False) -> bytes | None:
        """Returns output that shows a text to the agent, and to the user unless `quietly`."""
        if self.meanings.get(hook) not in BEGINNINGS:
            return None
        return context(hook, text, quietly=quietly)

    def hooks(self, command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
        """Returns the entry for each of the client's hooks."""
        raise NotImplementedError

    def merge(self, text: bytes | None, command: Callable[[str], str]) -> bytes:
        """Returns the settings with our hooks."""
        # Only an installation needs it, and importing it would delay every hook.
        from gitcp.clients import hook_settings  # noqa: PLC0415

        return hook_settings.merge(text, self.name, self.hooks(command), self.head)

    def unmerge(self, text: bytes) -> bytes | None:
        """Returns the settings without our hooks."""
        from gitcp.clients import hook_settings  # noqa: PLC0415  as above

        return hook_settings.unmerge(text, self.name, self.head)

    def installed(self, text: bytes) -> bool:
        """Whether our hooks are in the settings."""
        from gitcp.clients import hook_settings  # noqa: PLC0415  as above

        return hook_settings.installed(text, self.name)


def event_in_common_fields(
    meanings: Mapping[str, str], hook: str, payload: Mapping[str, Any]
) -> Event | None:
    """Returns an event from the fields that Claude Code introduced and others adopted.

    None if gitcp ignores the hook, or the payload names no session.
    """
    what = meanings.get(hook)
    session = records.text(payload, "session_id")
    if what is None or session is None:
        return None
    command = _command(payload.get("tool_input"))
    if what == BEFORE_COMMAND and command is None:
        return None
    tool = records.text(payload, "tool_name")
    starts = what == SESSION_START
    return Event(
        what,
        session,
        records.text(payload, "cwd") or "/",
        transcript=records.path(payload, "transcript_path"),
        prompt_text=records.text(payload, "prompt"),
        final_text=records.text(payload, "last_assistant_message"),
        tools=(tool,) if tool else (),
        command=command if what == BEFORE_COMMAND else None,
        start_reason=records.text(payload, "source") if starts else None,
    )


def _command(given: Any) -> str | None:
    """Returns the command that a shell is to run, or the lines of several commands."""
    if not isinstance(given, dict):
        return None
    several = given.get("commands")
    if isinstance(several, list):
        lines = [one for one in several if isinstance(one, str)]
        return "\n".join(lines) or None
    return records.text(given, "command")


def context(hook: str, text: str, *, quietly: bool = False) -> bytes:
    """Returns an answer in the form that Claude Code introduced and others adopted."""
    told = {"hookEventName": hook, "additionalContext": text}
    answer: dict[str, Any] = {"hookSpecificOutput": told}
    import json  # noqa: PLC0415  only hooks that answer pay for it

    return json.dumps(answer if quietly else {"systemMessage": text, **answer}).encode()


def grouped(command: str, timeout: int, tool: str | None = None) -> dict[str, Any]:
    """Returns a hook in a group of its own; the timeout is in the client's unit.

    With `tool` the client calls it for that tool only.
    """
    hooks = [{"type": "command", "command": command, "timeout": timeout}]
    return {"matcher": tool, "hooks": hooks} if tool else {"hooks": hooks}


def whole_lines(raw: bytes) -> bytes:
    """Returns a file without its last line, if that is still being written."""
    return raw[: raw.rfind(b"\n") + 1]


def settings_file(
    client: Client, places: ClientPlaces, scope: str, files: Mapping[str, Path]
) -> Path:
    """Returns the file of a scope; the paths of a project's files are relative to its top.

    Raises:
        UsageError: the client has no such scope, or there is no project.
    """
    file = files.get(scope)
    if file is None:
        raise UsageError(
            f"{client.title} has no settings for --scope {scope}",
            hint="use " + " or ".join(f"--scope {one}" for one in files),
        )
    if scope == "user":
        return file
    if places.top is None:
        raise UsageError(
            f"--scope {scope} needs a project, and this is not a git repository",
            hint="run it in one, or use --scope user",
        )
    return places.top / file
