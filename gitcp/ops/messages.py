"""Messages as they come in: arrays, JSON lines, objects, transcripts.

Nothing is re-encoded: a message is kept as its own text, with only the whitespace
outside of strings removed, so numbers, key order and escapes stay as they were.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from gitcp.errors import AgentRecordError
from gitcp.format import jsontext
from gitcp.store.draft import NewRecords

_BOM = b"\xef\xbb\xbf"


class Incoming(NamedTuple):
    """Messages to store, and the metadata that came with them."""

    records: NewRecords
    metadata: msgspec.Raw | None = None


def whole(raw: bytes, name: str, source: str = "main") -> Incoming:
    """Returns a whole conversation: an array, JSON lines, or `{messages, metadata}`.

    Fields of the object beside `messages` and `metadata` join the metadata.

    Raises:
        AgentRecordError: it is none of these; the message says where it broke.
    """
    text = raw.removeprefix(_BOM).strip(b" \t\r\n")
    if not text:
        raise AgentRecordError(
            f"{name} is empty",
            hint="nothing was saved; `[]` says that a conversation has no messages",
        )
    metadata = None
    if text.startswith(b"["):
        data = _array(text, name)
    elif text.startswith(b"{") and (found := _object(text)) is not None:
        data = _array(found.pop("messages"), f"`messages` in {name}")
        metadata = _metadata(found, name)
    else:
        data = _lines(text, name)
    return Incoming(NewRecords(data, whole=True, source=source), metadata)


def more(raw: bytes, name: str, source: str = "main") -> Incoming:
    """Returns messages to add, given as JSON lines, or as an array.

    Raises:
        AgentRecordError: a line is not JSON.
    """
    text = raw.removeprefix(_BOM)
    is_array = text.lstrip(b" \t\r\n").startswith(b"[")
    data = _array(text, name) if is_array else _lines(text, name)
    return Incoming(NewRecords(data, whole=False, source=source))


def _object(text: bytes) -> dict[str, bytes] | None:
    """Returns a checkpoint.json-like object; None for JSON lines of objects."""
    try:
        found = jsontext.members(text)
    except ValueError:
        return None
    return found if found.get("messages", b"").startswith(b"[") else None


def _metadata(beside: dict[str, bytes], name: str) -> msgspec.Raw | None:
    given = beside.pop("metadata", None)
    if not beside:
        found = given
    else:
        inner = jsontext.members(given) if given and given.startswith(b"{") else None
        if inner is None and given is not None:
            inner = {"metadata": given}
        merged = {**beside, **(inner or {})}
        found = b"{%b}" % b",".join(
            msgspec.json.encode(key) + b":" + value for key, value in merged.items()
        )
    if found is None:
        return None
    try:
        return msgspec.Raw(msgspec.json.format(found, indent=-1))
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise AgentRecordError(
            f"the metadata in {name} cannot be kept: {exc}",
            hint="nothing was saved; correct the metadata or leave it out",
        ) from exc


def _array(text: bytes, name: str) -> bytes:
    try:
        return b"".join(
            jsontext.compact(element) + b"\n" for element in jsontext.elements(text)
        )
    except ValueError as exc:
        raise AgentRecordError(
            f"{name} is not valid JSON: {exc}",
            hint="nothing was saved; check how the file was written",
        ) from exc


def _lines(text: bytes, name: str) -> bytes:
    return b"".join(_checked(text, name))


def _checked(text: bytes, name: str) -> Iterator[bytes]:
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            jsontext.decode(line)
        except ValueError as exc:
            raise AgentRecordError(
                f"line {number} of {name} is not valid JSON: {exc}",
                hint="nothing was saved; if the line is still being written, try again",
            ) from exc
        yield jsontext.compact(line) + b"\n"
