"""Writes one pack and its index, streamed (git's Documentation/gitformat-pack).

libgit2's PackBuilder holds every object in memory and `git pack-objects` needs each
written loose first; a save knows its objects as it meets them.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gitcp.format.oid import ObjectFormat
from gitcp.git.deflate import Deflater, Deflating
from gitcp.git.objects import BLOB, COMMIT, TREE

_CODES = {COMMIT: 1, TREE: 2, BLOB: 3}
_SMALL = 1024 * 1024
# After so many bytes of one pack, compression is as fast as git's.
_MUCH = 2 * 1024 * 1024
_LARGE_OFFSET = 0x80000000
_BUFFER = 1024 * 1024


class PackWriter:
    """Collects objects into `pack.tmp` of a directory; see `close`.

    `form` is that of the ids, and of the checksums of both files.
    """

    def __init__(self, directory: Path, form: ObjectFormat) -> None:
        self._form = form
        self._deflater: Deflater | None = None
        self._given = 0
        self._path = directory / "pack.tmp"
        self._file: BinaryIO | None = None
        self._at = 0
        self._entries: dict[bytes, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, oid: bytes) -> bool:
        return oid in self._entries or (
            self._deflater is not None and oid in self._deflater
        )

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def add(self, kind: str, data: bytes, oid: bytes | None = None) -> bytes:
        """Adds an object that is in memory and returns its oid."""
        oid = oid or self._form.oid(kind, data)
        if oid in self:
            return oid
        self._given += len(data)
        if self._given <= _MUCH:
            self.add_entry(oid, entry(kind, data))
            return oid
        # Merging packs does not make these smaller; git's own objects are not denser.
        if self._deflater is None:
            self._deflater = Deflater()
        head = _head(_CODES[kind], len(data))
        for done in self._deflater.take(Deflating(oid, head, data)):
            self.add_entry(done.oid, done.head + done.data)
        return oid

    def add_entry(self, oid: bytes, body: bytes) -> None:
        """Adds an object in the form that `entry` gives it."""
        if oid not in self._entries:
            self._open().write(body)
            self._entries[oid] = (self._at, zlib.crc32(body))
            self._at += len(body)

    def add_stream(self, size: int, chunks: Iterator[bytes]) -> bytes | None:
        """Adds a blob of known size; returns its oid, or None if it had another size.

        In that case the pack keeps nothing of it.
        """
        file = self._open()
        start = self._at
        digest = self._form.hasher(BLOB, size)
        deflate = zlib.compressobj(1)
        crc = 0
        seen = 0

        def put(data: bytes) -> None:
            nonlocal crc
            crc = zlib.crc32(data, crc)
            file.write(data)
            self._at += len(data)

        put(_head(_CODES[BLOB], size))
        for chunk in chunks:
            seen += len(chunk)
            if seen > size:
                break
            digest.update(chunk)
            put(deflate.compress(chunk))
        put(deflate.flush())
        oid = digest.digest()
        if seen != size or oid in self._entries:
            file.flush()
            file.seek(start)
            file.truncate()
            self._at = start
            return oid if seen == size else None
        self._entries[oid] = (start, crc)
        return oid

    def close(self) -> tuple[Path, Path, str] | None:
        """Completes pack and index; returns both and the pack's name.

        None if nothing was added. Neither is synced: `Transaction.adopt` does that once
        their times are set. The name is made of the ids, as git makes it.
        """
        deflater, self._deflater = self._deflater, None
        if deflater is not None:
            for done in deflater.finish():
                self.add_entry(done.oid, done.head + done.data)
        if self._file is None or not self._entries:
            return None
        file = self._file
        file.flush()
        file.seek(0)
        file.write(struct.pack(">4sII", b"PACK", 2, len(self._entries)))
        file.flush()
        checksum = self._checksum()
        file.seek(self._at)
        file.write(checksum)
        file.close()
        index_path = self._path.with_name("idx.tmp")
        with open(_new(index_path), "wb") as index:
            index.write(self._index(checksum))
        name = self._hash(b"".join(sorted(self._entries)))
        # The content, not only the ids, makes the name: a pack of the same objects
        # may already stand, and replacing a file under readers is not safe.
        name.update(checksum)
        return self._path, index_path, f"pack-{name.hexdigest()}"

    def abandon(self) -> None:
        """Closes the file; the transaction removes it."""
        if self._deflater is not None:
            self._deflater.abandon()
        if self._file is not None:
            self._file.close()

    def _open(self) -> BinaryIO:
        if self._file is None:
            self._file = os.fdopen(_new(self._path), "w+b", _BUFFER)
            self._file.write(b"\0" * 12)
            self._at = 12
        return self._file

    def _hash(self, data: bytes = b"") -> "hashlib._Hash":
        return hashlib.new(self._form.name, data, usedforsecurity=False)

    def _checksum(self) -> bytes:
        assert self._file is not None
        digest = self._hash()
        self._file.seek(0)
        while chunk := self._file.read(_BUFFER):
            digest.update(chunk)
        return digest.digest()

    def _index(self, pack_checksum: bytes) -> bytes:
        oids = sorted(self._entries)
        fanout = [0] * 256
        for oid in oids:
            fanout[oid[0]] += 1
        total = 0
        for byte, count in enumerate(fanout):
            total += count
            fanout[byte] = total
        offsets: list[int] = []
        large: list[int] = []
        for oid in oids:
            offset = self._entries[oid][0]
            if offset >= _LARGE_OFFSET:
                offsets.append(_LARGE_OFFSET | len(large))
                large.append(offset)
            else:
                offsets.append(offset)
        body = b"".join(
            [
                b"\377tOc",
                struct.pack(">I256I", 2, *fanout),
                *oids,
                struct.pack(f">{len(oids)}I", *(self._entries[oid][1] for oid in oids)),
                struct.pack(f">{len(oids)}I", *offsets),
                struct.pack(f">{len(large)}Q", *large),
                pack_checksum,
            ]
        )
        return body + self._hash(body).digest()


def _new(path: Path) -> int:
    """Makes a read-only file, with the permissions that the umask allows, as git does."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)


def entry(kind: str, data: bytes) -> bytes:
    """Returns an object in the form of a pack: header and compressed content."""
    level = -1 if len(data) <= _SMALL else 1
    return _head(_CODES[kind], len(data)) + zlib.compress(data, level)


def deflated_entry(kind: str, size: int, deflated: bytes) -> bytes:
    """Returns an object of some size as it stands in a pack; its content is compressed."""
    return _head(_CODES[kind], size) + deflated


def read_entry(body: bytes) -> tuple[str, bytes]:
    """Returns kind and content of what `entry` made.

    Raises:
        ValueError: the body is damaged.
    """
    at = 0
    while body[at] & 0x80:
        at += 1
    code = body[0] >> 4 & 7
    for kind, number in _CODES.items():
        if number == code:
            try:
                return kind, zlib.decompress(body[at + 1 :])
            except zlib.error as exc:
                raise ValueError(str(exc)) from exc
    raise ValueError(f"an object of kind {code}")


def _head(code: int, size: int) -> bytes:
    byte = code << 4 | size & 15
    size >>= 4
    head = bytearray()
    while size:
        head.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    head.append(byte)
    return bytes(head)
