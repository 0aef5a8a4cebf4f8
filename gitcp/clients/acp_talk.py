"""Converts one turn of the Agent Client Protocol to neutral messages.

The messages have the usual shape of a chat: a role, and blocks of text, calls and results.
gitcp can show and search them, and give them to any agent.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from gitcp.clients import records

# So many characters are kept of one tool result, or of one file in a prompt.
_MOST = 256 * 1024
# An agent's kind of call -> the name by which gitcp knows the tool.
_TOOLS = {
    "edit": "edit",
    "delete": "edit",
    "move": "edit",
    "execute": "shell",
    "read": "read",
    "search": "grep",
    "fetch": "web_fetch",
}
_ENDED = frozenset({"completed", "failed", "cancelled"})
_OBJECT = msgspec.json.Decoder(dict[str, Any])
INTERRUPTED = "interrupted"


class Heading(msgspec.Struct):
    """The first line of a recorded turn, which gitcp writes."""

    turn: int
    at: str
    cwd: str
    agent: str | None = None


_HEADING = msgspec.json.Decoder(Heading)


def messages(raw: bytes) -> list[dict[str, Any]]:
    """Returns the messages of a turn that was recorded line by line."""
    lines = records.lines(raw)
    try:
        heading = records.decode(_HEADING, next(lines, b""))
    except records.UNREADABLE:
        return []
    common = {"turn": heading.turn, "timestamp": heading.at}
    turn = _Turn()
    for line in lines:
        turn.take(records.decode_or(_OBJECT, line, {}))
    found: list[dict[str, Any]] = [
        {"role": "user", "content": turn.prompt, **common, "cwd": heading.cwd}
    ]
    found += [{**each, **common} for each in turn.answers()]
    found[-1]["stop_reason"] = turn.stopped or INTERRUPTED
    if heading.agent is not None:
        found[0]["agent"] = heading.agent
    return found


class _Call:
    """A tool call, after all updates to it."""

    def __init__(self, ident: str) -> None:
        self.ident = ident
        self.fields: dict[str, Any] = {}
        self.streamed: list[Any] = []

    def use(self) -> dict[str, Any]:
        """Returns the block that calls the tool."""
        kind = self.fields.get("kind")
        title = self.fields.get("title")
        given = self.fields.get("rawInput")
        held = dict(given) if isinstance(given, dict) else {}
        if given is not None and not isinstance(given, dict):
            held["input"] = given
        for name, value in self._shown().items():
            held.setdefault(name, value)
        named = _TOOLS.get(kind) if isinstance(kind, str) else None
        called_as = named or (
            kind if isinstance(kind, str) and kind != "other" else None
        )
        block: dict[str, Any] = {
            "type": "tool_use",
            "id": self.ident,
            "name": called_as or title or "tool",
        }
        if isinstance(title, str):
            block["title"] = title
        return {**block, "input": held}

    def result(self) -> dict[str, Any] | None:
        """Returns the block with the tool's result; None if the call has not ended."""
        status = self.fields.get("status")
        texts = list(_texts([*_list(self.fields.get("content")), *self.streamed]))
        if not texts and status not in _ENDED:
            return None
        given = self.fields.get("rawOutput")
        if not texts and given is not None:
            said = msgspec.json.encode(given).decode()
            texts = [given if isinstance(given, str) else said]
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": self.ident}
        block["content"] = [{"type": "text", "text": _cut("\n".join(texts))}]
        if status == "failed":
            block["is_error"] = True
        return block

    def _shown(self) -> dict[str, Any]:
        """Returns arguments taken from what a call displays, if it names no others."""
        shown: dict[str, Any] = {}
        for one in _list(self.fields.get("content")):
            if isinstance(one, dict) and one.get("type") == "diff":
                for name, field in _DIFF.items():
                    if isinstance(one.get(field), str):
                        shown.setdefault(name, _cut(one[field]))
        runs = self.fields.get("kind") == "execute"
        # A command's location is where it runs, not the file that it changes.
        for one in () if runs else _list(self.fields.get("locations")):
            if isinstance(one, dict) and isinstance(one.get("path"), str):
                shown.setdefault("file_path", one["path"])
        title = self.fields.get("title")
        if runs and isinstance(title, str):
            shown.setdefault("command", title.strip("`"))
        return shown


_DIFF = {"file_path": "path", "old_string": "oldText", "new_string": "newText"}


class _Turn:
    """The turn that is being read: texts and calls in the order in which they began."""

    def __init__(self) -> None:
        self.prompt: list[Any] = []
        self.stopped: str | None = None
        self._items: list[list[Any] | _Call] = []
        self._calls: dict[str, _Call] = {}

    def take(self, value: dict[str, Any]) -> None:
        """Reads a message of the protocol."""
        params = value.get("params")
        params = params if isinstance(params, dict) else {}
        match value.get("method"):
            case "session/prompt":
                self.prompt = [*map(_kept, _list(params.get("prompt")))]
            case "session/update":
                update = params.get("update")
                if isinstance(update, dict):
                    self._update(update)
            case None:
                self._answered(value)
            case _:
                pass

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yields the agent's texts and calls, and the results of the calls."""
        spoken: list[Any] = []
        called: list[_Call] = []
        for item in (*self._items, None):
            if called and not isinstance(item, _Call):
                yield {"role": "assistant", "content": spoken}
                results = [one for one in (each.result() for each in called) if one]
                if results:
                    yield {"role": "tool", "content": results}
                spoken, called = [], []
            if isinstance(item, _Call):
                spoken.append(item.use())
                called.append(item)
            elif item is not None:
                spoken += _joined(item)
        if spoken:
            yield {"role": "assistant", "content": spoken}

    def _answered(self, value: dict[str, Any]) -> None:
        result = value.get("result")
        error = value.get("error")
        if isinstance(result, dict) and isinstance(result.get("stopReason"), str):
            self.stopped = result["stopReason"]
        elif isinstance(error, dict):
            self.stopped = f"error: {error.get('message')}"

    def _update(self, update: dict[str, Any]) -> None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._say("text", update)
            case "agent_thought_chunk":
                self._say("thinking", update)
            case "agent_message":
                self._items.append([(None, "text", one) for one in _content(update)])
            case "tool_call" | "tool_call_update":
                self._call(update)
            case "tool_call_content_chunk":
                call = self._calls.get(str(update.get("toolCallId")))
                if call is not None:
                    call.streamed.append(update.get("content"))
            case "state_update" if update.get("state") == "idle":
                said = update.get("stopReason")
                self.stopped = said if isinstance(said, str) else "end_turn"

    def _say(self, kind: str, update: dict[str, Any]) -> None:
        if not self._items or isinstance(self._items[-1], _Call):
            self._items.append([])
        last = self._items[-1]
        assert isinstance(last, list)
        last.append((update.get("messageId"), kind, update.get("content")))

    def _call(self, update: dict[str, Any]) -> None:
        ident = str(update.get("toolCallId"))
        call = self._calls.get(ident)
        if call is None:
            call = self._calls[ident] = _Call(ident)
            self._items.append(call)
        call.fields.update(
            {name: one for name, one in update.items() if one is not None}
        )


def _joined(chunks: list[Any]) -> Iterator[Any]:
    """Yields blocks; joins the chunks of one text."""
    texts: list[str] = []
    before: Any = None
    for message, kind, content in (*chunks, (None, None, None)):
        text = content.get("text") if isinstance(content, dict) else None
        same = isinstance(text, str) and (message, kind) == before
        if texts and not same:
            said = "".join(texts)
            thinks = before[1] == "thinking"
            yield (
                {"type": "thinking", "thinking": said}
                if thinks
                else {"type": "text", "text": said}
            )
            texts = []
        if isinstance(text, str):
            texts.append(text)
        elif content is not None:
            yield _kept(content)
        before = (message, kind)


def _kept(block: Any) -> Any:
    """Returns a block of a prompt or an answer, without large embedded content."""
    if not isinstance(block, dict):
        return block
    small = dict(block)
    for name in ("data", "blob"):
        if isinstance(small.get(name), str) and len(small[name]) > _MOST:
            small[name] = f"[{len(small[name]):,} characters, not kept]"
    resource = small.get("resource")
    if isinstance(resource, dict):
        inner = _kept(resource)
        if isinstance(inner.get("text"), str):
            inner["text"] = _cut(inner["text"])
        small["resource"] = inner
    return small


def _texts(content: list[Any]) -> Iterator[str]:
    """Yields the texts that a tool call displays."""
    for one in content:
        held = one.get("content") if isinstance(one, dict) else None
        text = held.get("text") if isinstance(held, dict) else None
        if isinstance(text, str):
            yield text
        elif isinstance(one, dict) and one.get("type") == "diff":
            yield f"[changed {one.get('path')}]"


def _content(update: dict[str, Any]) -> list[Any]:
    return _list(update.get("content"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _cut(text: str) -> str:
    if len(text) <= _MOST:
        return text
    return f"{text[:_MOST]}\n[{len(text) - _MOST:,} more characters, not kept]"
