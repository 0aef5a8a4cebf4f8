"""Identifies a folder independently of its path, for its private store."""

import base64
import fcntl
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

# Asks Linux for the generation of an inode: it changes when an inode number is reused.
_GETVERSION = 0x80087601
# So many names at the top identify a folder well enough.
_NAMES = 200


class Folder(msgspec.Struct, frozen=True):
    """A folder as it was last seen; path and names are base64, as they may be any bytes.

    `version` tells apart two directories that had the same inode number at different
    times. It is None if the disk has none. `names` are the names at the top.
    """

    path: str
    device: int
    inode: int
    version: str | None = None
    names: tuple[str, ...] = ()

    @property
    def place(self) -> Path:
        """The path of the folder."""
        return Path(os.fsdecode(base64.b64decode(self.path)))

    def is_at(self, top: Path) -> bool:
        """Whether the directory at a path is this folder, moved or not.

        Raises:
            OSError: the directory cannot be read.
        """
        status = os.stat(top)
        if status.st_ino != self.inode:
            return False
        version = _version(top)
        if version is not None and self.version is not None:
            return version == self.version
        if status.st_dev != self.device and top != self.place:
            return False
        # The number may belong to another directory by now.
        names = _names(top)
        return not names or not self.names or not set(names).isdisjoint(self.names)

    @property
    def is_there(self) -> bool:
        """Whether the folder is where it was last seen."""
        try:
            return self.is_at(self.place)
        except OSError:
            return False


# The error's text for a store whose record of its folder cannot be read.
UNKNOWN = Folder("", 0, 0)


def folder_at(top: Path) -> Folder:
    """Returns the folder at a path without links, as it is now.

    Raises:
        OSError: the folder cannot be read.
    """
    status = os.stat(top)
    return Folder(
        _text(os.fsencode(top)),
        status.st_dev,
        status.st_ino,
        _version(top),
        _names(top),
    )


def _names(top: Path) -> tuple[str, ...]:
    found = sorted(os.listdir(os.fsencode(top)))
    return tuple(_texts(name for name in found if name != b".git"))[:_NAMES]


def _texts(names: Iterable[bytes]) -> Iterable[str]:
    return map(_text, names)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _version(top: Path) -> str | None:
    """Returns a value that another directory with the same inode number would not have."""
    born = getattr(os.stat(top), "st_birthtime", None)
    if born is not None:
        return f"born {born!r}"
    if not sys.platform.startswith("linux"):
        return None
    with suppress(OSError):
        fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            raw = fcntl.ioctl(fd, _GETVERSION, bytes(8))
        finally:
            os.close(fd)
        generation = struct.unpack_from("=I", raw)[0]
        # If a disk has none it says 0.
        return f"generation {generation}" if generation else None
    return None
