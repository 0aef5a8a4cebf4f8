"""Git's index file, version 2: written for `git diff-files`, read back as bytes.

The private index is gitcp's stat cache (docs/format.md, I7). Writing it here, with
the stat data taken while the content was read, means that no file is read twice.
Source: git's Documentation/gitformat-index.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gitcp.format.oid import SHA1, ObjectFormat

_HEAD = struct.Struct(">4sII")
_ENTRY = ">10I{}sH"
_NAME_MASK = 0xFFF
_PADS = [b"\0" * (8 - over) for over in range(8)]
_EXTENDED = 0x4000
# Of the second flags, which version 3 has: not checked out.
_SKIPPED = 0x4000
_U32 = 0xFFFFFFFF
_MODES = frozenset({0o100644, 0o100755, 0o120000})


class Stat(NamedTuple):
    """The stat data git compares, each truncated to 32 bits; times split in two."""

    ctime: int
    ctime_ns: int
    mtime: int
    mtime_ns: int
    device: int
    inode: int
    mode: int
    uid: int
    gid: int
    size: int


class IndexEntry(NamedTuple):
    """One path of the index; `stat.mode` is the tree mode."""

    path: bytes
    oid: bytes
    stat: Stat


def encode(entries: Iterable[IndexEntry], form: ObjectFormat = SHA1) -> bytes:
    """Returns the bytes of an index file; `entries` in any order, paths unique."""
    layout = _layout(form)
    ordered = sorted(entries, key=lambda entry: entry.path)
    pieces = [_HEAD.pack(b"DIRC", 2, len(ordered))]
    pieces += [_entry(entry, layout) for entry in ordered]
    body = b"".join(pieces)
    return body + _checksum(body, form)


def _entry(entry: IndexEntry, layout: struct.Struct) -> bytes:
    path, oid, stat = entry
    size = len(path)
    head = layout.pack(*stat, oid, min(_NAME_MASK, size))
    # One to eight NULs, so that each entry ends on a multiple of eight.
    return head + path + _PADS[(layout.size + size) % 8]


def encode_skipped(
    entries: Mapping[bytes, tuple[int, bytes]], form: ObjectFormat = SHA1
) -> bytes:
    """Returns an index, of version 3, of paths that are not checked out: mode and oid."""
    layout = _layout(form)
    pieces = [_HEAD.pack(b"DIRC", 3, len(entries))]
    for path, (mode, oid) in sorted(entries.items()):
        stat = Stat(0, 0, 0, 0, 0, 0, mode, 0, 0, 0)
        flags = _EXTENDED | min(len(path), _NAME_MASK)
        head = layout.pack(*stat, oid, flags) + _SKIPPED.to_bytes(2)
        pad = 8 - (len(head) + len(path)) % 8
        pieces.append(head + path + b"\0" * pad)
    body = b"".join(pieces)
    return body + _checksum(body, form)


def decode(raw: bytes, form: ObjectFormat = SHA1) -> Iterator[IndexEntry]:
    """Yields the entries of an index file written by `encode`.

    Raises:
        ValueError: the file is damaged, or of another version.
    """
    layout = _layout(form)
    magic, version, count = _HEAD.unpack_from(raw)
    if magic != b"DIRC" or version != 2:  # noqa: PLR2004  the version
        raise ValueError("not an index of version 2")
    at = _HEAD.size
    for _ in range(count):
        *numbers, oid, flags = layout.unpack_from(raw, at)
        if flags & _EXTENDED:
            raise ValueError("unexpected extended entry")
        start = at + layout.size
        end = raw.index(b"\0", start)
        yield IndexEntry(raw[start:end], oid, Stat(*numbers))
        at = end + 8 - (end - at) % 8


def part(
    raw: bytes, at: int, count: int, form: ObjectFormat = SHA1
) -> tuple[list[IndexEntry], int]:
    """Returns up to `count` whole entries of a piece of an index, and how long they are.

    `raw` was read from the byte `at`; with 0 it begins with the header. What is no entry,
    such as the checksum at the end, ends the list.
    """
    layout = _layout(form)
    found: list[IndexEntry] = []
    here = 0 if at else _HEAD.size
    while len(found) < count and here + layout.size + 1 < len(raw):
        *numbers, oid, flags = layout.unpack_from(raw, here)
        start = here + layout.size
        length = flags & _NAME_MASK
        end = start + length if length < _NAME_MASK else raw.find(b"\0", start)
        after = end + 8 - (end - here) % 8
        if end < start or after > len(raw) or raw[end] or numbers[6] not in _MODES:
            break
        found.append(IndexEntry(raw[start:end], oid, Stat(*numbers)))
        here = after
    return found, here


def merged(
    raw: bytes, changes: Mapping[bytes, IndexEntry | None], form: ObjectFormat = SHA1
) -> bytes:
    """Returns an index with entries added or replaced, and taken out where one is None.

    What does not change is copied, not taken apart. Of a file and a directory under one
    name the directory stays.

    Raises:
        ValueError: the index is damaged, or of another version.
    """
    magic, version, total = _HEAD.unpack_from(raw)
    if magic != b"DIRC" or version != 2:  # noqa: PLR2004  the version
        raise ValueError("not an index of version 2")
    if not total:
        return _only(changes, form)
    merging = _Merging(raw, changes, form)
    for _ in range(total):
        merging.step()
    return merging.end()


def _only(changes: Mapping[bytes, IndexEntry | None], form: ObjectFormat) -> bytes:
    """Returns an index of the entries that are to be added."""
    added = {path: entry for path, entry in changes.items() if entry is not None}
    for above in _holding(added):
        added.pop(above, None)
    return encode(added.values(), form)


def _holding(paths: Iterable[bytes]) -> set[bytes]:
    """Returns the directories above some paths."""
    holding = {path.rpartition(b"/")[0] for path in paths}
    return {above for path in holding for above in (path, *_parents(path))}


class _Merging:
    """The walk through an index that `merged` makes; `count` is of the entries to write."""

    def __init__(
        self, raw: bytes, changes: Mapping[bytes, IndexEntry | None], form: ObjectFormat
    ) -> None:
        self._raw = raw
        self._changes = changes
        self._form = form
        self._layout = _layout(form)
        self._flags = self._layout.size - 2
        self._next = sorted(changes, reverse=True)
        self._above = _holding(
            path for path, entry in changes.items() if entry is not None
        )
        # Where the pieces of added entries are, by path.
        self._added: dict[bytes, int] = {}
        self._pieces: list[bytes] = []
        self._at = self._from = _HEAD.size
        self._directory = b""
        self._count = 0

    def step(self) -> None:
        """Takes the next entry over, after those that come before it."""
        raw, at = self._raw, self._at
        flags = raw[at + self._flags] << 8 | raw[at + self._flags + 1]
        if flags & _EXTENDED:
            raise ValueError("unexpected extended entry")
        start = at + self._layout.size
        length = flags & _NAME_MASK
        end = start + length if length < _NAME_MASK else raw.index(b"\0", start)
        path = raw[start:end]
        self._at = end + 8 - (end - at) % 8
        ahead = self._next
        if (ahead and ahead[-1] <= path) or path in self._above:
            self._pieces.append(raw[self._from : at])
            self._from = at
            while ahead and ahead[-1] < path:
                self._add(ahead.pop())
            if ahead and ahead[-1] == path:
                self._add(ahead.pop())
                self._from = self._at
                return
            if path in self._above:
                self._from = self._at
                return
        directory = path.rpartition(b"/")[0]
        if directory != self._directory:
            self._directory = directory
            self._drop_above(path)
        self._count += 1

    def _add(self, path: bytes) -> None:
        entry = self._changes[path]
        if entry is None or path in self._above:
            return
        self._added[path] = len(self._pieces)
        self._pieces.append(_entry(entry, self._layout))
        self._count += 1

    def _drop_above(self, path: bytes) -> None:
        """Takes out added files in place of the directories of a path that is there."""
        for above in _parents(path):
            if self._changes.get(above) is None:
                continue
            self._above.add(above)
            place = self._added.pop(above, None)
            if place is not None:
                self._pieces[place] = b""
                self._count -= 1

    def end(self) -> bytes:
        """Returns the index with what is still to be added."""
        self._pieces.append(self._raw[self._from : self._at])
        while self._next:
            self._add(self._next.pop())
        head = _HEAD.pack(b"DIRC", 2, self._count)
        body = b"".join([head, *self._pieces])
        return body + _checksum(body, self._form)


def _parents(path: bytes) -> Iterator[bytes]:
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)


def _layout(form: ObjectFormat) -> struct.Struct:
    return struct.Struct(_ENTRY.format(form.size))


def _checksum(body: bytes, form: ObjectFormat) -> bytes:
    return hashlib.new(form.name, body, usedforsecurity=False).digest()


def trim(value: int) -> int:
    """Returns a number as the index stores it."""
    return value & _U32
