"""Divides indexed text into passages: the units that a search finds and reads back."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from gitcp.checkpoints.conversation import UNREADABLE
from gitcp.format import jsontext
from gitcp.format.log import Decision
from gitcp.search import spoken
from gitcp.store.log_lines import Block

PROMPTS, TALK, TOOLS = spoken.PROMPTS, spoken.TALK, spoken.TOOLS
REASONS = "reasons"
NOTES = "notes"
PATHS = "paths"
# The columns of the index, in order; it does not hold the contents of files.
COLUMNS = (PROMPTS, TALK, TOOLS, REASONS, NOTES, PATHS)
FILES = "files"
PLACES = (*COLUMNS, FILES)
# Characters of text after which a passage ends. Shorter passages make the index larger and the
# ranking slower; longer passages take longer to read back.
_LONG = 16_000


class Span(NamedTuple):
    """The place of a passage: bytes of its blob, and its first line there, from 0 on.

    A size of -1 means up to the end.
    """

    start: int = 0
    size: int = 0
    line: int = 0


class Asked(NamedTuple):
    """The place of a prompt: the number of its source in the index, and the byte there."""

    source: int
    start: int


class Passage(NamedTuple):
    """A passage with its texts by column; `at` is the time of its newest record."""

    span: Span
    texts: dict[str, list[str]]
    asked: Asked | None = None
    at: float | None = None


class Record(NamedTuple):
    """A line of a conversation: its start in its blob, its number there, its value."""

    start: int
    line: int
    value: Any


def records(
    blocks: Iterable[Block], wanted: Callable[[bytes], bool] | None = None
) -> Iterator[Record]:
    """Yields the records in a segment, or those whose lines `wanted` accepts.

    Leaves out lines that are not JSON, or too long.
    """
    number = 0
    for block in blocks:
        if block.digest is not None:
            number += 1
            continue
        at = 0
        while at < len(block.data):
            end = block.data.find(b"\n", at)
            end = len(block.data) if end < 0 else end
            line = block.data[at:end]
            if line.strip() and (wanted is None or wanted(line)):
                value = _value(line)
                if value is not UNREADABLE:
                    yield Record(block.start + at, number, value)
            number += 1
            at = end + 1


def _value(line: bytes) -> Any:
    try:
        return jsontext.decode(line)
    except ValueError:
        return UNREADABLE


def talk(
    found: Iterable[Record], source: int, asked: Asked | None
) -> Iterator[Passage]:
    """Yields the passages of a conversation; a prompt always begins a new passage.

    `asked` is the prompt that its beginning answers.
    """
    texts: dict[str, list[str]] = {}
    first: Record | None = None
    length = 0
    at: float | None = None
    for record in found:
        said = list(spoken.texts(record.value))
        prompts = any(where == PROMPTS for where, _ in said)
        if first is not None and (prompts or length >= _LONG):
            if texts:
                span = Span(first.start, record.start - first.start, first.line)
                yield Passage(span, texts, asked, at)
            texts, first, length, at = {}, None, 0, None
        if prompts:
            asked = Asked(source, record.start)
        first = first or record
        for where, text in said:
            texts.setdefault(where, []).append(text)
            length += len(text)
        at = spoken.time_of(record.value) or at
    if first is not None and texts:
        yield Passage(Span(first.start, -1, first.line), texts, asked, at)


def reasons(entries: Iterable[tuple[Span, Decision]]) -> Iterator[Passage]:
    """Yields a passage for each entry of a decision log."""
    for span, entry in entries:
        yield Passage(span, {REASONS: [reason_text(entry)]})


def reason_text(entry: Decision) -> str:
    """Returns the text of a decision, with its reason and its paths."""
    why = f" ({entry.why})" if entry.why else ""
    paths = f" [{', '.join(entry.paths)}]" if entry.paths else ""
    return f"{entry.kind}: {entry.text}{why}{paths}"
