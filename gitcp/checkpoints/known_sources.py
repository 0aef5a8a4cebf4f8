"""Tells, at a bounded cost, whether a transcript still begins with its stored content.

Each save notes the SHA-1 of each megabyte of what it stored, and the file that it came from
(derived, docs/format.md, I7: without the notes the file is compared with the segments). The
next save compares the end and, in turn, some of the rest, so that after a number of saves
all of it was compared. If the file was replaced by another one, it is compared whole
(docs/decisions/0097).
"""

import fcntl
import hashlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.errors import StorageError
from gitcp.format import tree
from gitcp.format.layout import LogName, segment_path
from gitcp.format.log import EMPTY_DIGEST, Meta, chain
from gitcp.format.oid import form_of
from gitcp.git.objects import BLOB
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint

_NAME = "transcripts"
_MOST = 500
# A longer addition does not count as one: the caller reads the whole file.
_LARGEST = 1 << 30
_BLOCK = 1 << 20
_DIGEST = 20
# How many bytes of the stored end are compared each time, and how many blocks of the
# rest.
_END = 1 << 16
_IN_TURN = 4
# After so many nanoseconds a change shows in the time stamps of any disk.
_SETTLED = 2_100_000_000
# FS_IOC_GETVERSION: a file that is made later with the same inode number has another one.
_GENERATION = 0x80087601

Stamp = tuple[int, int, int]


class KnownSource(msgspec.Struct, array_like=True, frozen=True):
    """What was stored of a file: digest and size as in `meta.json`, a digest of each block.

    The file with that `identity` began with it. `stamp` is the file's stat data, if a
    later change would show in it; `turn` is the block that the next comparison begins
    at. If it is not `exact`, only the last segment was compared with the stored one.
    """

    exact: bool
    digest: str
    size: int
    identity: tuple[int, int, int]
    stamp: Stamp | None
    blocks: bytes
    turn: int

    def is_of(self, held: Meta) -> bool:
        """Whether it describes the content with these totals."""
        count = -(-self.size // _BLOCK)
        whole = len(self.blocks) == count * _DIGEST
        return whole and (self.digest, self.size) == (held.digest, held.bytes)


class _Compared(NamedTuple):
    """Digests of blocks, the turn of the next comparison, the last block if not full."""

    blocks: bytes
    turn: int
    begun: bytes


class KnownSources:
    """The notes of one work tree about the transcripts that its saves have read."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _NAME
        self._known: dict[str, KnownSource] | None = None
        # By path: the bytes of the last block, if it is not full.
        self._begun: dict[str, bytes] = {}
        self._changed = False

    def beyond(
        self,
        path: Path,
        held: Meta,
        name: LogName,
        tip: Checkpoint,
        *,
        exact: bool = True,
        thorough: bool = False,
    ) -> bytes | None:
        """Returns what a file holds after what `tip` has of a source.

        None if it does not begin with that, or cannot be read. With `thorough` all of
        it is compared, in any case. Without `exact`, comparing the last stored segment is
        enough for a file that has no notes yet: later saves compare the file with its own
        notes.
        """
        key = os.path.abspath(path)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            fd = os.open(path, flags)
        except OSError:
            return None
        try:
            status = os.fstat(fd)
            more = status.st_size - held.bytes
            if not stat.S_ISREG(status.st_mode) or not 0 <= more <= _LARGEST:
                return None
            known = self._load().get(key)
            if known is not None and not known.is_of(held):
                known = None
            identity, stamp = _identity(fd, status), _stamp(status)
            if known is None or (thorough and not known.exact):
                exact = exact or thorough
                compare = _compare_segments if exact else _compare_last
                compared = compare(fd, held, name, tip)
            elif thorough or (known.identity, known.stamp) != (identity, stamp):
                exact = known.exact
                whole = thorough or known.identity != identity
                compared = _compare_blocks(fd, known, everything=whole)
            else:
                return _rest(fd, held, status)
            if compared is None:
                return None
            self._begun[key] = compared.begun
            note = KnownSource(
                exact,
                held.digest,
                held.bytes,
                identity,
                stamp if _is_settled(status) else None,
                compared.blocks,
                compared.turn,
            )
            self._keep(key, note)
            return _rest(fd, held, status)
        except OSError:
            return None
        finally:
            os.close(fd)

    def grew(self, path: Path, tail: bytes) -> None:
        """Notes that `tail`, the beginning of what `beyond` returned, is stored as well."""
        key = os.path.abspath(path)
        known, begun = self._load().get(key), self._begun.pop(key, None)
        if known is None or begun is None:
            return
        full = len(known.blocks) - bool(begun) * _DIGEST
        data = begun + tail
        blocks = [_sha1(data[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK)]
        grown = KnownSource(
            known.exact,
            chain(known.digest, tail),
            known.size + len(tail),
            known.identity,
            None,
            known.blocks[:full] + b"".join(blocks),
            known.turn,
        )
        self._keep(key, grown)

    def _keep(self, key: str, entry: KnownSource) -> None:
        known = self._load()
        if known.get(key) != entry:
            known.pop(key, None)
            known[key] = entry
            self._changed = True

    def _load(self) -> dict[str, KnownSource]:
        if self._known is None:
            try:
                raw = self._path.read_bytes()
                self._known = msgspec.msgpack.decode(raw, type=dict[str, KnownSource])
            except (OSError, msgspec.MsgspecError):
                self._known = {}
        return self._known

    def store(self) -> None:
        """Writes the notes for the next process; a failure costs only time."""
        if not self._changed or self._known is None:
            return
        kept = dict(list(self._known.items())[-_MOST:])
        with suppress(StorageError), durable.storage("noting what was read"):
            durable.replace(self._path, msgspec.msgpack.encode(kept), sync=False)
        self._changed = False


def ends_line(path: Path, size: int) -> bool:
    """Whether the first `size` bytes of a file end with a whole line."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"
    return False


def _compare_segments(
    fd: int, held: Meta, name: LogName, tip: Checkpoint
) -> _Compared | None:
    """Compares the beginning of a file with all segments of a source; None: it differs."""
    at = 0
    blocks: list[bytes] = []
    begun = b""
    for oid in logs.segments(tip.log_tree, name, tip.objects.tree):
        size = tip.objects.header(oid)[1]
        hashed = form_of(oid).hasher(BLOB, size)
        for data in _read(fd, at, at + size):
            hashed.update(data)
            begun += data
            while len(begun) >= _BLOCK:
                blocks.append(_sha1(begun[:_BLOCK]))
                begun = begun[_BLOCK:]
        if hashed.digest() != oid:
            return None
        at += size
    if at != held.bytes:
        return None
    if begun:
        blocks.append(_sha1(begun))
    return _Compared(b"".join(blocks), 0, begun)


def _compare_last(
    fd: int, held: Meta, name: LogName, tip: Checkpoint
) -> _Compared | None:
    """Compares a file with the last segment of a source only, and accepts the rest unread."""
    if held.segments:
        where = name.path + b"/" + segment_path(held.segments - 1)
        entry = tree.lookup(tip.log_tree, where, tip.objects.tree)
        if entry is None:
            return None
        last = tip.objects.blob(entry.oid)
        start = held.bytes - len(last)
        if start < 0 or b"".join(_read(fd, start, held.bytes)) != last:
            return None
    elif held.digest != EMPTY_DIGEST:
        return None
    blocks: list[bytes] = []
    data = b""
    for data in _read(fd, 0, held.bytes):
        blocks.append(_sha1(data))
    whole = held.bytes % _BLOCK == 0
    return _Compared(b"".join(blocks), 0, b"" if whole else data)


def _compare_blocks(
    fd: int, known: KnownSource, *, everything: bool
) -> _Compared | None:
    """Compares some blocks of a file, or all, with what they were; None: one differs."""
    count = len(known.blocks) // _DIGEST
    wanted = set(range(count))
    turn = 0
    if not everything and count > _IN_TURN:
        wanted = {(known.turn + number) % count for number in range(_IN_TURN)}
        wanted |= set(range(max(0, known.size - _END) // _BLOCK, count))
        turn = (known.turn + _IN_TURN) % count
    data = b""
    for number in sorted(wanted):
        start = number * _BLOCK
        data = b"".join(_read(fd, start, min(start + _BLOCK, known.size)))
        if _sha1(data) != known.blocks[number * _DIGEST : (number + 1) * _DIGEST]:
            return None
    return _Compared(known.blocks, turn, data if known.size % _BLOCK else b"")


def _rest(fd: int, held: Meta, status: os.stat_result) -> bytes:
    return b"".join(_read(fd, held.bytes, status.st_size))


def _read(fd: int, start: int, end: int) -> Iterator[bytes]:
    """Yields a part of a file in pieces of a block; less if the file ends before."""
    while start < end:
        size = min(_BLOCK, end - start)
        data = os.pread(fd, size, start)
        yield data
        if len(data) < size:
            return
        start += size


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _identity(fd: int, status: os.stat_result) -> tuple[int, int, int]:
    """Returns what identifies a file: device, inode number, and the inode's generation."""
    use = getattr(status, "st_birthtime_ns", 0)
    if sys.platform == "linux":
        # Not every file system has it.
        with suppress(OSError):
            raw = fcntl.ioctl(fd, _GENERATION, bytes(8))
            use = int.from_bytes(raw, sys.byteorder)
    return status.st_dev, status.st_ino, use


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_settled(status: os.stat_result) -> bool:
    return time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED
