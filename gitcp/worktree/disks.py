"""The file systems that a restore writes to, each made durable by one call.

`syncfs` writes a whole file system to its disk, with the files of other programs, and
reports whether writing failed since its descriptor was opened. Linux reports that from 5.8
on, and not for every file system: for the others, each file is synced by itself.
"""

import os
import sys
import threading
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gitcp.worktree.files import Root

if TYPE_CHECKING:
    import ctypes

# From this kernel on `syncfs` reports what a disk failed to write.
_REPORTS = (5, 8)
# By the magic numbers of statfs: the file systems that report errors, and sync all they hold.
# Not overlayfs, whose errors occur in another file system, and not FUSE, which may not pass
# the call on.
_WHOLE = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0xF2F52010: "f2fs",
    0x01021994: "tmpfs",
}
_STATFS_BYTES = 256


class Disks:
    """The file systems that are synced as a whole; `note` each before writing to it."""

    def __init__(self) -> None:
        # By device: its descriptor, or None if each file has to be synced.
        self._known: dict[int, int | None] = {}
        self._mutex = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for fd in self._known.values():
            if fd is not None:
                os.close(fd)
        self._known.clear()

    def note(self, directory: int) -> bool:
        """Takes note of a directory's file system; returns whether `sync` covers it.

        Errors count from the first note on.
        """
        device = os.fstat(directory).st_dev
        with self._mutex:
            if device not in self._known:
                whole = _is_synced_as_a_whole(directory)
                # A copy reports the errors since the directory was opened.
                self._known[device] = os.dup(directory) if whole else None
            return self._known[device] is not None

    def covers(self, directory: int) -> bool:
        """Whether `sync` covers a directory, because its file system was noted in time."""
        return self._known.get(os.fstat(directory).st_dev) is not None

    def sync(self) -> None:
        """Makes all that was written to the noted file systems durable.

        Raises:
            OSError: a disk failed to write something since it was noted.
        """
        for fd in self._known.values():
            if fd is not None:
                sync_whole(fd)

    def sync_directory(self, root: Root, path: bytes) -> None:
        """Makes the names in a directory durable, if `sync` will not.

        Raises:
            OSError: the directory is gone, cannot be read, or the disk refused.
        """
        directory = root.directory(path)
        if not self.covers(directory):
            os.fsync(directory)


def sync_whole(fd: int) -> None:
    """Makes the whole file system of a descriptor durable.

    Raises:
        OSError: something could not be written since the descriptor was opened.
    """
    import ctypes  # noqa: PLC0415  loaded where much is written

    if _library().syncfs(fd):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _is_synced_as_a_whole(fd: int) -> bool:
    if sys.platform != "linux" or not _kernel_reports():
        return False
    import ctypes  # noqa: PLC0415

    library = _library()
    if not hasattr(library, "syncfs") or not hasattr(library, "fstatfs"):
        return False
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if library.fstatfs(fd, buffer):
        return False
    # The first field, as wide as the machine's `long` wherever gitcp has been tried. Read
    # in another width it equals none of these numbers.
    number = ctypes.c_long.from_buffer(buffer).value
    return number & 0xFFFFFFFF in _WHOLE


def _kernel_reports() -> bool:
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    try:
        return tuple(int(number) for number in numbers) >= _REPORTS
    except ValueError:
        return False


@cache
def _library() -> "ctypes.CDLL":
    import ctypes  # noqa: PLC0415

    return ctypes.CDLL(None, use_errno=True)
