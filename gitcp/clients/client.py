"""The interface that each coding agent's module implements.

A client's module knows that client's files and hooks, and nothing of checkpoints. The
modules `hook_events`, `install` and `resume` of `gitcp.agents` act on it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gitcp.clients import records
from gitcp.clients.triggers import BEFORE_COMMAND, BEGINNINGS, SESSION_START
from gitcp.errors import UsageError

# Where settings may lie: the user's own, the project's shared, the project's private.
SCOPES = ("user", "project", "local")


class Event(NamedTuple):
    """One hook event, in terms that all clients share.

    `session` is the client's own id of the conversation. `start_reason` says how a session
    began, where the client tells: `startup`, `resume`, `fork`, `compact` or `clear`.
    `prompt` is the client's id of the turn, `prompt_text` the words it began with, `tools`
    the names of the tools used, `command` what a shell is about to run. The transcript, or
    with `subagent` that file, must hold `final_text` (the last words of the turn) and
    `results` (ids of tool calls) before it is read. `cwd` is where the agent works now,
    `project` where it was started. `inline` is the conversation where the hook hands it
    over; `record` is a line to add to the `transcript`, where the client keeps none itself.
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
    """A file to store. The conversation's own has the name "", one beside it another.

    A client that keeps no file gives the `content` instead.
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
    """A conversation that comes back: the bytes, and the files beside it by name.

    `session` is the client's id it had, `directory` where the client is to continue. What
    is `foreign` was made elsewhere: only known fields of it may reach the client.
    """

    session: str | None
    content: bytes
    beside: Mapping[str, bytes]
    directory: Path
    foreign: bool = False


class ResumeFiles(NamedTuple):
    """What resuming a conversation takes: files to write, and the command.

    `session` is the new id; `root` is the client's own folder: nothing is written
    outside of it, and nothing in it is replaced. `copies` are directories to copy where
    they exist; `directory` is where the command has to be run, `first` a command to be
    run before it. `grown` is a list that the client keeps and that has to grow. If there
    is no command, `told` is what the user has to do.
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
    """A client's list with one more entry: what it was (None: not there), what it is."""

    path: Path
    before: bytes | None
    after: bytes


class Permission(NamedTuple):
    """Whether a client lets the hooks of its settings run.

    `granted` is None if the client asks for nothing that gitcp could look up; where it
    is False, `reason` says what the user has to do.
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
        """Returns what a hook call means; None if it means nothing to gitcp.

        Raises:
            ValueError: this client does not send such a payload.
        """

    def answer(self, hook: str, text: str, *, quietly: bool = False) -> bytes | None:
        """Returns what a hook prints so that the user and the agent see a text.

        Only the agent, if `quietly`. None if the client shows nothing of it.
        """

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Whether the end of the transcript holds what the event promised."""

    def has_messages(self, tail: bytes) -> bool:
        """Whether it has messages; bookkeeping alone is not a reason to save."""

    def sources(self, event: Event) -> list[Source]:
        """Returns what belongs to the conversation, the conversation itself first."""

    def directory(self, content: bytes) -> str | None:
        """Returns where the conversation took place, as its first records have it."""

    def copied(self, content: bytes) -> frozenset[str]:
        """Returns the ids that messages had where they may have been copied from."""

    def first_new_message(self, content: bytes, copied: frozenset[str]) -> str | None:
        """Returns the first message that is not among the copied ones; None: all are.

        An empty text stands for a conversation of which not even the first was copied.
        """

    def position(self, content: bytes, ident: str) -> int | None:
        """Returns where the prompt or message with an id begins, or None."""

    def resume_files(
        self, kept: StoredConversation, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns what makes a conversation resume under a new id.

        None if nothing was said yet: then there is nothing to resume.
        """

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the file that hooks are put into.

        Raises:
            UsageError: the client has no such scope, or there is no project.
        """

    def merge(self, text: bytes | None, command: Callable[[str], str]) -> bytes:
        """Returns the settings with our hooks, the rest as it was; again, no change.

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
        """Returns what the user has to know or do after an installation."""


class HooksInJson:
    """The part of a client whose hooks stand in a file of JSON (`hook_settings`).

    `meanings` are its hooks, with what each means; `head` is what the file needs besides.
    """

    name: str
    meanings: Mapping[str, str] = {}
    head: Mapping[str, Any] | None = None

    def answer(self, hook: str, text: str, *, quietly: bool = False) -> bytes | None:
        """Returns what shows a text to the agent, and to the user unless `quietly`."""
        if self.meanings.get(hook) not in BEGINNINGS:
            return None
        return context(hook, text, quietly=quietly)

    def hooks(self, command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
        """Returns what has to stand there for each of the client's hooks."""
        raise NotImplementedError

    def merge(self, text: bytes | None, command: Callable[[str], str]) -> bytes:
        """Returns the settings with our hooks."""
        # Only an installation wants it, and every hook would wait for it.
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
    """Returns an event with the fields that Claude Code named and others took over.

    None if the hook means nothing to gitcp, or the payload names no session.
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
    """Returns what a shell is to run: one command, or the lines of several."""
    if not isinstance(given, dict):
        return None
    several = given.get("commands")
    if isinstance(several, list):
        lines = [one for one in several if isinstance(one, str)]
        return "\n".join(lines) or None
    return records.text(given, "command")


def context(hook: str, text: str, *, quietly: bool = False) -> bytes:
    """Returns an answer in the form that Claude Code began with, and others took over."""
    told = {"hookEventName": hook, "additionalContext": text}
    answer: dict[str, Any] = {"hookSpecificOutput": told}
    import json  # noqa: PLC0415  only hooks that answer pay for it

    return json.dumps(answer if quietly else {"systemMessage": text, **answer}).encode()


def grouped(command: str, timeout: int, tool: str | None = None) -> dict[str, Any]:
    """Returns a hook in a group of its own; the timeout is in the client's unit.

    With `tool` it is called for that tool only.
    """
    hooks = [{"type": "command", "command": command, "timeout": timeout}]
    return {"matcher": tool, "hooks": hooks} if tool else {"hooks": hooks}


def whole_lines(raw: bytes) -> bytes:
    """Returns a file without a last line that is still being written."""
    return raw[: raw.rfind(b"\n") + 1]


def settings_file(
    client: Client, places: ClientPlaces, scope: str, files: Mapping[str, Path]
) -> Path:
    """Returns the file of a scope; those of a project are named from its top.

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
