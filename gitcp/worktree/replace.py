"""Replaces or removes a file without losing a concurrent write to it.

A file is read while it has its name. Then it gets a temporary name, by exchange or by
rename, and is compared once more: by its stat where that is proof, by its content
where it is not. Only a file that still holds what a checkpoint holds is removed. Any
other gets its name back.
"""

import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from gitcp.format.checkpoint import show_path
from gitcp.format.oid import SHA1, ObjectFormat, form_of
from gitcp.format.tree import DIRECTORY, LINK, Entry
from gitcp.worktree import files, renames
from gitcp.worktree.files import Root
from gitcp.worktree.plain import tree_mode
from gitcp.worktree.plan import FileStep
from gitcp.worktree.scan import TEMPORARY

Stream = Callable[[bytes], Iterator[bytes]]

CHANGED = "changed meanwhile"
OTHER = Entry(0, b"")
# Ends the name of an old file where names cannot be exchanged.
OLD = b".old"
_CHUNK = 1024 * 1024
# The file is not readable, or a link or a device replaced it since the stat.
_UNREADABLE = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO})
# How far apart two time stamps have to be for a change in between to show in them:
# where stamps are fine, and where they may be those of a disk with steps of 2 seconds.
_FINE_NS, _COARSE_NS = 20_000_000, 4_500_000_000
_MILLISECOND_NS = 1_000_000
_DIGEST = 12


class PreviousContent(NamedTuple):
    """The previous content of a path: the entry, and for a file the stat before the read.

    `entry` is None for nothing and OTHER for a type that no checkpoint can hold; `at`
    is the monotonic time of the stat in nanoseconds.
    """

    entry: Entry | None
    stat: os.stat_result | None = None
    at: int = 0


def look(
    root: Root, path: bytes, form: ObjectFormat, *, link: bool = False
) -> PreviousContent:
    """Returns what a path holds; `link` says that a symbolic link is expected."""
    try:
        fd, name = root.parent(path)
    except (FileNotFoundError, NotADirectoryError):
        return PreviousContent(None)
    return look_at(fd, name, form, link=link)


def look_at(
    directory: int, name: bytes, form: ObjectFormat, *, link: bool = False
) -> PreviousContent:
    """Returns what a name in a directory holds; `form` is that of its id.

    Raises:
        PermissionError: names of the directory cannot be looked up.
    """
    if link:
        with suppress(OSError):
            return PreviousContent(_link(os.readlink(name, dir_fd=directory), form))
    at = time.monotonic_ns()
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if files.is_directory(status):
            return PreviousContent(Entry(DIRECTORY, b""))
        if files.is_link(status):
            return PreviousContent(_link(os.readlink(name, dir_fd=directory), form))
    except FileNotFoundError:
        return PreviousContent(None)
    if not files.is_regular(status):
        return PreviousContent(OTHER)
    try:
        return PreviousContent(_hashed(directory, name, status, form), status, at)
    except FileNotFoundError:
        return PreviousContent(None)
    except OSError as exc:
        if exc.errno in _UNREADABLE:
            return PreviousContent(OTHER)
        raise


def _link(target: bytes, form: ObjectFormat) -> Entry:
    return Entry(LINK, form.oid("blob", target))


def form_for(*expected: Entry | None) -> ObjectFormat:
    """Returns the form of the expected ids; any form if no entry has an id."""
    return next((form_of(one.oid) for one in expected if one and one.oid), SHA1)


def _hashed(
    directory: int, name: bytes, status: os.stat_result, form: ObjectFormat
) -> Entry:
    """Reads as many bytes as the stat says; a file that has grown has another stat now."""
    digest = form.hasher("blob", status.st_size)
    fd = files.open_file(directory, name)
    try:
        left = status.st_size
        while left and (chunk := os.read(fd, min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    finally:
        os.close(fd)
    return Entry(tree_mode(status), digest.digest())


def temporary_name(token: str, name: bytes) -> bytes:
    """Returns the name under which a file waits to take, or has lost, a name.

    The target's name follows from it, so a killed run is cleaned up from the listing
    alone.
    """
    digest = hashlib.sha1(name, usedforsecurity=False).hexdigest()
    return TEMPORARY + f"{token}-{digest[:_DIGEST]}".encode()


def remove(
    directory: int, name: bytes, seen: PreviousContent, token: str
) -> str | None:
    """Removes a file or link that is as it was seen; otherwise returns why it stays."""
    if _is_late(seen) and not _same_stat(directory, name, seen):
        seen = _again(directory, name, seen)
        if seen.entry is None:
            return CHANGED
    aside = temporary_name(token, name)
    os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)
    return _finish(
        directory, aside, seen, lambda: put_back(directory, aside, name, token)
    )


def _finish(
    directory: int, aside: bytes, seen: PreviousContent, undo: Callable[[], str]
) -> str | None:
    """Removes a file that has lost its name, or restores the name and returns why."""
    try:
        unchanged = _unchanged(directory, aside, seen)
    except OSError:
        undo()
        raise
    if not unchanged:
        return undo()
    os.unlink(aside, dir_fd=directory)
    return None


def place(directory: int, temporary: bytes, name: bytes) -> str | None:
    """Gives a complete file a free name; otherwise removes the file and returns why."""
    try:
        renames.move(directory, temporary, name)
    except FileExistsError:
        os.unlink(temporary, dir_fd=directory)
        return CHANGED
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    return None


def swap(
    directory: int, temporary: bytes, step: FileStep, seen: PreviousContent, token: str
) -> str | None:
    """Replaces a file that is as it was seen by a complete one; otherwise returns why not."""
    name = step.path.rpartition(b"/")[2]
    try:
        if not _same_stat(directory, name, seen):
            seen = _again(directory, name, seen)
            if seen.entry is None:
                os.unlink(temporary, dir_fd=directory)
                return CHANGED
        exchanged = renames.exchange(directory, temporary, name)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    if not exchanged:
        return _swap_by_hand(directory, temporary, name, seen, token)
    return _finish(
        directory,
        temporary,
        seen,
        lambda: _swap_back(directory, temporary, step, token),
    )


def _swap_back(directory: int, temporary: bytes, step: FileStep, token: str) -> str:
    """Gives an edited file its name back; the new file may have been edited, too."""
    name = step.path.rpartition(b"/")[2]
    try:
        renames.exchange(directory, temporary, name)
    except FileNotFoundError:
        return put_back(directory, temporary, name, token)
    if look_at(directory, temporary, form_for(step.after)).entry == step.after:
        os.unlink(temporary, dir_fd=directory)
        return CHANGED
    return beside(directory, temporary, name, token)


def _swap_by_hand(
    directory: int, temporary: bytes, name: bytes, seen: PreviousContent, token: str
) -> str | None:
    """Replaces without an exchange: for a moment the name does not exist."""
    aside = temporary + OLD
    os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)

    def undo() -> str:
        os.unlink(temporary, dir_fd=directory)
        return put_back(directory, aside, name, token)

    if not _unchanged(directory, aside, seen):
        return undo()
    problem = place(directory, temporary, name)
    if problem is None:
        return _finish(
            directory, aside, seen, lambda: beside(directory, aside, name, token)
        )
    os.unlink(aside, dir_fd=directory)
    return problem


def put_back(directory: int, aside: bytes, name: bytes, token: str) -> str:
    """Gives a file its name back, or one beside it; returns the reason to report."""
    try:
        renames.move(directory, aside, name)
    except FileExistsError:
        return beside(directory, aside, name, token)
    return CHANGED


def beside(directory: int, aside: bytes, name: bytes, token: str) -> str:
    """Gives a file that has lost its name one beside it; returns the reason to report."""
    for number in count():
        end = f".kept-{token}{f'-{number}' if number else ''}".encode()
        # The longest name of most file systems has 255 bytes.
        kept = name[: 255 - len(end)] + end
        with suppress(FileExistsError):
            renames.move(directory, aside, kept)
            return f"{CHANGED}; its content is now in {show_path(kept)}"
    raise AssertionError


def _is_late(seen: PreviousContent) -> bool:
    """Whether reading took so long that looking again before the rename pays."""
    return seen.stat is not None and seen.stat.st_size > _CHUNK


def _same_stat(directory: int, name: bytes, seen: PreviousContent) -> bool:
    """Whether a name still has the stat it had; a link has to be read instead."""
    if seen.stat is None:
        return False
    try:
        now = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return _alike(now, seen.stat) and now.st_ctime_ns == seen.stat.st_ctime_ns


def _again(directory: int, name: bytes, seen: PreviousContent) -> PreviousContent:
    """Looks again; returns no entry if the name now holds something else."""
    is_link = seen.entry is not None and seen.entry.mode == LINK
    now = look_at(directory, name, form_for(seen.entry), link=is_link)
    return now if now.entry == seen.entry else PreviousContent(None)


def _alike(one: os.stat_result, two: os.stat_result) -> bool:
    return (
        one.st_ino == two.st_ino
        and one.st_dev == two.st_dev
        and one.st_mode == two.st_mode
        and one.st_size == two.st_size
        and one.st_mtime_ns == two.st_mtime_ns
    )


def is_as_written(now: os.stat_result, written: os.stat_result) -> bool:
    """Whether a file, after it got its name, still holds what was written.

    The rename has stamped it. If that was more than a step of the clock after the last
    write, a later edit shows in the time of that write.
    """
    if now.st_ino != written.st_ino or now.st_dev != written.st_dev:
        return False
    if now.st_size != written.st_size or now.st_mtime_ns != written.st_mtime_ns:
        return False
    return now.st_ctime_ns - written.st_mtime_ns > step_of(now)


def step_of(status: os.stat_result) -> int:
    """Returns how far apart two stamps must be for a change in between to show."""
    fine = status.st_ctime_ns % _MILLISECOND_NS
    return _FINE_NS if fine else _COARSE_NS


def _unchanged(directory: int, aside: bytes, seen: PreviousContent) -> bool:
    """Whether a file that has lost its name still holds what was seen.

    The rename stamped it with the file system's own time. If the file had been quiet
    for longer than a step of that clock when it was read, an edit since shows in its
    stat. If not, it is read again.
    """
    form = form_for(seen.entry)
    if seen.stat is None:
        return look_at(directory, aside, form, link=True).entry == seen.entry
    now = os.stat(aside, dir_fd=directory, follow_symlinks=False)
    if _alike(now, seen.stat):
        passed = time.monotonic_ns() - seen.at
        quiet = now.st_ctime_ns - passed - seen.stat.st_ctime_ns
        if quiet > step_of(now):
            return True
    again = look_at(directory, aside, form)
    if again.entry != seen.entry or again.stat is None:
        return False
    # A process may still write to it through an open descriptor.
    return _same_stat(directory, aside, again)
