"""Logs inside a checkpoint's tree: reads segments, appends one (docs/format.md, 6)."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from gitcp.format import log, tree
from gitcp.format.layout import FORMAT, META, LogName, segment_path
from gitcp.format.log import Meta
from gitcp.format.oid import ObjectFormat, form_of
from gitcp.format.tree import DIRECTORY, FILE, Entry, ReadTree
from gitcp.git.objects import BLOB, Objects

if TYPE_CHECKING:
    from gitcp.git.transaction import Transaction


def segments(root: bytes | None, name: LogName, read: ReadTree) -> list[bytes]:
    """Returns the oids of a source's segments in order; `root` is the `log` tree."""
    source = tree.lookup(root, name.path, read)
    if source is None or source.mode != DIRECTORY:
        return []
    oids: list[bytes] = []
    for high, entry in sorted(read(source.oid).items()):
        if high != META and entry.mode == DIRECTORY:
            oids += [low.oid for _, low in sorted(read(entry.oid).items())]
    return oids


def in_common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Returns how many segments two states of a source have in common from the start."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def segment_oid(data: bytes, form: ObjectFormat) -> bytes:
    """Returns the oid of a segment with this content."""
    return form.oid(BLOB, data)


def meta(root: bytes | None, name: LogName, objects: Objects) -> Meta | None:
    """Returns the totals of a source, or None if it has none.

    Raises:
        CorruptError: the totals are damaged.
    """
    entry = tree.lookup(root, name.path + b"/" + META, objects.tree)
    if entry is None:
        return None
    return log.decode_meta(objects.blob(entry.oid), name.path.decode())


def content(root: bytes | None, name: LogName, objects: Objects) -> bytes:
    """Returns the bytes of a source (I5).

    Raises:
        CorruptError: a segment is missing or damaged.
    """
    return b"".join(map(objects.blob, segments(root, name, objects.tree)))


def stream(root: bytes | None, name: LogName, objects: Objects) -> Iterator[bytes]:
    """Yields what `content` returns, in pieces of a few megabytes at most.

    Raises:
        CorruptError: a segment is missing or damaged.
    """
    for oid in segments(root, name, objects.tree):
        yield from objects.stream(oid)


def end_of(
    root: bytes | None, name: LogName, objects: Objects, most: int
) -> tuple[bytes, bool]:
    """Returns the last whole lines of a source, and whether that is all of it.

    Of the segments only the last ones are read, `most` bytes of each at most.

    Raises:
        CorruptError: a segment is missing or damaged.
    """
    parts: list[bytes] = []
    left = most
    whole = True
    for oid in reversed(segments(root, name, objects.tree)):
        if left <= 0:
            whole = False
            break
        tail = bytearray()
        size = 0
        for chunk in objects.stream(oid):
            size += len(chunk)
            tail += chunk
            if len(tail) > left:
                del tail[:-left]
        parts.append(bytes(tail))
        left -= len(tail)
        if size > len(tail):
            whole = False
            break
    data = b"".join(reversed(parts))
    return (data, True) if whole else (data[data.find(b"\n") + 1 :], False)


def begins(
    root: bytes | None, name: LogName, data: memoryview, objects: Objects
) -> Meta | None:
    """Returns the totals of a source if `data` begins with all of it; else None.

    Segments are compared by their ids: nothing that is stored is read.
    """
    held = meta(root, name, objects)
    if held is None or not held.bytes or held.bytes > len(data):
        return None
    at = 0
    for oid in segments(root, name, objects.tree):
        size = objects.header(oid)[1]
        if not _is_blob(oid, data[at : at + size]):
            return None
        at += size
    return held if at == held.bytes else None


def _is_blob(oid: bytes, data: memoryview) -> bool:
    """Whether bytes are those of a blob, without copying them."""
    hashed = form_of(oid).hasher(BLOB, len(data))
    hashed.update(data)
    return hashed.digest() == oid


def sources(
    root: bytes | None, log_name: str, objects: Objects
) -> Iterator[tuple[str, bytes]]:
    """Yields the ref component and the tree of each source of a log."""
    entry = tree.lookup(root, log_name.encode(), objects.tree)
    if entry is not None and entry.mode == DIRECTORY:
        for name, inner in objects.tree(entry.oid).items():
            if inner.mode == DIRECTORY:
                yield name.decode("ascii", "replace"), inner.oid


def meta_of(source: bytes, objects: Objects) -> Meta | None:
    """Returns the totals of a source by its tree.

    Raises:
        CorruptError: the totals are damaged.
    """
    entry = objects.tree(source).get(META)
    return log.decode_meta(objects.blob(entry.oid), "a source") if entry else None


class Appended(NamedTuple):
    """The result of an append: totals, changes to the `log` tree, segments dropped."""

    meta: Meta
    changes: dict[bytes, Entry | None]
    rewritten: int


class Writer:
    """Adds to the sources of a `log` tree within a transaction."""

    def __init__(self, transaction: "Transaction", root: bytes | None) -> None:
        self._transaction = transaction
        self._root = root

    def append(
        self,
        name: LogName,
        data: bytes,
        kind: str,
        agent_session: str | None = None,
    ) -> Appended | None:
        """Adds `data`, lines of records, as one segment; None if it is empty."""
        if not data:
            return None
        before = self._meta(name, kind)
        after = Meta(
            FORMAT,
            name.source,
            kind,
            before.messages + _count(data),
            before.bytes + len(data),
            before.segments + 1,
            log.chain(before.digest, data),
            agent_session or before.agent_session,
        )
        return Appended(after, self._changes(name, before.segments, data, after), 0)

    def replace(
        self,
        name: LogName,
        data: bytes,
        kind: str,
        agent_session: str | None = None,
    ) -> Appended | None:
        """Makes a source hold exactly `data`, keeping every segment that still fits.

        Returns None if it does already.
        """
        before = self._meta(name, kind)
        stored = segments(self._root, name, self._transaction.tree)
        kept, at, digest = self._fitting(stored, data, before)
        rest = data[at:]
        if kept == len(stored) and not rest and before.kind == kind:
            return None
        after = Meta(
            FORMAT,
            name.source,
            kind,
            _count(data),
            len(data),
            kept + bool(rest),
            log.chain(digest, rest) if rest else digest,
            agent_session or before.agent_session,
        )
        changes = self._changes(name, kept, rest, after)
        for number in range(kept + bool(rest), len(stored)):
            changes[name.path + b"/" + segment_path(number)] = None
        return Appended(after, changes, len(stored) - kept)

    def _fitting(
        self, stored: list[bytes], data: bytes, before: Meta
    ) -> tuple[int, int, str]:
        """Returns how many segments `data` starts with, their size and digest."""
        at = 0
        ends: list[int] = []
        view = memoryview(data)
        for oid in stored:
            _, size = self._transaction.objects.header(oid)
            if not _is_blob(oid, view[at : at + size]):
                break
            at += size
            ends.append(at)
        if len(ends) == len(stored):
            return len(ends), at, before.digest
        digest = log.EMPTY_DIGEST
        start = 0
        for end in ends:
            digest = log.chain(digest, data[start:end])
            start = end
        return len(ends), at, digest

    def _meta(self, name: LogName, kind: str) -> Meta:
        stored = meta(self._root, name, self._transaction.objects)
        return stored or log.empty_meta(name.source, kind)

    def _changes(
        self, name: LogName, number: int, data: bytes, after: Meta
    ) -> dict[bytes, Entry | None]:
        add = self._transaction.add_blob
        changes: dict[bytes, Entry | None] = {
            name.path + b"/" + META: Entry(FILE, add(log.encode_meta(after)))
        }
        if data:
            changes[name.path + b"/" + segment_path(number)] = Entry(FILE, add(data))
        return changes


def _count(data: bytes) -> int:
    """Returns the number of lines, a torn last one included."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
