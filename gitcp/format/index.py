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
_EXTENDED = 0x4000
# Of the second flags, which version 3 has: not checked out.
_SKIPPED = 0x4000
_U32 = 0xFFFFFFFF


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
    for path, oid, stat in ordered:
        head = layout.pack(*stat, oid, min(len(path), _NAME_MASK))
        # One to eight NULs, so that each entry ends on a multiple of eight.
        pad = 8 - (len(head) + len(path)) % 8
        pieces.append(head + path + b"\0" * pad)
    body = b"".join(pieces)
    return body + _checksum(body, form)


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


def _layout(form: ObjectFormat) -> struct.Struct:
    return struct.Struct(_ENTRY.format(form.size))


def _checksum(body: bytes, form: ObjectFormat) -> bytes:
    return hashlib.new(form.name, body, usedforsecurity=False).digest()


def trim(value: int) -> int:
    """Returns a number as the index stores it."""
    return value & _U32
