"""A directory as an object store: on this machine, or mounted on several machines.

obstore's local store cannot replace a file conditionally, and does not sync its files.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from gitcp import durable
from gitcp.errors import TransferError
from gitcp.remotes.place import Entry, Version

_LOCK = ".gitcp-lock"
_PIECE = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Directory:
    """A directory that keeps objects as files, each at its path."""

    def __init__(self, top: Path, *, patience: float) -> None:
        """`patience` is how long to wait for another writer, in seconds."""
        self._top = top
        self._patience = patience

    def list(self, below: str) -> Iterator[Entry]:
        """Yields the files below a directory."""
        with durable.storage("listing the object store"):
            for directory, _, names in os.walk(self._top / below):
                for name in names:
                    path = Path(directory, name)
                    with suppress(FileNotFoundError):
                        status = path.lstat()
                        yield Entry(
                            path.relative_to(self._top).as_posix(),
                            status.st_size,
                            status.st_mtime,
                        )

    def read(self, path: str, at_most: int) -> tuple[bytes, Version] | None:
        """Returns the content of a file; None if it is not there."""
        with durable.storage("reading the object store"):
            file = self._open(path)
            if file is None:
                return None
            with file:
                raw = file.read(at_most + 1)
        if len(raw) > at_most:
            raise TransferError(f"{path} has more than {at_most:,} bytes")
        return raw, _version(raw)

    def download(self, path: str, size: int, file: Path) -> bool:
        """Copies a file; False if it is not there."""
        with durable.storage("reading the object store"):
            source = self._open(path)
            if source is None:
                return False
            left = size
            with source, file.open("xb") as target:
                while piece := source.read(min(_PIECE, left)):
                    left -= target.write(piece)
        return True

    def _open(self, path: str) -> BinaryIO | None:
        """Opens a file for reading; None if it is not there.

        Another user who can write to the directory may have put a pipe there.
        """
        try:
            fd = os.open(self._top / path, _READ)
        except (FileNotFoundError, NotADirectoryError):
            return None
        file = os.fdopen(fd, "rb")
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            file.close()
            raise TransferError(f"{path} is not a regular file")
        return file

    def upload(self, path: str, file: Path) -> None:
        """Copies a file to a new one."""
        with durable.storage("writing to the object store"):
            target = self._top / path
            durable.make_directories(target.parent)
            with file.open("rb") as source:
                durable.replace_from(target, iter(lambda: source.read(_PIECE), b""))

    def swap(self, path: str, data: bytes, expect: Version | None) -> Version | None:
        """Replaces a file under a lock, if its version is the expected one."""
        target = self._top / path
        with durable.locked(
            self._top / _LOCK, what="the object store", timeout=self._patience
        ):
            there = self.read(path, len(data) + _PIECE)
            if (there[1] if there else None) != expect:
                return None
            with durable.storage("writing to the object store"):
                durable.make_directories(target.parent)
                durable.replace(target, data)
        return _version(data)

    def remove(self, path: str) -> None:
        """Removes a file."""
        with durable.storage("removing from the object store"):
            durable.remove(self._top / path)

    def now(self) -> float:
        """Returns the time that a new file gets: the disk may be in another machine."""
        probe = self._top / f".gitcp-{secrets.token_hex(8)}"
        with durable.storage("writing to the object store"):
            probe.touch(exist_ok=False)
            try:
                return probe.stat().st_mtime
            finally:
                probe.unlink()


def _version(raw: bytes) -> Version:
    # Two different contents may have the same time stamp, so hash the content.
    return Version(hashlib.sha256(raw).hexdigest())
