"""The front matter of a markdown file: the YAML between its first two `---` lines.

PyYAML, of the extra `gitcp[yaml]`, reads it. Every scalar is text: `yes`, `1.10` and
`2026-01-02` stay as they are written; only an unquoted `~` or `null` is None. Aliases are
refused, because a short text of aliases can stand for a value of any size.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from gitcp.errors import UsageError

Value = str | list["Value"] | dict[str, "Value"] | None

_FENCE = re.compile(r"---[ \t]*")
_END = re.compile(r"(---|\.\.\.)[ \t]*")
_NONE = frozenset({"~", "null"})
_DEEPEST = 20


class FrontMatterError(ValueError):
    """The front matter is not valid YAML, or not a mapping; the message names the line."""


class MarkdownFile(NamedTuple):
    """A markdown file in two parts: the fields of its front matter, and its body."""

    fields: dict[str, Value]
    body: str


def library() -> Any:
    """Returns the module yaml.

    Raises:
        UsageError: PyYAML is not installed.
    """
    try:
        import yaml  # noqa: PLC0415  optional
    except ImportError as exc:
        raise UsageError(
            "importing markdown checkpoints needs the library PyYAML,"
            " which is not installed",
            hint="install it: `pip install 'gitcp[yaml]'`",
        ) from exc
    return yaml


def split(text: str) -> MarkdownFile:
    """Returns the front matter and the body of a file; without front matter, no fields.

    Raises:
        FrontMatterError: the front matter does not end, or cannot be read.
        UsageError: PyYAML is not installed.
    """
    lines = re.split("\r?\n", text.removeprefix("\ufeff"))
    if not _FENCE.fullmatch(lines[0]):
        return MarkdownFile({}, text)
    for number, line in enumerate(lines[1:], 1):
        if _END.fullmatch(line):
            fields = _mapping("\n".join(lines[1:number]))
            return MarkdownFile(fields, "\n".join(lines[number + 1 :]))
    raise FrontMatterError("line 1: the front matter does not end")


def _mapping(text: str) -> dict[str, Value]:
    yaml = library()
    try:
        fields = _Reader(yaml, text).document()
    except FrontMatterError:
        raise
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        raise _error(mark, exc.problem or exc.context) from exc
    except (yaml.YAMLError, ValueError, OverflowError) as exc:
        reason = str(exc).partition("\n")[0]
        raise FrontMatterError(f"not valid YAML: {reason}") from exc
    if not isinstance(fields, dict):
        raise FrontMatterError("line 2: the front matter is not a mapping")
    return fields


class _Reader:
    """Builds one document from PyYAML's events; its own loaders allow any depth."""

    def __init__(self, yaml: Any, text: str) -> None:
        self._yaml = yaml
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.BaseLoader)

    def document(self) -> Value:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), self._yaml.StreamEndEvent):
            return {}
        return self._value(next(self._events), 0)

    def _value(self, event: Any, depth: int) -> Value:
        if depth > _DEEPEST:
            raise _error(event.start_mark, "nested too deeply")
        if isinstance(event, self._yaml.AliasEvent):
            raise _error(event.start_mark, "an alias is not read")
        if isinstance(event, self._yaml.ScalarEvent):
            text = _text(event)
            return None if event.style is None and text in _NONE else text
        if isinstance(event, self._yaml.SequenceStartEvent):
            return [self._value(item, depth + 1) for item in self._until_end()]
        fields: dict[str, Value] = {}
        for key in self._until_end():
            if not isinstance(key, self._yaml.ScalarEvent):
                raise _error(key.start_mark, "a key is not text")
            name = _text(key)
            if name in fields:
                raise _error(key.start_mark, f"the key {name!r} occurs twice")
            fields[name] = self._value(next(self._events), depth + 1)
        return fields

    def _until_end(self) -> Iterator[Any]:
        for event in self._events:
            if isinstance(event, self._yaml.CollectionEndEvent):
                return
            yield event


def _text(scalar: Any) -> str:
    # As in JSON, two escapes may be the halves of one character.
    try:
        return str(scalar.value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as exc:
        raise _error(scalar.start_mark, "half of a surrogate pair") from exc


def _error(mark: Any, problem: str) -> FrontMatterError:
    # The mark counts lines from 0, below the fence.
    return FrontMatterError(f"line {mark.line + 2}: {problem}")
