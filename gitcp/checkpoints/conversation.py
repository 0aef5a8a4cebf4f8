"""Reads a conversation for people: records, text, tools, estimated tokens."""

from collections.abc import Iterator
from typing import Any, Final

from gitcp.checkpoints import record_forms
from gitcp.format import jsontext

# Rough for English and code; said to be an estimate wherever it is shown.
_BYTES_PER_TOKEN = 4

UNREADABLE: Final = object()
# Parts of an OpenCode message that are bookkeeping, not text.
_BOOKKEEPING = frozenset({"step-start", "step-finish", "patch", "snapshot"})
# Records that are not messages: what clients note for themselves.
_NOTED = frozenset(
    {
        # Claude Code
        *("api-request", "api-request-blob", "api-request-shape", "atis-latch"),
        *("cost-state", "custom-title", "file-history-delta", "file-history-snapshot"),
        *("last-prompt", "queue-operation", "tools-used"),
        # Codex
        *("event_msg", "session_meta", "token_usage_record", "turn_context"),
        "world_state",
    }
)
# Codex records a call's arguments and its result apart from the messages.
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
# Cursor's hooks after a tool.
_HOOKED = frozenset({"postToolUse", "postToolUseFailure"})


def records(raw: bytes) -> Iterator[tuple[bytes, Any]]:
    """Yields each line with its value; UNREADABLE where it is not JSON."""
    for line in raw.split(b"\n"):
        if line.strip():
            try:
                yield line, jsontext.decode(line)
            except ValueError:
                yield line, UNREADABLE


def tokens(size: int) -> int:
    """Returns an estimate of the tokens in a text of `size` bytes."""
    return (size + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN


def messages(raw: bytes) -> list[Any]:
    """Returns the values of the records, in order; nothing for those that are not JSON.

    If a client wrote a message again, its last version replaces the first one, in place.
    """
    found: dict[object, Any] = {}
    for _, value in records(raw):
        for message in _patched(value):
            if isinstance(message, dict):
                found[_identity(message) or len(found)] = message
    return list(found.values())


def as_markdown(raw: bytes) -> str:
    """Returns a conversation as Markdown; blocks of an unknown kind are marked as such.

    A client's notes to itself are left out. If it wrote a message again, the last
    version replaces the first one, in place.
    """
    parts: dict[object, str] = {}
    for line, value in records(raw):
        for message in _patched(value):
            role, text = _speech(message)
            if role is not None:
                parts[_identity(message) or len(parts)] = f"### {role}\n\n{text}\n"
            elif not is_noted(message):
                kind = message.get("type") if isinstance(message, dict) else None
                shown = line.decode("utf-8", "replace")
                cut = f"{shown[:200]}…" if len(shown) > 200 else shown  # noqa: PLR2004
                parts[len(parts)] = f"*({kind or 'unknown record'})* `{cut}`\n"
    return "\n".join(parts.values())


def _patched(value: Any) -> list[Any]:
    """Returns the messages in a patch of Gemini's; any other record in the common form."""
    patch = value.get("$set") if isinstance(value, dict) else None
    messages = patch.get("messages") if isinstance(patch, dict) else None
    return messages if isinstance(messages, list) else [record_forms.common(value)]


def _identity(value: dict[str, Any]) -> str | None:
    """Returns the key that all versions of a Gemini message share."""
    ident = value.get("id") if type_of(value) in {"user", "gemini"} else None
    return ident if isinstance(ident, str) else None


def is_noted(value: Any) -> bool:
    """Whether a record is a client's note to itself, and not a message."""
    if not isinstance(value, dict):
        return False
    if type_of(value) in _NOTED or "projectHash" in value or "$set" in value:
        return True
    return record_forms.is_noted(value)


def type_of(value: dict[str, Any]) -> str:
    """Returns the `type` of a record or of a block; "" where that is not text."""
    found = value.get("type")
    return found if isinstance(found, str) else ""


def last_spoken(raw: bytes, count: int) -> bytes:
    """Returns the last records that are messages, as lines."""
    records: list[bytes] = []
    for line, value in records_backwards(raw):
        role, text = _speech(record_forms.common(value))
        if role is not None and text.strip():
            records.append(line)
            if len(records) == count:
                break
    return b"\n".join(reversed(records))


def records_backwards(raw: bytes) -> Iterator[tuple[bytes, Any]]:
    """Yields what `records` does, last first."""
    for line in reversed(raw.split(b"\n")):
        yield from records(line)


def _speech(value: Any) -> tuple[str | None, str]:
    """Returns role and text of a message in one of the shapes that agents use."""
    if not isinstance(value, dict):
        return None, ""
    described = value.get("info")
    if isinstance(described, dict) and isinstance(described.get("role"), str):
        return described["role"], "\n\n".join(_texts(value.get("parts")))
    inner = value.get("message", value.get("payload", value))
    if not isinstance(inner, dict):
        return None, ""
    kind = type_of(inner)
    if type_of(value) == "response_item" and kind in _CALLS:
        return "assistant", f"→ `{inner.get('name')}` {inner.get(_CALLS[kind])}"
    if type_of(value) == "response_item" and kind in _RESULTS:
        return "tool", f"← {_output(inner.get('output'))}"
    role = inner.get("role")
    if role is None and type_of(value) in {"user", "gemini"}:
        texts = [*_texts(inner.get("content")), *_steps(inner.get("toolCalls"))]
        return type_of(value), "\n\n".join(filter(None, texts))
    content = inner.get("content")
    if not isinstance(role, str) or (content is None and "tool_calls" not in inner):
        return None, ""
    return role, "\n\n".join([*_texts(content), *_calls(inner.get("tool_calls"))])


def tool_names(raw: bytes) -> Iterator[str]:
    """Yields the name of each tool that records call, in the shapes that agents use."""
    for _, value in records(raw):
        for message in _patched(value):
            if isinstance(message, dict):
                for block in blocks(message):
                    call = tool_call(block)
                    if call is not None:
                        yield call[0]


def role(message: dict[str, Any]) -> str | None:
    """Returns who speaks in a message; None if it is not a message."""
    described = message.get("info")
    if isinstance(described, dict) and isinstance(described.get("role"), str):
        return str(described["role"])
    inner = message.get("message", message.get("payload", message))
    found = inner.get("role") if isinstance(inner, dict) else None
    if isinstance(found, str):
        return found
    return type_of(message) if type_of(message) in {"user", "gemini"} else None


def blocks(message: dict[str, Any]) -> Iterator[Any]:
    """Yields texts, calls of tools and all else that a record holds, in its order."""
    inner = message.get("message", message.get("payload", message))
    if not isinstance(inner, dict):
        return
    if type_of(message) == "response_item" and type_of(inner) in _CALLS:
        yield inner
    if type_of(message) in _HOOKED and "tool_name" in inner:
        call = {"name": inner["tool_name"], "input": inner.get("tool_input")}
        yield {"type": "tool_use", **call}
    if isinstance(inner.get("content"), str):
        yield inner["content"]
    for name in ("content", "toolCalls", "tool_calls"):
        listed = inner.get(name)
        yield from listed if isinstance(listed, list) else ()
    parts = message.get("parts")
    yield from parts if isinstance(parts, list) else ()


def tool_call(block: Any) -> tuple[str, Any] | None:
    """Returns the name and the arguments of a tool's call; None for another block."""
    if not isinstance(block, dict):
        return None
    function = block.get("function")
    kind = type_of(block)
    if isinstance(function, dict):
        name, given = function.get("name"), function.get("arguments")
    elif kind == "tool":
        state = block.get("state")
        name = block.get("tool")
        given = state.get("input") if isinstance(state, dict) else None
    elif kind in _CALLS:
        name, given = block.get("name"), block.get(_CALLS[kind])
    elif kind in {"tool_use", "server_tool_use"}:
        name, given = block.get("name"), block.get("input")
    elif "args" in block:
        name, given = block.get("name"), block["args"]
    else:
        return None
    return (name, given) if isinstance(name, str) else None


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            yield str(block)
        elif isinstance(block.get("text"), str):
            yield block["text"]
        elif block.get("type") == "tool_use":
            arguments = jsontext.readable(block.get("input"))
            yield f"→ `{block.get('name')}` {arguments}"
        elif block.get("type") == "tool_result":
            yield "← " + "\n".join(_texts(block.get("content")))
        elif block.get("type") == "tool" and isinstance(block.get("state"), dict):
            state = block["state"]
            arguments = jsontext.readable(state.get("input"))
            yield f"→ `{block.get('tool')}` {arguments}"
            yield f"← {state.get('output', '')}"
        elif isinstance(block.get("functionResponse"), dict):
            response = block["functionResponse"].get("response")
            yield f"← {_output(response)}"
        elif type_of(block) in _BOOKKEEPING:
            continue
        else:
            yield f"[{block.get('type', 'block')}]"


def _steps(calls: Any) -> Iterator[str]:
    """Yields the tool calls in a Gemini record, then their results."""
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            arguments = jsontext.readable(call.get("args"))
            yield f"→ `{call.get('name')}` {arguments}"


def _output(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("output"), str):
        return str(value["output"])
    if isinstance(value, list):
        return "\n".join(_texts(value))
    return value if isinstance(value, str) else jsontext.readable(value)


def _calls(calls: Any) -> Iterator[str]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function", {}) if isinstance(call, dict) else {}
        if isinstance(function, dict):
            yield f"→ `{function.get('name')}` {function.get('arguments')}"
