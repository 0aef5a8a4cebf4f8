"""Reads the records that agents' transcripts have gained since the last checkpoint.

The cost of a save depends on the added records: `known_sources` tells whether a file still
begins as it was stored. Only after a compaction and at a session's end is all compared.
"""

import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

from gitcp import durable, notices
from gitcp.checkpoints.known_sources import KnownSources
from gitcp.clients.client import Client, Event, Source, whole_lines
from gitcp.format.layout import LogName
from gitcp.format.log import Meta
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import GrownSource, NewRecords

_PATIENCE = 3.0
_PAUSE = 0.005
_TAIL = 1 << 18
_LARGEST = 1 << 30


class Gathered(NamedTuple):
    """Records to store, and whether they hold any messages."""

    records: tuple[NewRecords, ...]
    has_messages: bool


def gather(
    client: Client,
    event: Event,
    source: str,
    tip: Checkpoint | None,
    known: KnownSources,
    *,
    thorough: bool = False,
) -> Gathered:
    """Returns the records in a conversation's files that a checkpoint does not hold.

    Waits, for at most three seconds, until the client has written the event's records.
    """
    settle(client, event, source, tip)
    gathered: list[NewRecords] = []
    has_messages = False
    for one in client.sources(event):
        name = f"{source}/{one.name}" if one.name else source
        records = _records(client, event, one, name, tip, known, thorough=thorough)
        if records is not None:
            gathered.append(records)
            has_messages = has_messages or client.has_messages(
                _new_in(records, one, tip)
            )
    known.store()
    return Gathered(tuple(gathered), has_messages)


def settle(client: Client, event: Event, source: str, tip: Checkpoint | None) -> None:
    """Waits until the transcript holds the event's records, or three seconds are over."""
    path = event.subagent or event.transcript
    if path is None:
        return
    name = source
    if event.subagent is not None:
        name = f"{source}/{event.subagent.name}"
    held = meta(tip, name)
    at = held.bytes if held else 0
    deadline = time.monotonic() + _PATIENCE
    size = -1
    while True:
        now = _size(path)
        if now != size:
            size = now
            tail = read(path, at)
            if not tail and tip is not None and tip.trailers.trigger == event.what:
                # Another hook for the same event was faster, and has stored the records.
                tail = read(path, max(0, at - _TAIL))
            if client.is_flushed(event, tail):
                return
        if time.monotonic() > deadline:
            return
        time.sleep(_PAUSE)


def note(path: Path, record: bytes) -> None:
    """Appends a record to a transcript that gitcp writes for a client without its own.

    Uses a single write, so that records of concurrent hooks do not mix.

    Raises:
        StorageError: the transcript cannot be written.
    """
    with durable.storage("writing down what the agent's hook said"):
        durable.make_directories(path.parent, private=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, record)
        finally:
            os.close(file)


def meta(tip: Checkpoint | None, source: str) -> Meta | None:
    """Returns a checkpoint's metadata of a source, or None."""
    if tip is None:
        return None
    return logs.meta(tip.log_tree, LogName("conversation", source), tip.objects)


def _new_in(records: NewRecords, one: Source, tip: Checkpoint | None) -> bytes:
    """Returns the bytes that a checkpoint lacks; all bytes of a file that was rewritten."""
    if not records.whole or tip is None or one.path is None:
        return records.data
    name = LogName("conversation", records.source)
    # All of it was read, so a change in the middle counts as new, too.
    held = logs.begins(tip.log_tree, name, memoryview(records.data), tip.objects)
    if held is None:
        held = meta(tip, records.source)
        if held is None or held.agent_session == records.agent_session:
            return records.data
        # A copy that a restore wrote: only its id is another one.
    return (
        records.data[held.bytes :] if held.bytes <= len(records.data) else records.data
    )


def _records(
    client: Client,
    event: Event,
    one: Source,
    name: str,
    tip: Checkpoint | None,
    known: KnownSources,
    *,
    thorough: bool,
) -> NewRecords | None:
    def made(
        data: bytes, *, whole: bool, grown: GrownSource | None = None
    ) -> NewRecords:
        return NewRecords(
            data,
            whole=whole,
            kind=client.name,
            source=name,
            agent_session=event.session,
            beside=bool(one.name),
            grown=grown,
        )

    if one.path is None:
        return made(one.content, whole=True) if one.content is not None else None
    path, lines = one.path, not one.name or one.path.suffix == ".jsonl"

    def reread() -> bytes:
        raw = read(path)
        return whole_lines(raw) if lines else raw

    held = meta(tip, name)
    where = LogName("conversation", name)
    more = None
    if held is not None and tip is not None and lines:
        # A copy that a restore wrote differs at its beginning: it has an id of its own.
        copy = held.agent_session != event.session
        more = known.beyond(path, held, where, tip, exact=copy, thorough=thorough)
    if held is None or more is None:
        data = reread()
        # If a file is gone, its stored content stays.
        return made(data, whole=True) if data else None
    tail = whole_lines(more)
    if not tail:
        return None
    known.grew(path, tail)
    return made(tail, whole=False, grown=GrownSource(held.bytes, held.digest, reread))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def read(path: Path, start: int = 0, size: int = -1) -> bytes:
    """Returns the bytes of a file from an offset on; empty if the file cannot be read.

    Reads a regular file only, up to its present size: the path that a client names as its
    transcript may be a device or a pipe, which has no end.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                notices.tell(
                    f"the transcript {path} is not a regular file; it was not read"
                )
                return b""
            left = max(0, status.st_size - start)
            if left > _LARGEST:
                notices.tell(
                    f"the transcript {path} is larger than 1 GiB; it was not read"
                )
                return b""
            file.seek(start)
            return file.read(left if size < 0 else min(left, size))
    except OSError:
        return b""
