"""Reads the text of a conversation's record by speaker: a person, an agent, a tool."""

import datetime
from collections.abc import Iterator
from typing import Any

from gitcp.checkpoints import conversation, record_forms
from gitcp.checkpoints.spoken_turns import prompt_in
from gitcp.format.jsontext import unicode

PROMPTS = "prompts"
TALK = "talk"
TOOLS = "tools"

_PEOPLE = frozenset({"user", "human"})
_TOOLS = frozenset({"tool", "function"})
# A model's thoughts are never shown; a picture is not text.
_UNSHOWN = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "image", "input_image"}
)
_RESULTS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
# Fields that only identify a call.
_BOOKKEEPING = frozenset(
    {"id", "type", "name", "tool_use_id", "call_id", "callID", "tool"}
)
# The years whose days exist in every zone.
_FIRST, _LAST = 1970, 9998


def texts(value: Any) -> Iterator[tuple[str, str]]:
    """Yields each text of a record with its column: prompts, talk or tools."""
    if not isinstance(value, dict):
        return
    patch = value.get("$set")
    messages = patch.get("messages") if isinstance(patch, dict) else None
    for message in (
        messages if isinstance(messages, list) else [record_forms.common(value)]
    ):
        if isinstance(message, dict) and not conversation.is_noted(message):
            yield from ((where, unicode(text)) for where, text in _said(message))


def _said(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    prompt = prompt_in(message)
    if prompt:
        yield PROMPTS, prompt
    role = conversation.role(message)
    inner = message.get("payload")
    if isinstance(inner, dict) and conversation.type_of(inner) in _RESULTS:
        yield from ((TOOLS, text) for text in _words(inner.get("output")))
    elif role is None and not any(True for _ in conversation.blocks(message)):
        # The kind of the record is not known, so all its texts count.
        yield from ((TALK, text) for text in _words(message))
        return
    for block in conversation.blocks(message):
        where, said = _of_block(block, role)
        # The prompt was yielded before, without the text that the client puts around it.
        if not (prompt and where == TALK and role in _PEOPLE):
            yield from ((where, text) for text in said)


def _of_block(block: Any, role: str | None) -> tuple[str, Iterator[str]]:
    """Returns the column of a block, and its texts."""
    plain = TOOLS if role in _TOOLS else TALK
    if isinstance(block, str):
        return plain, iter((block,))
    if not isinstance(block, dict) or conversation.type_of(block) in _UNSHOWN:
        return plain, iter(())
    is_result = conversation.type_of(block) in _RESULTS or "functionResponse" in block
    if is_result or conversation.tool_call(block) is not None:
        return TOOLS, _words(block)
    text = block.get("text")
    return plain, iter((text,)) if isinstance(text, str) else iter(())


def _words(value: Any) -> Iterator[str]:
    """Yields the texts in a value of any shape, without fields that only identify it."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if one:
                yield one
        elif isinstance(one, list):
            waiting.extend(reversed(one))
        elif isinstance(one, dict) and conversation.type_of(one) not in _UNSHOWN:
            waiting += [one[name] for name in reversed(one) if name not in _BOOKKEEPING]


def time_of(value: Any) -> float | None:
    """Returns the time of a record, in seconds since 1970, if it has one."""
    at = value.get("timestamp") if isinstance(value, dict) else None
    return seconds(at) if isinstance(at, str) else None


def seconds(at: str) -> float | None:
    """Returns a time in seconds since 1970; None if the text is not a time since then."""
    try:
        moment = datetime.datetime.fromisoformat(at)
    except ValueError:
        return None
    known = moment.tzinfo is not None and _FIRST <= moment.year <= _LAST
    return moment.timestamp() if known else None
