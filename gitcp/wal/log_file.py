"""The write-ahead log: objects and ref updates not in git yet (docs/format.md, 16).

A pack and a ref cost eight syncs, one record costs one. Records are durable when they
are acknowledged; settling puts many of them into git as one pack.
"""

import errno
import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp import at_fork, durable
from gitcp.errors import BusyError, CorruptError
from gitcp.git.repository import Repository

REDO = "redo"
# Where what is damaged is kept for a person to look at.
DAMAGED = "damaged"
SUFFIX = ".redo"
_HEAD = struct.Struct(">4sII")
_MAGIC = b"GCR1"
_SECTOR = 512


class RefMove(msgspec.Struct, frozen=True, array_like=True):
    """A ref goes from `expect` (None: it is new) to `new`; both in hex."""

    ref: str
    expect: str | None
    new: str


class LogRecord(msgspec.Struct, frozen=True, array_like=True):
    """One appended record: ref updates in order, and the objects that they need.

    `objects` are pairs of oid and the object as it stands in a pack. `synced` is how
    many bytes of the file were durable for certain when it was written. `end` is the
    last byte, and not zero: a last sector of zeros was lost, not written.
    """

    moves: tuple[RefMove, ...]
    objects: tuple[tuple[bytes, bytes], ...]
    synced: int = 0
    end: bool = True


class DamagedLogError(CorruptError):
    """The log is damaged after an acknowledged write, or was not written by gitcp."""


class ReadRecord(NamedTuple):
    """A record and the offset behind it."""

    record: LogRecord
    end: int


class LogFile:
    """The redo log of one session: a file, and the lock on it.

    One object serves one thread at a time, and one process: after a fork the
    descriptor is opened again, because a flock is otherwise shared with the child.
    """

    def __init__(self, repository: Repository, name: str) -> None:
        self._fd = -1
        self.path = directory(repository) / f"{name}{SUFFIX}"
        self._repository = repository
        self._owner = 0
        self.generation = 0
        # Up to where this process knows the file to be whole.
        self.known = 0
        # Whether this object has added to the file.
        self.wrote = False
        self._synced = 0

    def __del__(self) -> None:
        # A program that opens its store again and again would run out of descriptors.
        self.close()

    @contextmanager
    def locked(self, *, timeout: float) -> Iterator[None]:
        """Holds the log's lock; see `acquire`."""
        self.acquire(timeout=timeout)
        try:
            yield
        finally:
            if self._fd >= 0 and self._owner == os.getpid():
                with suppress(OSError):
                    fcntl.flock(self._fd, fcntl.LOCK_UN)

    def acquire(self, *, timeout: float) -> None:
        """Takes the lock; the file is there and is the one that others see.

        `generation` has changed if it is another file than last time.

        Raises:
            BusyError: another process kept it.
            StorageError: the disk refused.
        """
        with durable.storage("opening the redo log"):
            acquired = durable.until(self._take, timeout=timeout)
        if acquired is None:
            raise BusyError(
                f"the redo log {self.path.name} is in use by another process",
                hint="wait for it to end, then try again",
            )

    def _take(self) -> bool | None:
        if self._fd >= 0 and self._owner != os.getpid():
            # The parent's lock is on this descriptor too.
            self.close()
        if self._fd < 0:
            with at_fork.opening():
                self._fd = self._open()
                at_fork.withhold(self._fd)
            self._owner = os.getpid()
            self.generation += 1
            self.known = self._synced = 0
            self.wrote = False
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        try:
            same = durable.names(self.path, self._fd)
        except FileNotFoundError:
            same = False
        if same:
            return True
        # Settled by another process, which has removed the file.
        self.close()
        return self._take()

    def _open(self) -> int:
        self._repository.make_directory(self.path.parent)
        try:
            return durable.open_own(self.path, os.O_RDWR)
        except OSError as exc:
            if exc.errno not in {errno.EROFS, errno.EACCES} or not self.exists():
                raise
            # A reader can do without writing.
            return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def exists(self) -> bool:
        """Whether there is a file; looking makes none."""
        return self.path.exists()

    @property
    def opened(self) -> bool:
        """Whether this object holds the file open."""
        return self._fd >= 0

    @property
    def empty(self) -> bool:
        """Whether nothing was ever appended to the file; it is open."""
        return os.fstat(self._fd).st_size == 0

    def close(self) -> None:
        """Releases the lock on the file."""
        # In this order: a process that is forked meanwhile closes its own copy at most.
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                durable.close(fd)

    # --- under the lock -----------------------------------------------------------

    def news(self) -> Iterator[ReadRecord]:
        """Yields the records that this object has neither written nor read yet.

        A torn record at the end was never acknowledged: it is removed.

        Raises:
            DamagedLogError: a record is damaged that may have been acknowledged.
        """
        size = os.fstat(self._fd).st_size
        while self.known < size:
            read = self._record(self.known, size)
            if read is None:
                self._refuse_damage(size)
                # Who may only look leaves it; a writer overwrites it.
                with suppress(OSError):
                    os.ftruncate(self._fd, self.known)
                return
            self.known = read.end
            yield read

    def _record(self, at: int, size: int) -> ReadRecord | None:
        head = os.pread(self._fd, _HEAD.size, at)
        if len(head) < _HEAD.size:
            return None
        magic, length, crc = _HEAD.unpack(head)
        if magic != _MAGIC or at + _HEAD.size + length > size:
            return None
        payload = _pread(self._fd, length, at + _HEAD.size)
        if zlib.crc32(payload) != crc:
            return None
        try:
            record = msgspec.msgpack.decode(payload, type=LogRecord)
        except (msgspec.MsgspecError, UnicodeError) as exc:
            raise self._damaged(at, str(exc)) from exc
        return ReadRecord(record, at + _HEAD.size + length)

    def _refuse_damage(self, size: int) -> None:
        """Raises unless the rest of the file, from `known` on, was never acknowledged.

        What a power cut leaves is short, or lacks whole sectors, which read as zeros.
        A record behind it tells whether it was durable once.
        """
        at = self.known
        rest = _pread(self._fd, size - at, at)
        behind = list(self._behind(rest, at))
        if any(record.synced > at for record in behind):
            raise self._damaged(at, "the records after it are complete")
        if not behind and not _is_torn(rest, at):
            raise self._damaged(at, "its checksum does not match")

    def _behind(self, rest: bytes, at: int) -> Iterator[LogRecord]:
        """Yields the whole records that begin somewhere in `rest`, which is at `at`."""
        later = rest.find(_MAGIC, 1)
        while later >= 0:
            with suppress(DamagedLogError):
                read = self._record(at + later, at + len(rest))
                if read is not None:
                    yield read.record
            later = rest.find(_MAGIC, later + 1)

    def _damaged(self, at: int, why: str) -> DamagedLogError:
        return DamagedLogError(
            f"the write-ahead log {self.path} is damaged at byte {at}: {why}",
            hint="`gitcp doctor` saves what is before that and puts the log aside",
        )

    def append(self, record: LogRecord) -> int:
        """Writes a record at the end and returns the offset behind it; see `sync`.

        Raises:
            StorageError: the disk refused; nothing was added.
        """
        record = msgspec.structs.replace(record, synced=self._synced)
        payload = msgspec.msgpack.encode(record)
        raw = _HEAD.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload
        with durable.storage("writing the redo log"):
            try:
                done = 0
                while done < len(raw):
                    done += os.pwrite(self._fd, raw[done:], self.known + done)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._fd, self.known)
                raise
        self.known += len(raw)
        self.wrote = True
        return self.known

    def sync(self) -> None:
        """Makes everything appended durable: the acknowledgement.

        Raises:
            StorageError: the disk refused.
        """
        with durable.storage("syncing the redo log"):
            if self._synced == 0:
                os.fsync(self._fd)
                durable.sync_directory(self.path.parent)
            else:
                fdatasync(self._fd)
        self._synced = self.known

    def cut(self, at: int) -> None:
        """Takes back what was appended after `at`: it could not be made durable."""
        with suppress(OSError):
            os.ftruncate(self._fd, at)
        self.known = at

    def put_aside(self) -> Path:
        """Moves a damaged file out of the way, and returns where it is now."""
        aside = self._repository.store_dir / DAMAGED
        with durable.storage("putting a damaged log aside"):
            self._repository.make_directory(aside)
            to = aside / f"{self.path.name}.{os.urandom(4).hex()}"
            self.path.rename(to)
            durable.sync_directory(aside)
            durable.sync_directory(self.path.parent)
        self.close()
        return to

    def remove(self) -> None:
        """Removes the file: everything in it is in git, durably."""
        with durable.storage("removing the redo log"):
            # A power cut may bring it back: settling it again changes nothing.
            self.path.unlink(missing_ok=True)
        self.close()


def _is_torn(rest: bytes, at: int) -> bool:
    """Whether a broken record, at an offset of the file, looks like a write cut short."""
    if len(rest) < _HEAD.size:
        return True
    # Sectors that did not reach the disk; the first one is shared with what is before.
    for start in (0, *range(-at % _SECTOR, len(rest), _SECTOR)):
        sector = rest[start : start + (_SECTOR - (at + start) % _SECTOR)]
        if not any(sector):
            return True
    magic, length, crc = _HEAD.unpack_from(rest)
    payload = rest[_HEAD.size :]
    # Unless it is the length that is wrong.
    short: bool = length > len(payload) and zlib.crc32(payload) != crc
    return short and magic == _MAGIC


def directory(repository: Repository) -> Path:
    """Returns where the redo logs of a repository lie."""
    return repository.store_dir / REDO


def names(repository: Repository) -> list[str]:
    """Returns the names of the redo logs there are.

    Raises:
        StorageError: the directory cannot be read, or is none.
    """
    with durable.storage("looking for write-ahead logs"):
        try:
            files = os.listdir(directory(repository))
        except FileNotFoundError:
            return []
    return sorted(name.removesuffix(SUFFIX) for name in files if name.endswith(SUFFIX))


# macOS has no fdatasync.
fdatasync = getattr(os, "fdatasync", os.fsync)


def _pread(fd: int, length: int, at: int) -> bytes:
    pieces = []
    while length:
        piece = os.pread(fd, length, at)
        if not piece:
            raise OSError(errno.EIO, "the file ended early")
        pieces.append(piece)
        length -= len(piece)
        at += len(piece)
    return b"".join(pieces)
