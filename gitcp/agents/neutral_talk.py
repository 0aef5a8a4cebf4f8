"""Converts any conversation into the neutral form, which another client can import.

For the forms that no module of `gitcp.clients` exchanges: a message's role, its texts, tool
calls and their results.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from gitcp.checkpoints import conversation
from gitcp.checkpoints.spoken_turns import decoded, plain_text
from gitcp.clients.exchange import (
    ASSISTANT,
    FREE,
    TOOL,
    USER,
    Call,
    Message,
    Part,
    Result,
    Spoken,
    Text,
    texts,
)
from gitcp.format import jsontext

_PEOPLE = frozenset({"user", "human"})
_OTHERS = frozenset({"system", "developer"})
_TOOLS = frozenset({"tool", "function"})
_IDS = ("id", "call_id", "callID", "tool_use_id", "tool_call_id")
_OUTCOMES = ("output", "content", "result", "resultDisplay", "error")


def read(raw: bytes) -> Spoken:
    """Returns the messages of a conversation."""
    left: Counter[str] = Counter()
    messages: list[Message] = []
    for at, message in enumerate(conversation.messages(raw)):
        if message.get("isSidechain") is True or conversation.is_noted(message):
            continue
        messages += _read(message, at, left)
    return Spoken(messages, dict(left))


def _read(message: dict[str, Any], at: int, left: Counter[str]) -> Iterator[Message]:
    role = conversation.role(message)
    if role in _OTHERS:
        left["instructions of the client"] += 1
        return
    if role in _TOOLS:
        ident = _ident(message)
        if ident is not None:
            yield Message(TOOL, (Result(ident, _output(message)),))
        return
    speaker = USER if role in _PEOPLE else ASSISTANT
    spoken: list[Part] = []
    results: list[Part] = []
    for number, block in enumerate(conversation.blocks(message)):
        called = conversation.tool_call(block)
        if called is not None:
            ident = _ident(block) or f"call_{at}_{number}"
            spoken.append(Call(ident, called[0], _given(called[1])))
            outcome = _outcome(block)
            if outcome is not None:
                results.append(Result(ident, outcome))
            continue
        if isinstance(block, dict) and (ident := _answered(block)) is not None:
            results.append(Result(ident, _output(block)))
            continue
        text = plain_text(block)
        if text is not None and text.strip():
            spoken.append(Text(text))
    if spoken:
        yield Message(speaker, tuple(spoken))
    if results:
        yield Message(TOOL, tuple(results))


def _ident(block: dict[str, Any]) -> str | None:
    found = (block[name] for name in _IDS if isinstance(block.get(name), str))
    return next(found, None)


def _answered(block: dict[str, Any]) -> str | None:
    """Returns the id of the call that a block answers, if it answers one."""
    response = block.get("functionResponse")
    if isinstance(response, dict):
        return _ident(response)
    answers = conversation.type_of(block) == "tool_result"
    ident = block.get("tool_use_id") if answers else None
    return ident if isinstance(ident, str) else None


def _given(given: Any) -> dict[str, Any]:
    value = decoded(given) if isinstance(given, str) else given
    return value if isinstance(value, dict) else {FREE: value}


def _outcome(block: dict[str, Any]) -> str | None:
    """Returns the result of a call, if its own block has it."""
    state = block.get("state")
    told = state if isinstance(state, dict) else block
    if any(told.get(name) is not None for name in _OUTCOMES):
        return _output(told)
    return None


def _output(told: dict[str, Any]) -> str:
    response = told.get("functionResponse")
    if isinstance(response, dict):
        return _shown(response.get("response"))
    value = next((told[name] for name in _OUTCOMES if told.get(name) is not None), "")
    return _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        inner = [
            _output(one)
            for one in value
            if isinstance(one, dict) and "functionResponse" in one
        ]
        return "\n".join(inner or texts(value))
    if isinstance(value, dict):
        if isinstance(value.get("output"), str):
            return str(value["output"])
        return jsontext.readable(value)
    return value if isinstance(value, str) else jsontext.readable(value)
