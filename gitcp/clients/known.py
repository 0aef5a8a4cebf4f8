"""Builds documents for a client from known fields of untrusted records.

gitcp never copies a conversation that was made elsewhere into a client's file. It decodes
the records, picks the fields that carry messages by name and type, and encodes only those
again. It leaves out a field that is not listed, or is not of its type.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from gitcp.clients import records
from gitcp.errors import AgentRecordError

# A shape: a type, a list of one shape, a mapping of names to shapes, a function that
# returns the part of a value to keep (None: no part), or ANYTHING for plain JSON.
Shape = Any
ANYTHING = object()
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_WORD = r"(?a)[A-Za-z0-9][\w.:/+@-]{0,127}"
_IDENT = r"(?a)[A-Za-z0-9_](?!.*\.\.)[\w.:+@-]{0,127}"
# JavaScript cannot tell larger integers apart.
_LARGEST = 1 << 53
# To rebuild a conversation, gitcp decodes it record by record, and each value takes many
# times the memory of its text.
MOST_BYTES = 64 * 1024 * 1024
_MOST_RECORDS = 100_000
_MOST_MADE = 96 * 1024 * 1024
_MOST_VALUES = 500_000


def objects(raw: bytes) -> Iterator[dict[str, Any]]:
    """Yields the objects of a file of JSON lines; skips lines that are not objects."""
    for line in records.lines(raw):
        record = one(line)
        if record is not None:
            yield record


def one(raw: bytes) -> dict[str, Any] | None:
    """Returns a text that is exactly one JSON object, or None."""
    try:
        return records.decode(_OBJECT, raw)
    except records.UNREADABLE:
        return None


def refuse_if_dense(raw: bytes) -> None:
    """Raises unless a conversation can be rebuilt in little memory.

    Raises:
        AgentRecordError: the conversation has too many records, or a record has too many values.
    """
    if raw.count(b"\n") > _MOST_RECORDS:
        raise too_large(f"it has more than {_MOST_RECORDS:,} records")
    for line in records.lines(raw):
        # Each value except the first follows one of these.
        if len(line) > _MOST_VALUES and (
            sum(map(line.count, (b",", b":", b"[", b"{"))) > _MOST_VALUES
        ):
            raise too_large(f"a record of it has more than {_MOST_VALUES:,} values")


def pick(value: Any, shape: Shape) -> Any:
    """Returns the part of a value that fits a shape; None if it is of another type."""
    if shape is ANYTHING:
        return value
    if isinstance(shape, dict):
        return fields(value, shape) if isinstance(value, dict) else None
    if isinstance(shape, list):
        if not isinstance(value, list):
            return None
        picked = (pick(item, shape[0]) for item in value)
        return [item for item in picked if item is not None]
    if isinstance(shape, type):
        return value if type(value) is shape else None
    return shape(value)


def fields(record: Mapping[str, Any], shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Returns the fields of a record that are listed and fit their shapes."""
    picked = {
        name: pick(record[name], shape)
        for name, shape in shapes.items()
        if name in record
    }
    return {name: value for name, value in picked.items() if value is not None}


def number(value: Any) -> int | float | None:
    """Accepts a finite number."""
    if type(value) not in {int, float} or not abs(value) < _LARGEST:
        return None
    return value if math.isfinite(value) else None


def word(value: Any) -> str | None:
    """Accepts a plain word: the name of a tool or model, a version, a time."""
    return value if isinstance(value, str) and re.fullmatch(_WORD, value) else None


def ident(value: Any) -> str | None:
    """Accepts the id of a message or tool call; clients name files after such ids."""
    return value if isinstance(value, str) and re.fullmatch(_IDENT, value) else None


def one_of(*words: str) -> Callable[[Any], str | None]:
    """Returns a shape that accepts only these words."""

    def chosen(value: Any) -> str | None:
        return value if isinstance(value, str) and value in words else None

    return chosen


def either(
    needed: Mapping[str, AbstractSet[str]], *shapes: Mapping[str, Shape]
) -> Shape:
    """Returns a shape for a block of one of several types, each with fields of its own.

    The first shape whose `type` fits decides; `needed` are the fields without which a
    block of a type does not pass.
    """

    def block(value: Any) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            return None
        for shape in shapes:
            picked = fields(value, shape)
            if "type" in picked:
                return picked if picked.keys() >= needed[picked["type"]] else None
        return None

    return block


def text_or(block: Shape) -> Shape:
    """Returns a shape for content: a text, or a list of blocks of the given shape."""

    def content(value: Any) -> Any:
        return value if isinstance(value, str) else pick(value, [block])

    return content


class Names:
    """New ids for old ids: equal ids stay equal, so that references still hold."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._new: dict[str, str] = {}

    def new(self, old: Any) -> str:
        """Returns the new id for an old one; a fresh id if `old` is not an id."""
        if not isinstance(old, str):
            return self._make()
        if old not in self._new:
            self._new[old] = self._make()
        return self._new[old]

    def known(self, old: Any) -> str | None:
        """Returns the new id for an old one, if that one has occurred before."""
        return self._new.get(old) if isinstance(old, str) else None


class Chain:
    """New ids of records that name their parents, some of which are left out.

    A record whose parent is left out follows its nearest ancestor that is kept.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._kept: dict[str, str | None] = {}

    def parent(self, old: Any) -> str | None:
        """Returns the new id of the nearest kept ancestor, by a parent's old id."""
        return self._kept.get(old) if isinstance(old, str) else None

    def keep(self, old: Any) -> str:
        """Returns the new id of a record that is kept."""
        new = self._names.new(old)
        if isinstance(old, str):
            self._kept[old] = new
        # A record that was added after an earlier rebuild names its parent by the new id.
        self._kept.setdefault(new, new)
        return new

    def leave_out(self, old: Any, parent: Any) -> None:
        """Notes a record that is left out, by its own and its parent's old id."""
        if isinstance(old, str):
            self._kept[old] = self.parent(parent)


def lines(documents: Iterable[dict[str, Any]]) -> bytes:
    """Returns records as JSON lines.

    Raises:
        AgentRecordError: the records exceed the size limit.
    """
    return b"".join(
        bounded(msgspec.json.encode(record) + b"\n" for record in documents)
    )


def bounded(encoded: Iterable[bytes]) -> Iterator[bytes]:
    """Yields rebuilt records, up to a limit.

    Raises:
        AgentRecordError: there are too many records or bytes. A small record may become
            several, and ids and directories make each of them larger.
    """
    size = 0
    for number, record in enumerate(encoded):
        size += len(record)
        if number >= _MOST_RECORDS or size > _MOST_MADE:
            raise too_large(
                f"rebuilt, it has more than {_MOST_RECORDS:,} records or"
                f" {_MOST_MADE:,} bytes"
            )
        yield record


def too_large(reason: str) -> AgentRecordError:
    """Returns the error for a conversation that is too large to rebuild."""
    return AgentRecordError(
        "a conversation that was made elsewhere is rebuilt from known fields, and this"
        f" one is too large for that: {reason}",
        hint="`gitcp messages SEL -o FILE` writes its bytes",
    )
