"""Crash-safe files: sync, atomic replace, locks, and errors of disks."""

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from gitcp import at_fork
from gitcp.errors import BusyError, StorageError

T = TypeVar("T")

_PRIVATE = 0o600
_OTHERS = 0o066
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
# Seconds: no file that gitcp replaces takes so long to write.
_YOUNG = 60.0
# How many looks at a file's inode number show that none is like another.
_LOOKS = 7

_CAUSES = {
    errno.ENOSPC: ("the disk is full", "free some space and run the command again"),
    errno.EDQUOT: ("the disk quota is used up", "free some space and try again"),
    errno.EROFS: ("the file system is read-only", "remount it writable"),
    errno.EIO: ("the disk reported an input/output error", "check the disk"),
    errno.EACCES: ("permission denied", "check who owns the directory"),
    errno.EPERM: ("operation not permitted", "check who owns the directory"),
    errno.ELOOP: ("a symbolic link is in the way", "remove the link"),
    errno.EMFILE: ("too many open files", "raise `ulimit -n`"),
    errno.ENFILE: ("too many open files on this machine", "end other programs"),
    errno.EFBIG: ("the file is larger than the limit allows", "raise `ulimit -f`"),
    errno.ENOMEM: ("there is not enough memory", "end other programs"),
    errno.EAGAIN: ("too many processes", "raise `ulimit -u`"),
    errno.ENAMETOOLONG: ("a name is too long for this disk", "use a shorter name"),
}


LIMITS = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT}
)

# Nothing may be written here. A command that only reads can ignore these.
READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


@contextmanager
def storage(doing: str) -> Iterator[None]:
    """Turns an OSError inside into a StorageError that says what was being done.

    Raises:
        StorageError: an OSError came out.
    """
    try:
        yield
    except OSError as exc:
        cause, hint = _CAUSES.get(
            exc.errno or 0, (exc.strerror or str(exc), "run `gitcp doctor`")
        )
        named = isinstance(exc.filename, str | bytes)
        where = f" ({os.fsdecode(exc.filename)})" if named else ""
        raise StorageError(f"{doing} failed: {cause}{where}", hint=hint) from exc


def sync_file(path: Path) -> None:
    """Makes the content of a file durable that another process wrote."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_directory(directory: Path) -> None:
    """Makes the names in a directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directories(directory: Path, *, private: bool = False) -> None:
    """Makes a directory and its parents, syncing the parent of each new one."""
    if directory.is_dir():
        return
    make_directories(directory.parent, private=private)
    # If another process has just made it, it may not be durable yet.
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700 if private else 0o777)
    sync_directory(directory.parent)


def open_own(path: Path, flags: int) -> int:
    """Opens a file of gitcp's own, makes it if it is missing; returns the descriptor.

    Its owner can use it, and users who can use its directory: the group, in a repository
    that a group shares, whatever the umask. A symbolic link is not followed.
    """
    flags |= os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, _PRIVATE)
    try:
        others = path.parent.stat().st_mode & _OTHERS
        if others:
            status = os.fstat(fd)
            mode = _PRIVATE | others
            if status.st_uid == os.geteuid() and status.st_mode & 0o777 != mode:
                os.fchmod(fd, mode)
    except BaseException:
        os.close(fd)
        raise
    return fd


def append(path: Path, data: bytes) -> None:
    """Adds to a file of gitcp's own in one write, so that two writers do not mix."""
    fd = open_own(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def usual_mode(path: Path) -> int:
    """Returns the permissions of a file of the user's; of a new one if it is missing."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def replace(
    path: Path, data: bytes, *, sync: bool = True, mode: int | None = None
) -> None:
    """Replaces a file's content in one step; with `sync`, durably.

    A file of gitcp's own gets the permissions that `open_own` gives it. Any other file
    has `mode` from the start: a private file is never readable by others, not even for a
    moment.
    """
    replace_from(path, (data,), sync=sync, mode=mode)


def replace_from(
    path: Path, chunks: Iterable[bytes], *, sync: bool = True, mode: int | None = None
) -> int:
    """Replaces a file's content as `replace` does, by pieces; returns its size."""
    size = 0
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        flags = os.O_WRONLY | os.O_TRUNC
        if mode is None:
            fd = open_own(temporary, flags)
        else:
            # A temporary file left by a killed process may have any permissions.
            temporary.unlink(missing_ok=True)
            fd = os.open(temporary, flags | os.O_CREAT | os.O_EXCL, mode & _PRIVATE)
            os.fchmod(fd, mode)
        with open(fd, "wb") as file:
            for data in chunks:
                size += file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_directory(path.parent)
    return size


def replace_all(contents: Mapping[Path, bytes]) -> None:
    """Replaces files that only their owner may read, durably; each in one step."""
    written: list[Path] = []
    try:
        for path, data in contents.items():
            written.append(path.with_name(f"{path.name}.{os.getpid()}.tmp"))
            with open(written[-1], "wb", opener=_private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for path, temporary in zip(contents, written, strict=True):
            temporary.replace(path)
    except BaseException:
        for temporary in written:
            temporary.unlink(missing_ok=True)
        raise
    for directory in {path.parent for path in contents}:
        sync_directory(directory)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, _PRIVATE)


def link(source: Path, name: Path) -> None:
    """Gives a file a second name, which must be free.

    Raises:
        StorageError: the file system has no hard links.
        OSError: FileExistsError if the name is taken; any other failure.
    """
    try:
        os.link(source, name)
    except OSError as exc:
        # Linux says EPERM, which another user's file gives as well.
        if exc.errno not in _NO_LINKS or source.stat().st_uid != os.geteuid():
            raise
        raise StorageError(
            f"{name.parent} is on a file system without hard links, and gitcp's locks"
            " need them",
            hint="move the repository to a disk that has them: FAT, exFAT and some network"
            " disks do not",
        ) from exc


def clear_temporaries(directory: Path, *names: str) -> None:
    """Removes the temporary files that killed processes left, of these names or of any git hook.

    A file that a process may still be writing stays: it is young, or its process
    exists.
    """
    known = "|".join(map(re.escape, names))
    left = re.compile(rf"(?:{known})\.(\d+)\.tmp|\.[a-z-]+\.gitcp-(\d+)")
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in directory.iterdir():
            match = left.fullmatch(path.name)
            with suppress(FileNotFoundError):
                if match and not _is_being_written(path, int(match[1] or match[2])):
                    path.unlink()


def _is_being_written(path: Path, process: int) -> bool:
    if time.time() - path.lstat().st_mtime < _YOUNG:
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return process != os.getpid()


def remove(*paths: Path) -> None:
    """Removes files, durably; absent is fine."""
    changed = set()
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            changed.add(path.parent)
    for directory in changed:
        sync_directory(directory)


def names(path: Path, fd: int) -> bool:
    """Whether a path is still the name of an open file.

    Raises:
        FileNotFoundError: nothing has that name.
        StorageError: the disk gives a file another inode number at each look.
    """
    number = os.fstat(fd).st_ino
    looks = [os.stat(path).st_ino]
    if looks[0] == number:
        return True
    # Another file has the name now, unless each look finds a different number.
    looks += [os.stat(path).st_ino for _ in range(_LOOKS)]
    if len(set(looks)) == len(looks):
        raise StorageError(
            f"the disk of {path.parent} gives a file a new inode number each time",
            hint="gitcp identifies its locks by inode; put the repository on another"
            " disk",
        )
    return False


def try_lock(path: Path, *, create: bool = True) -> int | None:
    """Takes a lock file's flock and returns its descriptor, or None if it is held.

    The kernel releases it when the process ends, however it ends.

    Raises:
        StorageError: the disk gives a file another inode number at each look.
    """
    with at_fork.opening():
        if create:
            fd = open_own(path, os.O_RDWR)
        else:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        at_fork.withhold(fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have removed the file between opening and locking it.
        if not names(path, fd):
            close(fd)
            return None
    except (BlockingIOError, FileNotFoundError):
        close(fd)
        return None
    except BaseException:
        close(fd)
        raise
    return fd


def close(fd: int) -> None:
    """Closes a descriptor from `try_lock`; a program that inherited it still holds the lock."""
    at_fork.release(fd)
    os.close(fd)


def unlock(fd: int, *, process: int | None = None) -> None:
    """Releases a lock that `process` (this one) took, and closes its descriptor.

    A process that was forked meanwhile has a copy of it: closing ours alone would leave
    the lock with that process for as long as it lives. That one closes its copy only.
    """
    if process is None or process == os.getpid():
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
    close(fd)


@contextmanager
def locked(
    path: Path, *, what: str, timeout: float, asking: Path | None = None
) -> Iterator[int]:
    """Holds a lock; waits up to `timeout` seconds for it. Yields its descriptor.

    While it waits it holds the lock `asking`, if that is free: the process that has the other
    lock may look for it (`is_locked`), and make way.

    Raises:
        BusyError: another process kept it.
    """
    asked: list[int] = []

    def attempt() -> int | None:
        held = try_lock(path)
        if held is None and asking is not None and not asked:
            request = try_lock(asking)
            asked.extend([] if request is None else [request])
        return held

    try:
        with storage(f"locking {what}"):
            fd = until(attempt, timeout=timeout)
    finally:
        for request in asked:
            unlock(request)
    if fd is None:
        raise BusyError(
            f"{what} is in use by another gitcp",
            hint="wait for it to end, then run the command again",
        )
    process = os.getpid()
    try:
        yield fd
    finally:
        unlock(fd, process=process)


def is_locked(path: Path) -> bool:
    """Whether another process holds a lock; not if there is no such file."""
    try:
        fd = try_lock(path, create=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if fd is not None:
        unlock(fd)
    return fd is None


def until(attempt: Callable[[], T | None], *, timeout: float) -> T | None:
    """Repeats an attempt until it returns something; None after `timeout` seconds.

    Waits with full jitter, so that many processes that want the same thing do not march in
    step: up to an eighth of the time waited so far, at least 1 ms and at most 50 ms. So a
    lock that many hold for a millisecond each is not free for long.
    """
    start = time.monotonic()
    while True:
        result = attempt()
        if result is not None:
            return result
        waited = time.monotonic() - start
        if waited >= timeout:
            return None
        pause = min(max(waited / 8, 0.001), 0.05) * os.urandom(1)[0] / 255
        time.sleep(min(timeout - waited, pause))
