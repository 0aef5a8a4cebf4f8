"""Reads the turns of a conversation: prompt, tool calls, answer."""

import datetime
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gitcp.checkpoints import conversation
from gitcp.clients import registry
from gitcp.format import jsontext
from gitcp.store.checkpoint import Checkpoint

# Who speaks, but is neither the person nor the agent.
_OTHERS = frozenset({"system", "developer", "tool", "function"})
_PEOPLE = frozenset({"user", "human"})
# What clients tell the model in the name of the user begins with one of these.
_TOLD = re.compile(
    r"\s*(?:<(?:system-reminder|session_context|environment_context|user_instructions"
    r"|user_shell_command|turn_aborted|skill|hook_prompt|local-command-\w+|command-\w+"
    r"|bash-stdout|bash-stderr|task-notification)\b|# AGENTS\.md instructions for )"
)
# A command of the client's own, as a person typed it.
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL = re.compile(r"\s*<bash-input>(.*?)</bash-input>", re.DOTALL)
_INTERRUPTED = "[Request interrupted by user"
# What a model thinks is not what it answers; a result is the tool's.
_UNSPOKEN = frozenset(
    {
        *("thinking", "redacted_thinking", "reasoning", "tool_result"),
        *("step-start", "step-finish", "patch", "snapshot"),
    }
)
# The argument that says most about a call, whatever the tool.
_MAIN = (
    *("file_path", "filePath", "notebook_path", "absolute_path", "path"),
    *("command", "cmd", "pattern", "query", "url", "prompt", "description"),
)
PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
# Cursor's hooks after what a tool did; newer versions have one for all tools.
_DONE = {
    "afterFileEdit": ("Edit", "file_path"),
    "afterShellExecution": ("Shell", "command"),
}


# The year 9999 in milliseconds; every zone can show what comes before it.
_LATEST = 253_370_764_800_000


class ToolCall(NamedTuple):
    """A call of a tool, with the argument that says most: a path, a command."""

    tool: str
    argument: str


class SpokenTurn(NamedTuple):
    """One turn as it was spoken.

    `prompt` is None for what an agent said before anyone asked. `answer` is the last that it
    said. `at` is the time of the prompt in seconds, where the client's records have one.
    """

    prompt: str | None
    tools: tuple[ToolCall, ...]
    answer: str
    at: float | None


class Dialogue(NamedTuple):
    """The turns of a conversation that count, and how many the user took back.

    It is not `whole` where only its end was read. `directory` is where it took place.
    """

    turns: list[SpokenTurn]
    hidden: int
    whole: bool
    directory: str | None


def dialogue(checkpoint: Checkpoint) -> Dialogue:
    """Returns the turns of a checkpoint's conversation.

    Raises:
        CorruptError: a segment is missing or damaged.
    """
    raw, whole = checkpoint.conversation_to_read()
    stored = checkpoint.manifest.conversation
    if stored is None or not registry.known(stored.kind):
        return Dialogue(turns(raw), 0, whole, None)
    active = registry.active(stored.kind, raw)
    found = turns(active)
    hidden = len(turns(raw)) - len(found) if len(active) < len(raw) else 0
    directory = registry.client(stored.kind).directory(raw)
    return Dialogue(found, max(0, hidden), whole, directory)


def turns(raw: bytes) -> list[SpokenTurn]:
    """Returns the turns of a conversation, in the shapes that agents use."""
    found: list[_Open] = []
    for message in conversation.messages(raw):
        # What a subagent was asked is not a prompt of the user's.
        if message.get("isSidechain") is True or conversation.is_noted(message):
            continue
        role = conversation.role(message)
        prompt = prompt_in(message)
        if prompt:
            found.append(_Open(prompt, message))
        elif role not in _PEOPLE and role not in _OTHERS:
            pieces = list(_pieces(message, role))
            if pieces and not found:
                found.append(_Open(None, message))
            for piece in pieces:
                found[-1].add(piece)
    return [each.closed() for each in found]


class _Open:
    """A turn that is being read."""

    def __init__(self, prompt: str | None, message: dict[str, Any]) -> None:
        self._prompt = prompt
        self._at = time_of(message)
        self._tools: list[ToolCall] = []
        self._done: list[ToolCall] = []
        self._spoken: list[str] = []
        self._answers = False

    def add(self, piece: "str | ToolCall | _Done") -> None:
        """Adds a text or a call of the agent's; a text after a call is a new answer."""
        if isinstance(piece, str):
            if not self._answers:
                self._spoken.clear()
            self._answers = True
            self._spoken.append(piece)
            return
        self._answers = False
        if isinstance(piece, ToolCall):
            self._tools.append(piece)
        else:
            self._done.append(piece.call)

    def closed(self) -> SpokenTurn:
        """Returns the turn."""
        tools = tuple(self._tools or self._done)
        return SpokenTurn(self._prompt, tools, "\n\n".join(self._spoken), self._at)


def time_of(message: dict[str, Any]) -> float | None:
    """Returns when a message was written, if its record says so."""
    info = message.get("info")
    span = info.get("time") if isinstance(info, dict) else None
    if isinstance(span, dict):
        # OpenCode counts milliseconds.
        created = span.get("created")
        # Any number may stand there, of any size.
        if isinstance(created, int | float) and 0 <= created < _LATEST:
            return created / 1000
        return None
    at = message.get("timestamp")
    try:
        moment = datetime.datetime.fromisoformat(at) if isinstance(at, str) else None
        return moment.timestamp() if moment is not None else None
    except (ValueError, OverflowError):
        return None


class _Done(NamedTuple):
    """What a tool did, as Cursor's older hooks say it."""

    call: ToolCall


def prompt_in(message: dict[str, Any]) -> str:
    """Returns what a person asked in a message; "" where it is not a prompt."""
    if conversation.role(message) not in _PEOPLE or message.get("isSidechain") is True:
        return ""
    if message.get("isMeta") is True or message.get("isCompactSummary") is True:
        return ""
    return "\n\n".join(filter(None, map(_asked, conversation.blocks(message))))


def _asked(block: Any) -> str:
    text = plain_text(block)
    if text is None or text.startswith(_INTERRUPTED):
        return ""
    shell = _SHELL.match(text)
    if shell is not None:
        return f"! {shell[1].strip()}"
    if _TOLD.match(text) is None:
        return text.strip()
    command = _COMMAND.search(text)
    if command is None:
        return ""
    arguments = _ARGUMENTS.search(text)
    return f"{command[1].strip()} {arguments[1].strip() if arguments else ''}".strip()


def plain_text(block: Any) -> str | None:
    """Returns the text of a block; None if it is a call, a result or bookkeeping."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict) or block.get("synthetic") is True:
        return None
    kind = block.get("type")
    if not isinstance(kind, str):
        kind = ""
    if kind in _UNSPOKEN or "functionResponse" in block or block.get("thought") is True:
        return None
    text = block.get("text")
    if isinstance(text, str):
        return text
    return f"[{kind}]" if kind in {"image", "document", "file", "input_image"} else None


def _pieces(
    message: dict[str, Any], role: str | None
) -> Iterator[str | ToolCall | _Done]:
    """Yields what an agent said and called in a record, in its order."""
    for block in conversation.blocks(message):
        call = conversation.tool_call(block)
        if call is not None:
            yield ToolCall(call[0], main_argument(call[1]))
        elif role is not None:
            text = plain_text(block)
            if text is not None and text.strip():
                yield text.strip()
    hooked = message.get("type")
    payload = message.get("payload")
    if isinstance(hooked, str) and hooked in _DONE and isinstance(payload, dict):
        tool, name = _DONE[hooked]
        yield _Done(ToolCall(tool, main_argument({name: payload.get(name)})))


def main_argument(given: Any) -> str:
    """Returns the argument that says most about a call; "" where none does."""
    value = decoded(given) if isinstance(given, str) else given
    if isinstance(value, str):
        # A patch names its files, after a line that says nothing.
        return ", ".join(PATCHED.findall(value)) or value
    if not isinstance(value, dict):
        return ""
    named = (value[name] for name in _MAIN if name in value)
    for one in (*named, *value.values()):
        text = " ".join(_words(one)) if isinstance(one, list) else one
        if isinstance(text, str) and text.strip():
            return ", ".join(PATCHED.findall(text)) or text
    return ""


def decoded(text: str) -> Any:
    """Returns the value of a text that is JSON, or the text."""
    try:
        return jsontext.decode(text.encode("utf-8", "replace"))
    except ValueError:
        return text


def _words(values: Iterable[Any]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))
