"""Reads from an agent's tool calls which paths and commands may have changed files, and when.

The names of tools are those of the clients that gitcp knows. A tool that is not known may
have changed any file.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from gitcp.checkpoints import conversation
from gitcp.checkpoints.spoken_turns import PATCHED, decoded
from gitcp.clients.read_only import only_reads

_EDITS = frozenset(
    {
        *("write", "edit", "multiedit", "notebookedit", "write_file", "replace"),
        *("apply_patch", "patch"),
    }
)
_READS = frozenset(
    {
        *("read", "glob", "grep", "ls", "webfetch", "websearch", "toolsearch"),
        *("todowrite", "todoread", "bashoutput", "taskoutput", "exitplanmode"),
        *("askuserquestion", "read_file", "read_many_files", "list_directory"),
        *("search_file_content", "grep_search", "google_web_search", "web_fetch"),
        *("write_todos", "list", "update_plan", "view_image"),
    }
)
_SHELLS = frozenset(
    {"bash", "shell", "exec_command", "run_shell_command", "local_shell_call"}
)
_MOVED = re.compile(r"^\*\*\* Move to: (.+)$", re.MULTILINE)
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path")
_WRITTEN = ("content", "new_string", "newString", "new_source", "new_str")
# Lines that a patch adds.
_ADDED = re.compile(r"^\+(.*\S.*)$", re.MULTILINE)
_COMMANDS = ("command", "cmd")
_IDS = ("id", "call_id", "callID")
_ANSWERED = ("tool_use_id", "tool_call_id", "call_id")
_ANSWERS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
_ENDED = frozenset({"completed", "error", "success", "cancelled"})
# What it starts may continue after the command has ended.
_LASTS = re.compile(r"(?<![&>|])&(?![&>])|\b(?:nohup|setsid|disown|tmux|screen)\b")
_STILL_RUNS = re.compile(r"running with session ID|running in background")


class Call(NamedTuple):
    """A call of a tool: an edit of `paths`, or a `command`; any other has neither.

    `ident` is the client's id of the call, `texts` what an edit wrote. One that `lasts` may
    continue after it was answered.
    """

    ident: str | None
    paths: tuple[str, ...] = ()
    command: str | None = None
    lasts: bool = False
    texts: tuple[str, ...] = ()


class Calls(NamedTuple):
    """Calls that may have changed files, and the ids of calls that were answered, or failed."""

    made: list[Call]
    answered: set[str]
    failed: set[str]


def calls(messages: list[dict[str, Any]]) -> Calls:
    """Returns what the records of a conversation say of tools, in their order."""
    found = Calls([], set(), set())
    for message in messages:
        _take_answer(message, found)
        inner = message.get("payload")
        if isinstance(inner, dict):
            _take_answer(inner, found)
        for block in conversation.blocks(message):
            if isinstance(block, dict):
                _take_answer(block, found)
                call = _call(block)
                if call is not None:
                    found.made.append(call)
    return found


def _take_answer(block: dict[str, Any], found: Calls) -> None:
    """Notes which calls a result answers; some clients keep it with the call itself."""
    names: tuple[str, ...] = _ANSWERED
    state = block.get("state")
    status = state.get("status") if isinstance(state, dict) else None
    if "args" in block:
        status = block.get("status")
    if isinstance(status, str):
        if status not in _ENDED:
            return
        names = _IDS
    elif not _is_answer(block):
        return
    has_failed = block.get("is_error") is True or status in {"error", "cancelled"}
    for ident in (block.get(name) for name in names):
        if isinstance(ident, str):
            found.answered.add(ident)
            if has_failed:
                found.failed.add(ident)


def _is_answer(block: dict[str, Any]) -> bool:
    """Whether a block has the result of a call that has ended."""
    if conversation.type_of(block) not in _ANSWERS and block.get("role") != "tool":
        return False
    return not any(map(_STILL_RUNS.search, _words(block)))


def _words(value: Any) -> Iterator[str]:
    """Yields the texts in a result, whatever its shape."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _words(one)
    elif isinstance(value, dict):
        for name in ("text", "output", "content"):
            yield from _words(value.get(name))


def _call(block: dict[str, Any]) -> Call | None:
    """Returns a call that may have changed files; None for any other block."""
    named = conversation.tool_call(block)
    if named is None:
        return None
    name = named[0].lower()
    if name in _READS:
        return None
    given = decoded(named[1]) if isinstance(named[1], str) else named[1]
    ident = next(
        (block[key] for key in reversed(_IDS) if isinstance(block.get(key), str)), None
    )
    if name in _EDITS:
        paths = _paths(given)
        # Without a path there is no telling what it wrote.
        return Call(ident, paths, texts=tuple(_written(given)))
    if name not in _SHELLS:
        return Call(ident, lasts=_in_background(given))
    command = _command(given)
    if command is not None and only_reads(command):
        return None
    lasts = command is None or bool(_LASTS.search(command)) or _in_background(given)
    return Call(ident, command=command, lasts=lasts)


def _paths(given: Any) -> tuple[str, ...]:
    texts = given.values() if isinstance(given, dict) else [given]
    patched = [
        path
        for text in texts
        if isinstance(text, str)
        for path in (*PATCHED.findall(text), *_MOVED.findall(text))
    ]
    if patched:
        return tuple(patched)
    if isinstance(given, dict):
        named = (given.get(name) for name in _PATHS)
        return tuple(one for one in named if isinstance(one, str) and one)
    return ()


def _written(given: Any) -> Iterator[str]:
    """Yields the texts that an edit put into its file."""
    if isinstance(given, str):
        yield from _ADDED.findall(given)
    elif isinstance(given, list):
        for one in given:
            yield from _written(one)
    elif isinstance(given, dict):
        named = (given.get(name) for name in _WRITTEN)
        yield from (one for one in named if isinstance(one, str) and one.strip())
        yield from _written(given.get("edits"))
        yield from _written(given.get("input", given.get("patchText")))


def _command(given: Any) -> str | None:
    if not isinstance(given, dict):
        return None
    for name in _COMMANDS:
        value = given.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return " ".join(value)
    return None


def _in_background(given: Any) -> bool:
    return isinstance(given, dict) and any(
        given.get(name) is True for name in ("run_in_background", "is_background")
    )
