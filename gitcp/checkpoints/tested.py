"""Tells from an agent's records whether the last tests of a turn passed.

Clients record a command and its result: that it failed, its exit status, its output. A
status counts only where it is that of the tests, and not of what their output went through.
"""

import re
from collections.abc import Iterator
from typing import Any

from gitcp.checkpoints import conversation
from gitcp.checkpoints.spoken_turns import decoded
from gitcp.checkpoints.tool_calls import calls
from gitcp.checkpoints.turn_of import new_records
from gitcp.checkpoints.turns import Row
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# Bytes of a turn's records that are read, and of the end that is looked at.
_READ = 4 * 1024 * 1024
_LOOKED_AT = 512 * 1024

_RUNNERS = re.compile(
    r"(?:\A|[;&|(\n]|(?:\b(?:run|exec|time|env|npx|bunx|sudo|timeout\s+\S+)|\s-m)\s"
    r"|sh\s+-\w*c\s+[\"']?)\s*"
    r"(?:cd\s+\S+\s*&&\s*)?(?:\w+=\S*\s+)*(?:[\w.~/-]*/)?"
    r"(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|bats"
    r"|(?:npm|pnpm|yarn|bun)\s+(?:run\s+|-\S+\s+)*(?:t|test|tests)(?:[:.][\w:-]+)?"
    r"|(?:go|cargo|dotnet|swift|deno|mix|flutter|dart|rails|bazel|zig|sbt|lein)\s+test"
    r"|cargo\s+nextest|(?:rake|bin/rails)\s+(?:test|spec)"
    r"|(?:mvnw?|gradlew?|make|just|task)\s+(?:[^;&|\n]*[\s:])?(?:test|tests|check|verify))"
    r"(?![\w.=/-])"
)
# Behind these a status is another command's.
_MASKED = re.compile(r"[|;\n]|(?<![>&])&(?![>&])")
_FAILED = re.compile(
    r"^=+ .*\b[1-9]\d* (?:failed|errors?)\b|^\s*[1-9]\d* failed\b|^FAILED \((?:failures|errors)="
    r"|^test result: FAILED|^Tests?:?\s+(?:.*\s)?[1-9]\d* failed|^--- FAIL:|^\s*[1-9]\d* failing\b"
    r"|^\s*# fail [1-9]|\b[1-9]\d* examples?, [1-9]\d* failures?|^FAILURES!",
    re.MULTILINE,
)
_PASSED = re.compile(
    r"^=+ .*\b\d+ passed\b|^\s*\d+ passed\b|^OK(?: \(|\r?$)|^test result: ok"
    r"|^Tests?:?\s+(?:.*\s)?\d+ passed|^ok  ?\t?\S+\s+[\d.(]|^\s*\d+ passing\b"
    r"|^\s*# fail 0\b|\b\d+ examples?, 0 failures",
    re.MULTILINE,
)
_STATUS = re.compile(
    r"^(?:Process exited with code|Exit [Cc]ode:?|Command exited with code) (-?\d+)",
    re.MULTILINE,
)
_IDS = ("tool_use_id", "tool_call_id", "call_id", "callID", "id")
_HOLD = (
    *("text", "output", "content", "result", "response", "functionResponse", "state"),
    *("resultDisplay", "error", "metadata", "stdout", "stderr"),
)
_STATUSES = ("exit_code", "exitCode", "exit")
# These say of each result whether it is an error.
_SAYS_ERRORS = "tool_result"


def of_turn(store: Store, row: Row, end: Checkpoint) -> bool | None:
    """Returns whether the tests in a turn passed; None if none were run, or it is not known.

    Raises:
        CorruptError: a segment is missing or damaged.
    """
    held = end.manifest.conversation
    if not row.is_turn or held is None:
        return None
    first = store.checkpoint(row.first.commit) or end
    before = first.manifest.conversation if first != end else None
    known = before.bytes if before and before.source == held.source else 0
    if held.bytes - known > _READ:
        return None
    raw = new_records(store, first, end)
    if len(raw) > _LOOKED_AT:
        raw = raw[-_LOOKED_AT:].partition(b"\n")[2]
    return came_of(conversation.messages(raw))


def came_of(messages: list[dict[str, Any]]) -> bool | None:
    """Returns whether the tests in a conversation that were run last have passed."""
    found = calls(messages)
    ran = next(
        (one for one in reversed(found.made) if one.command and _tests(one.command)),
        None,
    )
    if ran is None or ran.command is None or ran.ident not in found.answered:
        return None
    output, statuses, says_errors = _answer(messages, ran.ident)
    if _FAILED.search(output):
        return False
    start = max(match.end() for match in _RUNNERS.finditer(ran.command))
    if _MASKED.search(ran.command, start):
        return True if _PASSED.search(output) else None
    statuses += [int(match[1]) for match in _STATUS.finditer(output)]
    if ran.ident in found.failed or any(statuses):
        return False
    return True if statuses or says_errors or _PASSED.search(output) else None


def _tests(command: str) -> bool:
    return _RUNNERS.search(command) is not None


def _answer(messages: list[dict[str, Any]], ident: str) -> tuple[str, list[int], bool]:
    """Returns the output of a call, its exit statuses, and whether its client says errors."""
    texts: list[str] = []
    statuses: list[int] = []
    says_errors = False
    for message in messages:
        payload = message.get("payload")
        for block in (message, payload, *conversation.blocks(message)):
            if not isinstance(block, dict) or ident not in _named(block):
                continue
            says_errors = says_errors or block.get("type") == _SAYS_ERRORS
            for one in _told(block):
                if isinstance(one, str):
                    texts.append(one)
                else:
                    statuses.append(one)
    return "\n".join(texts), statuses, says_errors


def _named(block: dict[str, Any]) -> list[Any]:
    return [block.get(name) for name in _IDS]


def _told(value: Any) -> Iterator[str | int]:
    """Yields the texts in a result, whatever its shape, and the exit statuses."""
    if isinstance(value, str):
        inner = decoded(value) if value.startswith("{") else value
        if isinstance(inner, dict):
            yield from _told(inner)
        else:
            yield value
    elif isinstance(value, list):
        for one in value:
            yield from _told(one)
    elif isinstance(value, dict):
        for name in _STATUSES:
            status = value.get(name)
            if isinstance(status, int) and not isinstance(status, bool):
                yield status
        for name in _HOLD:
            yield from _told(value.get(name))
