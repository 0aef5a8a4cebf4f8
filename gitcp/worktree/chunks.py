"""Splits large files into chunks at boundaries set by their content, and stores new ones."""

import io
import os
import time
from collections.abc import Callable, Iterator, Mapping

from gitcp.errors import StorageError
from gitcp.format import chunked
from gitcp.format.checkpoint import show_path
from gitcp.format.chunked import ChunkedName
from gitcp.format.tree import DIRECTORY, Entry
from gitcp.git.transaction import Transaction

# Bytes a second, on a slow machine.
_SPEED = 25_000_000
# Bytes of a chunk. Smaller ones cost more names, larger ones more bytes for each change.
_LEAST, _USUAL, _MOST = 4 << 10, 16 << 10, 64 << 10


class ChunkWriter:
    """Stores files above a size in chunks; 0 stores none that way.

    `lists` are the chunk lists that the work tree had before. It trusts no others: a
    checkpoint made elsewhere may list, under the id of a content, chunks of another
    one.
    """

    def __init__(
        self,
        transaction: Transaction,
        above: int,
        deadline: float | None = None,
        lists: bytes | None = None,
    ) -> None:
        self._transaction = transaction
        self._objects = transaction.objects
        self._above = above
        self._deadline = deadline
        self._own: dict[bytes, tuple[ChunkedName, bytes]] = {}
        for path, entry in (self._objects.tree(lists) if lists else {}).items():
            name = ChunkedName.parse(path)
            if name is not None:
                self._own[name.content] = name, entry.oid

    def wants(self, size: int) -> bool:
        """Whether a file of so many bytes is stored in chunks."""
        return 0 < self._above < size

    def whole_up_to(self, limit: int) -> int:
        """Returns up to which size a file is stored as it is, if none may be above `limit`."""
        return min(limit, self._above) if self._above > 0 else limit

    def holds(self, content: bytes) -> bool:
        """Whether a content is stored in chunks already."""
        return content in self._own

    def only_elsewhere(self, content: bytes) -> bool:
        """Whether only a list that is not the work tree's has a content in chunks."""
        return content in self._objects.chunked and content not in self._own

    def file(self, content: bytes) -> tuple[ChunkedName, bytes]:
        """Returns the id and the chunk list of a content that is stored in chunks."""
        return self._own[content]

    def in_time(self, status: os.stat_result) -> bool:
        """Whether a new file can be stored before the deadline, by a cautious estimate."""
        if self._deadline is None:
            return True
        return time.monotonic() + status.st_size / _SPEED < self._deadline

    def check_room(self, path: bytes, size: int) -> None:
        """Raises if a new file is larger than the free space on the repository's disk.

        Raises:
            StorageError: there is not enough room.
        """
        disk = os.statvfs(self._transaction.repository.common_dir)
        free = disk.f_bavail * disk.f_frsize
        if size > free:
            raise StorageError(
                f"{show_path(path)} has {size:,} bytes, and the disk of the repository"
                f" has {free:,} left",
                hint="free some space, or exclude it with `gitcp config exclude`",
            )

    @staticmethod
    def must_have(data: bytes) -> bool:
        """Whether a small file would be taken for a pointer if it were stored as it is."""
        return data.startswith(chunked.MAGIC)

    def write(self, content: Iterator[bytes], size: int) -> bytes | None:
        """Stores a file; returns the id of its content, None if it had another size.

        Raises:
            CorruptError: an object that is stored already cannot be read.
        """
        digest = self._objects.form.hasher("blob", size)
        found = 0

        def counted() -> Iterator[bytes]:
            nonlocal found
            for piece in content:
                found += len(piece)
                digest.update(piece)
                yield piece

        chunks = [self._store(chunk) for chunk in _cut(counted())]
        if found != size:
            return None
        name = ChunkedName(digest.digest(), size)
        if name.content not in self._own:
            root = chunked.write_list(chunks, self._transaction.add_tree)
            self._own[name.content] = name, root
            self._objects.chunked.add(name, root)
        self._transaction.add_blob(name.pointer)
        return name.content

    def listed(
        self, large: Mapping[bytes, bytes], entry: Callable[[bytes], Entry | None]
    ) -> tuple[dict[bytes, bytes], bytes | None]:
        """Returns which paths are still chunked files, and the tree of their lists.

        `large` has the contents by path, `entry` returns what a tree of files has at one.
        """
        kept: dict[bytes, bytes] = {}
        lists: dict[bytes, Entry] = {}
        for path, content in large.items():
            there = entry(path)
            if there is not None and there.oid == content and content in self._own:
                kept[path] = content
                name, root = self._own[content]
                lists[name.path] = Entry(DIRECTORY, root)
        return kept, self._transaction.add_tree(lists) if lists else None

    def _store(self, chunk: memoryview) -> bytes:
        data = bytes(chunk)
        oid = self._objects.form.oid("blob", data)
        if oid not in self._transaction and not self._objects.exists(oid):
            self._transaction.add_blob(data, oid)
        return oid


def _cut(content: Iterator[bytes]) -> Iterator[memoryview]:
    # Only for large files: not at every start.
    from pyfastcdc import FastCDC  # noqa: PLC0415

    cutter = FastCDC(_USUAL, min_size=_LEAST, max_size=_MOST)
    for chunk in cutter.cut_stream(_Stream(content)):
        yield chunk.data


class _Stream(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fills a buffer as far as one piece goes."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
