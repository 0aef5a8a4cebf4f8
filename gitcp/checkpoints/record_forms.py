"""Converts the records of other clients to the form of Claude Code's.

Because of that, code that reads conversations (listings, search, pages) has to know few
forms.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# Prefixes and names of records that Copilot CLI and Qwen Code write for themselves.
_NOTED = re.compile(
    r"(session|hook|assistant|tool|system|permission|subagent|model)\.\w+$|abort$"
)
# How Cline CLI keeps what a user said.
_CLINE_SAID = re.compile(r"\s*<user_input[^<>]*>(.*)</user_input>\s*", re.DOTALL)


def common(value: Any) -> Any:
    """Returns a record in a common form; any other as it is."""
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if not isinstance(kind, str):
        return _of_cline(value) if "ts" in value else _of_pydantic(value)
    if kind in _ITEMS:
        return {"type": "response_item", "payload": value}
    data = value.get("data")
    if isinstance(data, dict) and "parentId" in value:
        return _of_copilot(value, kind, data)
    message = value.get("message")
    if not isinstance(message, dict):
        return value
    if isinstance(message.get("parts"), list):
        return _of_qwen(value, message)
    if kind == "message" and isinstance(message.get("role"), str):
        return _of_pi(value, message)
    return value


# What stands by itself in a history of OpenAI's Responses interface.
_ITEMS = frozenset(
    {
        *("function_call", "function_call_output"),
        *("custom_tool_call", "custom_tool_call_output"),
    }
)
# The speaker of each kind of message in Pydantic AI.
_PYDANTIC = {"request": "user", "response": "assistant"}


def is_noted(value: dict[str, Any]) -> bool:
    """Whether a record is a note of one of these clients to itself."""
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    if "parentId" in value and ("data" in value or kind in _PI):
        return bool(_NOTED.match(kind)) or kind in _PI
    return (kind == "session" and "cwd" in value) or "systemPayload" in value


_PI = frozenset(
    {"model_change", "thinking_level_change", "custom", "label", "session_info"}
)


def _spoken(
    value: dict[str, Any], role: str, content: Any, ident: str
) -> dict[str, Any]:
    made: dict[str, Any] = {"type": role, "message": {"role": role, "content": content}}
    if isinstance(value.get(ident), str):
        made["uuid"] = value[ident]
    for name in ("timestamp", "isSidechain"):
        if name in value:
            made[name] = value[name]
    return made


def _of_copilot(value: dict[str, Any], kind: str, data: dict[str, Any]) -> Any:
    content: list[Any] = [{"type": "text", "text": data.get("content")}]
    if not isinstance(data.get("content"), str) or not data["content"]:
        content = []
    if value.get("agentId") or data.get("parentToolCallId"):
        value = {**value, "isSidechain": True}
    if kind == "user.message":
        return _spoken(value, "user", content, "id")
    if kind == "assistant.message":
        asked = data.get("toolRequests")
        for one in asked if isinstance(asked, list) else ():
            if isinstance(one, dict):
                content.append(_call(one, "toolCallId", "arguments"))
        return _spoken(value, "assistant", content, "id")
    if kind == "tool.execution_complete":
        result = data.get("result", data.get("error"))
        told = result if isinstance(result, dict) else {}
        text = told.get("content", told.get("message"))
        block = _result(
            data.get("toolCallId"), text, is_error=data.get("success") is False
        )
        return _spoken(value, "user", [block], "id")
    return value


def _of_cline(value: dict[str, Any]) -> Any:
    """Removes the tag around a user's text."""
    content = value.get("content")
    if not isinstance(content, list):
        return value
    return {**value, "content": [_untagged(block) for block in content]}


def _untagged(block: Any) -> Any:
    text = block.get("text") if isinstance(block, dict) else None
    match = _CLINE_SAID.fullmatch(text) if isinstance(text, str) else None
    return {**block, "text": match[1]} if match else block


def _of_qwen(value: dict[str, Any], message: dict[str, Any]) -> Any:
    role = "assistant" if message.get("role") == "model" else "user"
    return _spoken(value, role, list(_blocks(message["parts"], _QWEN)), "uuid")


def _of_pi(value: dict[str, Any], message: dict[str, Any]) -> Any:
    role, content = message["role"], message.get("content")
    if role == "toolResult":
        block = _result(
            message.get("toolCallId"),
            content,
            is_error=message.get("isError") is True,
        )
        return _spoken(value, "user", [block], "id")
    if isinstance(content, list):
        content = list(_blocks(content, _PI_BLOCKS))
    return _spoken(value, role, content, "id")


def _of_pydantic(value: dict[str, Any]) -> Any:
    kind, parts = value.get("kind"), value.get("parts")
    role = _PYDANTIC.get(kind) if isinstance(kind, str) else None
    if role is None or not isinstance(parts, list):
        return value
    content: list[Any] = []
    for part in parts:
        content += _pydantic_blocks(part) if isinstance(part, dict) else ()
    return _spoken(value, role, content, "run_id")


def _pydantic_blocks(part: dict[str, Any]) -> list[Any]:
    kind, content = part.get("part_kind"), part.get("content")
    if not isinstance(kind, str):
        return []
    if kind in {"tool-call", "builtin-tool-call"}:
        named = {**part, "name": part.get("tool_name")}
        return [_call(named, "tool_call_id", "args")]
    if kind in {"tool-return", "builtin-tool-return", "retry-prompt"}:
        text = content if isinstance(content, str) else json.dumps(content)
        failed = kind == "retry-prompt" or part.get("outcome") == "failed"
        return [_result(part.get("tool_call_id"), text, is_error=failed)]
    if kind not in {"user-prompt", "text"}:
        return []
    texts = content if isinstance(content, list) else [content]
    return [{"type": "text", "text": text} for text in texts if isinstance(text, str)]


def _blocks(
    parts: list[Any], forms: Mapping[str, Callable[[Any], Any]]
) -> Iterator[Any]:
    for part in parts:
        found = part
        if isinstance(part, dict):
            for name, form in forms.items():
                if name in part or part.get("type") == name:
                    found = form(part)
        yield found


def _qwen_call(part: dict[str, Any]) -> Any:
    call = part["functionCall"]
    return _call(call, "id", "args") if isinstance(call, dict) else part


def _qwen_result(part: dict[str, Any]) -> Any:
    given = part["functionResponse"]
    if not isinstance(given, dict):
        return part
    response = given.get("response")
    text = response.get("output") if isinstance(response, dict) else response
    return _result(given.get("id"), text)


_QWEN = {"functionCall": _qwen_call, "functionResponse": _qwen_result}
_PI_BLOCKS = {"toolCall": lambda part: _call(part, "id", "arguments")}


def _call(given: dict[str, Any], ident: str, arguments: str) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": given.get(ident),
        "name": given.get("name"),
        "input": given.get(arguments),
    }


def _result(ident: Any, content: Any, *, is_error: bool = False) -> dict[str, Any]:
    more = {"is_error": True} if is_error else {}
    return {"type": "tool_result", "tool_use_id": ident, "content": content, **more}
