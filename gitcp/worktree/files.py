"""Opens files of a work tree without ever following a symbolic link.

Every component of a path is opened with `O_NOFOLLOW` from the one before it, so that
a directory swapped for a link, by chance or on purpose, leads nowhere.
"""

import errno
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Self

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1024 * 1024
# How many directories on the way to one are kept open: more only if a process may have
# many open files.
_KEPT_ANYWAY, _OPEN_AT_MOST = 32, 200
_SHARE = 8


@cache
def _open_at_most() -> int:
    """Returns how many directories to keep open, of the descriptors a process may have."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return _OPEN_AT_MOST
    return max(_KEPT_ANYWAY, min(_OPEN_AT_MOST, limit // _SHARE))


# Size, times and inode of a file: what changes when it is written to.
Seen = tuple[int, int, int, int]


class Root:
    """A directory whose content is reached by paths relative to it, as bytes.

    `top` may be a descriptor, which is copied. `closed` are directories below that are
    not entered, whatever their names: device and inode of each.
    """

    def __init__(
        self,
        top: str | bytes | os.PathLike[str] | int,
        closed: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        self._closed = closed
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        self.fd = os.dup(top) if isinstance(top, int) else os.open(top, flags)
        self._open: list[tuple[bytes, int]] = []
        # The last directory: consecutive paths often share it.
        self._last: bytes | None = None
        self._last_fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes every descriptor."""
        self.forget()
        os.close(self.fd)

    def another(self) -> "Root":
        """Returns the same directory for another thread; it is for the caller to close."""
        return Root(self.fd, self._closed)

    @property
    def closed(self) -> frozenset[tuple[int, int]]:
        """Device and inode of each directory that is not entered."""
        return self._closed

    def forget(self) -> None:
        """Forgets directories kept open; to be called after one was removed."""
        self._last = None
        while self._open:
            os.close(self._open.pop()[1])

    def directory(self, path: bytes) -> int:
        """Returns a descriptor of a directory; it stays the Root's.

        The way to the last one is kept open: callers go in sorted order.

        Raises:
            NotADirectoryError: a component is a link or no directory (ELOOP is
                turned into this), or one that is closed.
            OSError: the directory cannot be opened.
        """
        if path != self._last:
            self._last = None
            self._last_fd = self._walk(path)
            self._last = path
        return self._last_fd

    def _walk(self, path: bytes) -> int:
        names = path.split(b"/") if path else []
        keep = 0
        for (name, _), name_wanted in zip(self._open, names, strict=False):
            if name != name_wanted:
                break
            keep += 1
        while len(self._open) > keep:
            os.close(self._open.pop()[1])
        fd = self._open[-1][1] if self._open else self.fd
        for name in names[keep:]:
            below = self._enter(fd, name)
            if len(self._open) >= _KEPT_ANYWAY and len(self._open) >= _open_at_most():
                # A very deep tree: keep only the end of the way.
                return self._deep(below, names[len(self._open) + 1 :], path)
            self._open.append((name, below))
            fd = below
        return fd

    def _deep(self, fd: int, names: list[bytes], path: bytes) -> int:
        for name in names:
            try:
                below = self._enter(fd, name)
            finally:
                os.close(fd)
            fd = below
        # One extra slot that the next call closes.
        self._open.append((b"/" + path, fd))
        return fd

    def _enter(self, fd: int, name: bytes) -> int:
        below = _enter(fd, name)
        if self._closed:
            status = os.fstat(below)
            if (status.st_dev, status.st_ino) in self._closed:
                os.close(below)
                raise NotADirectoryError(errno.ENOTDIR, "not to be entered", name)
        return below

    def make_directory(self, path: bytes) -> int:
        """Returns a descriptor of a directory, making what is missing on the way.

        Raises:
            NotADirectoryError: a component is a link or no directory.
        """
        try:
            return self.directory(path)
        except FileNotFoundError:
            above, _, name = path.rpartition(b"/")
            fd = self.make_directory(above)
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=fd)
            return self.directory(path)

    def parent(self, path: bytes) -> tuple[int, bytes]:
        """Returns the descriptor of a path's directory, and its last name."""
        above, _, name = path.rpartition(b"/")
        return self.directory(above), name

    def lstat(self, path: bytes) -> os.stat_result | None:
        """Returns the stat of a path itself; None if there is nothing.

        Raises:
            PermissionError: a directory on the way cannot be entered.
        """
        try:
            fd, name = self.parent(path)
            return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def readlink(self, path: bytes) -> bytes:
        """Returns the target of a link."""
        fd, name = self.parent(path)
        return os.readlink(name, dir_fd=fd)

    def open(self, path: bytes) -> int:
        """Opens a file for reading and returns a descriptor of the caller's.

        Raises:
            OSError: ELOOP for a link; what the system says otherwise.
        """
        return open_file(*self.parent(path))


def open_file(directory: int, name: bytes) -> int:
    """Opens a file of a directory for reading and returns a descriptor.

    Raises:
        OSError: ELOOP for a link; what the system says otherwise.
    """
    return os.open(name, _FILE, dir_fd=directory)


def _enter(fd: int, name: bytes) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=fd)
    except OSError as exc:
        # If the disk or the system refuses, the file must not look absent.
        if exc.errno == errno.ELOOP:
            raise NotADirectoryError(exc.errno, exc.strerror, name) from exc
        raise


def content(fd: int, size: int) -> bytes:
    """Returns what can be read from a descriptor of a regular file that has some size."""
    # A buffer that is much too large costs more than the reading. One byte less than was
    # asked for: the file ends there.
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data
    return data + b"".join(chunks(fd))


def chunks(fd: int) -> Iterator[bytes]:
    """Yields what can be read from a descriptor."""
    while chunk := os.read(fd, _CHUNK):
        yield chunk


def is_regular(status: os.stat_result) -> bool:
    """Whether it is a regular file."""
    return stat.S_ISREG(status.st_mode)


def is_link(status: os.stat_result) -> bool:
    """Whether it is a symbolic link."""
    return stat.S_ISLNK(status.st_mode)


def is_directory(status: os.stat_result) -> bool:
    """Whether it is a directory."""
    return stat.S_ISDIR(status.st_mode)


def seen_of(status: os.stat_result) -> Seen:
    """Returns the stat data that changes when a file is written to."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
