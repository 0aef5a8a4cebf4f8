"""Parses messages from input: arrays, JSON lines, objects, transcripts.

Nothing is re-encoded: a message is kept as its own text, with only the whitespace
outside of strings removed, so numbers, key order and escapes stay as they were.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp.checkpoints import input_cache
from gitcp.checkpoints.input_cache import SourceKey
from gitcp.checkpoints.known_sources import KnownSources, ends_line
from gitcp.errors import AgentRecordError
from gitcp.format import jsontext
from gitcp.format.layout import LogName
from gitcp.format.log import Meta
from gitcp.project.workspace import Workspace
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import GrownSource, NewRecords

_BOM = b"\xef\xbb\xbf"


class Incoming(NamedTuple):
    """Messages to store, and the metadata that came with them.

    `raw` is an input that may grow: the caller passes it to `remember` after the save.
    """

    records: NewRecords
    metadata: msgspec.Raw | None = None
    raw: bytes | None = None


# Returns the totals of what is stored, if the bytes given begin with all of it.
Held = Callable[[memoryview], Meta | None]


def growing(workspace: Workspace, source: SourceKey, raw: bytes, name: str) -> Incoming:
    """Returns a whole conversation as `whole` does, but parses only its new part.

    Raises:
        AgentRecordError: as `whole`.
    """
    tip = workspace.store.tip(source.session, source.branch)
    where = LogName("conversation", source.source)
    held = logs.meta(tip.log_tree, where, tip.objects) if tip is not None else None
    if held is not None:
        size = input_cache.beginning(workspace, source, raw, held)
        added = _added(raw, size, name) if size is not None else None
        if added is not None:
            grown = GrownSource(
                held.bytes, held.digest, lambda: whole(raw, name).records.data
            )
            return Incoming(
                NewRecords(added, whole=False, source=source.source, grown=grown),
                raw=raw,
            )
    known = stored(workspace, source.session, source.branch, source.source)
    return whole(raw, name, source.source, held=known)._replace(raw=raw)


def remember(
    workspace: Workspace, source: SourceKey, raw: bytes, tip: Checkpoint
) -> None:
    """Notes what was parsed, so that the next save need not parse it again."""
    where = LogName("conversation", source.source)
    held = logs.meta(tip.log_tree, where, tip.objects)
    size = len(raw.rstrip(b" \t\r\n"))
    if raw.startswith(b"["):
        size = len(raw[: size - 1].rstrip(b" \t\r\n"))
    elif not _is_lines(raw, size):
        return
    if held is not None and held.messages and size > 1:
        input_cache.remember(workspace, source, raw, size, held)


def _is_lines(raw: bytes, size: int) -> bool:
    """Whether it consists of lines with objects, and is not one object, indented or not."""
    end = raw.find(b"\n", 0, size)
    if not raw.startswith(b"{") or end < 0:
        return False
    try:
        jsontext.decode(raw[:end])
    except ValueError:
        return False
    return True


def _added(raw: bytes, size: int, name: str) -> bytes | None:
    """Returns what follows the first `size` bytes; None if they do not end between two messages."""
    rest = raw[size:].lstrip(b" \t\r\n") if raw.startswith(b"[") else raw[size:]
    if not raw.startswith(b"["):
        ended = not rest or rest.startswith((b"\n", b"\r\n"))
        return _lines(rest, name, raw.count(b"\n", 0, size)) if ended else None
    if rest.startswith(b","):
        # An element has to follow a comma.
        tail = b"[" + rest[1:].strip(b" \t\r\n")
        return _array(tail, name) if tail != b"[]" else None
    return b"" if rest.strip(b" \t\r\n") == b"]" else None


def whole(
    raw: bytes, name: str, source: str = "main", *, held: Held | None = None
) -> Incoming:
    """Returns a whole conversation: an array, JSON lines, or `{messages, metadata}`.

    Fields of the object beside `messages` and `metadata` join the metadata. With
    `held`, lines that are stored already are recognized by their bytes, and not parsed
    again.

    Raises:
        AgentRecordError: the input has another form; the message says where.
    """
    if held is not None and raw.startswith(b"{"):
        known = held(memoryview(raw))
        # A single object may be meant as something other than a line.
        if known is not None and raw[known.bytes :].strip():
            return _grown(raw, known, name, source)
    text = raw.removeprefix(_BOM).strip(b" \t\r\n")
    if not text:
        raise AgentRecordError(
            f"{name} is empty",
            hint="nothing was saved; use `[]` for a conversation without messages",
        )
    metadata = None
    if text.startswith(b"["):
        data = _array(text, name)
    elif text.startswith(b"{") and (members := _object(text)) is not None:
        data = _array(members.pop("messages"), f"`messages` in {name}")
        metadata = _metadata(members, name)
    else:
        data = _lines(text, name)
    return Incoming(NewRecords(data, whole=True, source=source), metadata)


def transcript(
    raw: bytes,
    kind: str,
    source: str,
    agent_session: str | None,
    *,
    held: Held | None = None,
) -> Incoming:
    """Returns an agent's own file, which is stored as it is."""
    known = held(memoryview(raw)) if held is not None else None
    grown = None
    # The rest of a torn line is not a record of its own.
    if known is not None and known.kind == kind and raw.endswith(b"\n", 0, known.bytes):
        grown = GrownSource(known.bytes, known.digest, lambda: raw)
        raw = raw[known.bytes :]
    return _of_agent(raw, kind, source, agent_session, grown)


def transcript_file(
    workspace: Workspace,
    source: SourceKey,
    path: Path,
    kind: str,
    agent_session: str | None,
    reread: Callable[[], bytes],
) -> Incoming:
    """Returns an agent's own file as `transcript` does, but reads only its new part.

    `reread` reads all of it, if it does not begin with what is stored.
    """
    tip = workspace.store.tip(source.session, source.branch)
    name = LogName("conversation", source.source)
    held = logs.meta(tip.log_tree, name, tip.objects) if tip is not None else None
    if tip is not None and held is not None and held.kind == kind and held.bytes:
        known = KnownSources(workspace.directory)
        more = known.beyond(path, held, name, tip)
        if more is not None and ends_line(path, held.bytes):
            known.grew(path, more)
            known.store()
            grown = GrownSource(held.bytes, held.digest, reread)
            return _of_agent(more, kind, source.source, agent_session, grown)
    return _of_agent(reread(), kind, source.source, agent_session)


def _of_agent(
    data: bytes,
    kind: str,
    source: str,
    agent_session: str | None,
    grown: GrownSource | None = None,
) -> Incoming:
    return Incoming(
        NewRecords(
            data,
            whole=grown is None,
            kind=kind,
            source=source,
            agent_session=agent_session,
            grown=grown,
        )
    )


def stored(workspace: Workspace, session: str, branch: str, source: str) -> Held:
    """Returns a check whether bytes begin with what a branch's tip has stored of a source."""

    def held(data: memoryview) -> Meta | None:
        tip = workspace.store.tip(session, branch)
        if tip is None:
            return None
        name = LogName("conversation", source)
        return logs.begins(tip.log_tree, name, data, tip.objects)

    return held


def _grown(raw: bytes, known: Meta, name: str, source: str) -> Incoming:
    """Returns what follows the stored lines; they were checked when they came."""
    added = _lines(raw[known.bytes :], name, raw.count(b"\n", 0, known.bytes))

    def reread() -> bytes:
        return _lines(raw, name)

    grown = GrownSource(known.bytes, known.digest, reread)
    return Incoming(NewRecords(added, whole=False, source=source, grown=grown))


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
        members = jsontext.members(text)
    except ValueError:
        return None
    return members if members.get("messages", b"").startswith(b"[") else None


def _metadata(beside: dict[str, bytes], name: str) -> msgspec.Raw | None:
    given = beside.pop("metadata", None)
    if not beside:
        metadata = given
    else:
        inner = jsontext.members(given) if given and given.startswith(b"{") else None
        if inner is None and given is not None:
            inner = {"metadata": given}
        merged = {**beside, **(inner or {})}
        metadata = b"{%b}" % b",".join(
            msgspec.json.encode(key) + b":" + value for key, value in merged.items()
        )
    if metadata is None:
        return None
    try:
        return msgspec.Raw(msgspec.json.format(metadata, indent=-1))
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise AgentRecordError(
            f"the metadata in {name} cannot be stored: {exc}",
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


def _lines(text: bytes, name: str, before: int = 0) -> bytes:
    return b"".join(_checked(text, name, before))


def _checked(text: bytes, name: str, before: int) -> Iterator[bytes]:
    for number, line in enumerate(text.split(b"\n"), before + 1):
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
