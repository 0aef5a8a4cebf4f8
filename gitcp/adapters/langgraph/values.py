"""Stores one channel's value as a log: an update writes what it adds (docs/format.md, 15)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from gitcp.adapters.langgraph.msgpack_split import head_length, split
from gitcp.errors import UsageError
from gitcp.format import layout, log, tree
from gitcp.format.layout import FORMAT, LogName
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.names import encode
from gitcp.store import logs
from gitcp.wal.record_sink import RecordSink

# Below this a value stands in the event itself.
INLINE = 1024
# This many small segments at the end become one: reading stays cheap, and each byte
# is written a few times at most.
_TAIL = 16
# A list that comes whole is cut into pieces of about this size: one that lost its
# first messages keeps the others' objects.
_PIECE = 8 * 1024
# Not more than a piece, or pieces would be merged again and again.
_SMALL = _PIECE
# A piece that moved is looked for only if finding it is worth a segment.
_WORTH = 256
_MISSES = 4

ReadBlob = Callable[[bytes], bytes]


class Segment(NamedTuple):
    """A piece of a body; `digest` is the log's digest up to and with it."""

    oid: bytes
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Value:
    """A serialized value: `head + body`; without a tree it is kept in the event."""

    kind: str
    head: bytes
    body: bytes
    segments: tuple[Segment, ...] = ()
    tree: bytes | None = None

    @property
    def data(self) -> bytes:
        """The bytes as the serializer made them."""
        return self.head + self.body if self.head else self.body


def encode_value(
    name: str, kind: str, data: bytes, before: Value | None, sink: RecordSink
) -> Value:
    """Returns a value as it is to be stored, adding what `before` does not have."""
    if len(data) < INLINE or not _nameable(name):
        return Value(kind, b"", data)
    head = data[: head_length(data)] if kind == "msgpack" else b""
    body = data[len(head) :]
    if before is None or before.tree is None:
        before = None
    elif (before.kind, before.body) == (kind, body):
        return Value(kind, head, before.body, before.segments, before.tree)
    segments = _segments(body, before, sink, items=bool(head))
    return Value(kind, head, body, segments, _tree(name, kind, body, segments, sink))


def load_value(
    name: str,
    kind: str,
    head: bytes,
    log_tree: bytes | None,
    read: tree.ReadTree,
    blob: ReadBlob,
) -> Value:
    """Reads a value that is kept as a log."""
    source = LogName(layout.GRAPH, name)
    entry = tree.lookup(log_tree, source.path, read)
    digest = log.EMPTY_DIGEST
    pieces: list[bytes] = []
    segments: list[Segment] = []
    for oid in logs.segments(log_tree, source, read):
        piece = blob(oid)
        digest = log.chain(digest, piece)
        pieces.append(piece)
        segments.append(Segment(oid, len(piece), digest))
    held = entry.oid if entry is not None else None
    return Value(kind, head, b"".join(pieces), tuple(segments), held)


def load_data(
    name: str,
    head: bytes,
    log_tree: bytes | None,
    read: tree.ReadTree,
    blob: ReadBlob,
) -> bytes:
    """Reads only the bytes of a value: what is needed to show it."""
    oids = logs.segments(log_tree, LogName(layout.GRAPH, name), read)
    return head + b"".join(map(blob, oids))


def _nameable(name: str) -> bool:
    try:
        encode(name)
    except UsageError:
        return False
    return True


def _segments(
    body: bytes, before: Value | None, sink: RecordSink, *, items: bool
) -> tuple[Segment, ...]:
    kept: list[Segment] = []
    at = 0
    rest: list[bytes | Segment] = []
    if before is not None:
        for segment in before.segments:
            end = at + segment.size
            if body[at:end] != before.body[at:end]:
                break
            kept.append(segment)
            at = end
        rest = list(_moved(body, at, before, len(kept), at))
    elif body:
        rest = [body]
    kept, rest = _merged(kept, rest, body)
    if items:
        rest = [
            part
            for piece in rest
            for part in (
                [piece] if isinstance(piece, Segment) else split(piece, _PIECE)
            )
        ]
    digest = kept[-1].digest if kept else log.EMPTY_DIGEST
    at = sum(segment.size for segment in kept)
    for piece in rest:
        size = piece.size if isinstance(piece, Segment) else len(piece)
        data = body[at : at + size]
        digest = log.chain(digest, data)
        oid = piece.oid if isinstance(piece, Segment) else sink.add_blob(data)
        kept.append(Segment(oid, size, digest))
        at += size
    return tuple(kept)


def _moved(
    body: bytes, at: int, before: Value, number: int, start: int
) -> "list[bytes | Segment]":
    """Returns the rest of a body as pieces: those found elsewhere keep their object.

    If a list lost its first elements the others stand further to the front.
    """
    pieces: list[bytes | Segment] = []
    misses = 0
    for segment in before.segments[number:]:
        old = before.body[start : start + segment.size]
        start += segment.size
        if segment.size < _WORTH:
            continue
        offset = body.find(old, at)
        if offset < 0:
            misses += 1
            if misses == _MISSES:
                break
            continue
        if offset > at:
            pieces.append(body[at:offset])
        pieces.append(segment)
        at = offset + segment.size
    if at < len(body):
        pieces.append(body[at:])
    return pieces


def _merged(
    kept: list[Segment], rest: list[bytes | Segment], body: bytes
) -> tuple[list[Segment], list[bytes | Segment]]:
    """Makes one segment of the small ones at the end, once there are many."""
    sizes = [segment.size for segment in kept]
    sizes += [
        piece.size if isinstance(piece, Segment) else len(piece) for piece in rest
    ]
    small = 0
    while small < len(sizes) and sizes[-1 - small] < _SMALL:
        small += 1
    if small < _TAIL:
        return kept, rest
    first = len(sizes) - small
    at = sum(sizes[:first])
    return kept[:first], [*rest[: max(0, first - len(kept))], body[at:]]


def _tree(
    name: str, kind: str, body: bytes, segments: tuple[Segment, ...], sink: RecordSink
) -> bytes:
    digest = segments[-1].digest if segments else log.EMPTY_DIGEST
    meta = log.Meta(FORMAT, name, kind, 0, len(body), len(segments), digest)
    entries = {layout.META: Entry(FILE, sink.add_blob(log.encode_meta(meta)))}
    step = layout.SEGMENTS_PER_DIRECTORY
    for start in range(0, len(segments), step):
        inner = {
            layout.segment_path(start + number).rpartition(b"/")[2]: Entry(
                FILE, segment.oid
            )
            for number, segment in enumerate(segments[start : start + step])
        }
        high = layout.segment_path(start).partition(b"/")[0]
        held = sink.add_tree(inner)
        entries[high] = Entry(DIRECTORY, held)
    return sink.add_tree(entries)
