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
# The numbers of a message and of a part of it.
_Place = tuple[int, int]


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
    and ids that some models refuse are changed, in calls and results alike, and so are ids
    that come again.
    """
    given = list(messages)
    results = _results(given)
    names = _Names()
    made: list[Message] = []
    calls: list[tuple[_Place, str]] = []

    def answer() -> None:
        for place, name in calls:
            found, at = results.get(place, (Result(name, NO_RESULT), None))
            made.append(Message(TOOL, (found._replace(call=name),), at))
        calls.clear()

    for number, message in enumerate(given):
        if message.role != ASSISTANT:
            answer()
        parts: list[Part] = []
        for index, part in enumerate(message.parts):
            if isinstance(part, Call):
                name = names.new(part.ident)
                calls.append(((number, index), name))
                parts.append(part._replace(ident=name, name=_plain(part.name)))
            elif not isinstance(part, Result):
                parts.append(part)
        if parts:
            made.append(message._replace(parts=tuple(parts)))
    answer()
    return made


def without_call(messages: Iterable[Message]) -> int:
    """Returns how many results have no call before them: `paired` leaves these out."""
    called: set[str] = set()
    count = 0
    for message in messages:
        for part in message.parts:
            if isinstance(part, Call):
                called.add(part.ident)
            elif isinstance(part, Result) and part.call not in called:
                count += 1
    return count


def _results(given: list[Message]) -> dict[_Place, tuple[Result, str | None]]:
    """Returns the result of each call, with its time.

    Some servers give the same id to a call of each turn. So a result is that of the first
    call before it that has none, in the turn of the last call with that id; if all have one,
    it replaces the last.
    """
    found: dict[_Place, tuple[Result, str | None]] = {}
    waiting: dict[str, list[_Place]] = {}
    answered: dict[str, _Place] = {}
    turn = 0
    for number, message in enumerate(given):
        if message.role == USER:
            turn = number
        for index, part in enumerate(message.parts):
            if isinstance(part, Call):
                earlier = waiting.get(part.ident, [])
                waiting[part.ident] = [one for one in earlier if one[0] >= turn]
                waiting[part.ident].append((number, index))
            elif isinstance(part, Result):
                if waiting.get(part.call):
                    answered[part.call] = waiting[part.call].pop(0)
                if part.call in answered:
                    found[answered[part.call]] = (part, message.at)
    return found


class _Names:
    """New ids of calls, which every model accepts; most ids stay as they are."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def new(self, ident: str) -> str:
        name = ident
        number = len(self._used)
        while name in self._used or _NAME.fullmatch(name) is None:
            name = f"call_{number}"
            number += 1
        self._used.add(name)
        return name


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
