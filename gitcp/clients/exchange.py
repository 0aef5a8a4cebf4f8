"""The neutral form of a conversation, for another client: roles, texts, calls, results.

For each client that takes part, a module converts its own form to these types and back; no
module knows another client's form.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

USER, ASSISTANT, TOOL = "user", "assistant", "tool"
NO_RESULT = "[no result was recorded]"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# If a tool's argument is one text, and not named arguments, other clients get it under this
# name.
FREE = "input"


class Text(NamedTuple):
    """A text of a message."""

    text: str


class Picture(NamedTuple):
    """A picture, in base 64, and its media type."""

    media_type: str
    data: str


class Call(NamedTuple):
    """A tool call; `given` are named arguments, or one text."""

    ident: str
    name: str
    given: dict[str, Any] | str


class Result(NamedTuple):
    """The result of a call."""

    call: str
    output: str
    failed: bool = False


Part = Text | Picture | Call | Result


class Message(NamedTuple):
    """A message of the user, the assistant or a tool; `at` is its time, as written."""

    role: str
    parts: tuple[Part, ...]
    at: str | None = None


class Spoken(NamedTuple):
    """A conversation, and how many parts were left out of it, by kind."""

    messages: list[Message]
    left: dict[str, int]


def paired(messages: Iterable[Message]) -> list[Message]:
    """Returns messages in which results follow directly after their calls.

    Models refuse a call without a result, so such a call gets a result that says so. Names
    and ids that some models refuse are changed, in calls and results alike.
    """
    given = list(messages)
    results = {
        part.call: (part, message.at)
        for message in given
        for part in message.parts
        if isinstance(part, Result)
    }
    names = _Idents()
    made: list[Message] = []
    calls: list[Call] = []

    def answer() -> None:
        for call in calls:
            found, at = results.get(call.ident, (Result(call.ident, NO_RESULT), None))
            part = found._replace(call=names.of(call.ident))
            made.append(Message(TOOL, (part,), at))
        calls.clear()

    for message in given:
        if message.role != ASSISTANT:
            answer()
        else:
            calls += [part for part in message.parts if isinstance(part, Call)]
        parts = tuple(
            part._replace(ident=names.of(part.ident), name=_plain(part.name))
            if isinstance(part, Call)
            else part
            for part in message.parts
            if not isinstance(part, Result)
        )
        if parts:
            made.append(message._replace(parts=parts))
    answer()
    return made


class _Idents:
    """Ids of calls that every model accepts; most ids stay as they are."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, ident: str) -> str:
        if ident not in self._known:
            plain = _NAME.fullmatch(ident) is not None
            self._known[ident] = ident if plain else f"call_{len(self._known)}"
        return self._known[ident]


def _plain(name: str) -> str:
    if _NAME.fullmatch(name):
        return name
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "tool"


def texts(content: Any) -> Iterator[str]:
    """Yields the texts in a result of any shape; other content is named by its type."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            text = block.get("text")
            kind = block.get("type")
            yield text if isinstance(text, str) else f"[{kind}]"
