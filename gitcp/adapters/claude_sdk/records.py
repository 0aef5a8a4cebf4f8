"""Encodes transcript records as lines; finds those that a source already holds."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from gitcp.errors import AgentRecordError, CorruptError, UsageError
from gitcp.format import log
from gitcp.format.layout import LogName
from gitcp.format.oid import ObjectFormat
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint

_SOURCES_IN_MEMORY = 32


class Line(NamedTuple):
    """One record: its bytes, and its uuid if it has one."""

    data: bytes
    uuid: str | None


def lines_of(entries: Iterable[Any]) -> list[Line]:
    """Returns each record as one line of JSON that reads back as the same value.

    Raises:
        UsageError: a record is not JSON.
    """
    return [Line(encode(entry) + b"\n", _uuid(entry)) for entry in entries]


def encode(entry: Any) -> bytes:
    """Returns a value as one line of JSON.

    Raises:
        UsageError: the value is not valid JSON.
    """
    # Python's own: msgspec writes no number beyond a double and no lone surrogate.
    try:
        text = json.dumps(
            entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(entry, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as exc:
        raise UsageError(
            f"a transcript record is not JSON: {exc}",
            hint="a session store takes what `json.loads` returns",
        ) from exc


def read(raw: bytes, where: str) -> list[Any]:
    """Returns the records in a source; of those with one uuid the last, at its first place.

    Raises:
        AgentRecordError: a line is not JSON.
    """
    found: list[Any] = []
    places: dict[str, int] = {}
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line:
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as exc:
            raise AgentRecordError(
                f"record {number} of {where} is not JSON: {exc}",
                hint="`gitcp messages --format jsonl` gives the bytes",
            ) from exc
        uuid = _uuid(entry)
        if uuid is not None:
            at = places.setdefault(uuid, len(found))
            if at < len(found):
                found[at] = entry
                continue
        found.append(entry)
    return found


class _Known:
    """The state of a source: its digest, its segments, and each uuid's last record."""

    def __init__(self) -> None:
        self.digest = log.EMPTY_DIGEST
        self.segments: list[bytes] = []
        self.records: dict[str, bytes] = {}

    def add(self, oid: bytes, digest: str, lines: Iterable[Line]) -> None:
        """Adds a segment."""
        self.segments.append(oid)
        self.digest = digest
        for line in lines:
            if line.uuid is not None:
                self.records[line.uuid] = _content(line.data)


class Seen:
    """Remembers what sources hold, so that an append need not read them again.

    What other processes added is read, and nothing else: the digest of the source says
    whether there is anything.
    """

    def __init__(self, form: ObjectFormat) -> None:
        self._form = form
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    def new(
        self, session: str, source: str, tip: Checkpoint | None, lines: Iterable[Line]
    ) -> list[Line]:
        """Returns the lines that a source does not hold: no uuid, or another content."""
        records = self._at(session, source, tip).records
        fresh: list[Line] = []
        among: dict[str, bytes] = {}
        for line in lines:
            if line.uuid is not None:
                content = _content(line.data)
                if among.get(line.uuid, records.get(line.uuid)) == content:
                    continue
                among[line.uuid] = content
            fresh.append(line)
        return fresh

    def added(self, session: str, source: str, lines: list[Line]) -> None:
        """Notes the lines that an append has put at the end, as one segment."""
        known = self._known.get((session, source))
        if known is not None:
            data = b"".join(line.data for line in lines)
            oid = logs.segment_oid(data, self._form)
            known.add(oid, log.chain(known.digest, data), lines)

    def _at(self, session: str, source: str, tip: Checkpoint | None) -> _Known:
        """Returns what a source holds in a checkpoint."""
        name = LogName("conversation", source)
        meta = None if tip is None else logs.meta(tip.log_tree, name, tip.objects)
        known = self._known.pop((session, source), None) or _Known()
        if tip is None or meta is None:
            known = _Known()
        elif meta.digest != known.digest:
            known = _caught_up(known, tip, name, meta.digest)
        self._known[session, source] = known
        while len(self._known) > _SOURCES_IN_MEMORY:
            self._known.popitem(last=False)
        return known


def _caught_up(known: _Known, tip: Checkpoint, name: LogName, digest: str) -> _Known:
    stored = logs.segments(tip.log_tree, name, tip.objects.tree)
    count = len(known.segments)
    if stored[:count] != known.segments:
        known, count = _Known(), 0
    for oid in stored[count:]:
        # A segment of ours holds whole lines.
        lines = (
            Line(line + b"\n", _uuid_in(line, tip))
            for line in tip.objects.blob(oid).split(b"\n")
            if line
        )
        known.add(oid, known.digest, lines)
    known.digest = digest
    return known


class _Identified(msgspec.Struct):
    uuid: str | None = None


_QUICK = msgspec.json.Decoder(_Identified)


def _uuid_in(line: bytes, tip: Checkpoint) -> str | None:
    # Many times faster; what msgspec does not read takes the slow way.
    with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
        return _QUICK.decode(line).uuid
    try:
        return _uuid(json.loads(line))
    except (ValueError, RecursionError) as exc:
        raise CorruptError(
            f"{tip.session} holds a record that is not JSON: {exc}",
            hint="run `gitcp verify`",
        ) from exc


def _uuid(entry: Any) -> str | None:
    found = entry.get("uuid") if isinstance(entry, dict) else None
    return found if isinstance(found, str) else None


def _content(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()
