"""Carries out one step of a plan: compares, writes a temporary file, renames it."""

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum, auto

from gitcp.format.tree import EXECUTABLE, LINK, Entry
from gitcp.worktree import replace
from gitcp.worktree.files import Root
from gitcp.worktree.plan import CHMOD, LINK_TO, MAKE_DIR, REMOVE_DIR, FileStep
from gitcp.worktree.replace import CHANGED, PreviousContent, Stream

_X = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


class Held(Enum):
    """What a path holds, as a step sees it."""

    BEFORE = auto()
    AFTER = auto()
    OTHER = auto()


def carry_out(root: Root, step: FileStep, stream: Stream, token: str) -> str | None:
    """Carries out a step; returns the reason if it left the path alone."""
    seen = look(root, step)
    held = compare(seen, step)
    if held is Held.AFTER:
        return None
    if step.action == REMOVE_DIR:
        return _remove_directory(root, step.path)
    if held is Held.OTHER:
        return CHANGED
    if step.action == MAKE_DIR:
        root.make_directory(step.path)
        return None
    if step.after is None:
        fd, name = root.parent(step.path)
        return replace.remove(fd, name, seen, token)
    # A hard link shares its mode: changing it would change another name of the file.
    if step.action == CHMOD and seen.stat is not None and seen.stat.st_nlink == 1:
        _change_mode(root, step.path, step.after)
        return None
    above, _, name = step.path.rpartition(b"/")
    fd = root.make_directory(above)
    temporary = replace.temporary_name(token, name)
    content = stream(step.after.oid)
    if step.action == LINK_TO:
        os.symlink(b"".join(content), temporary, dir_fd=fd)
    else:
        write(fd, temporary, step.after, content, seen.stat)
    return give_name(fd, temporary, step, seen, token)


def give_name(
    directory: int, temporary: bytes, step: FileStep, seen: PreviousContent, token: str
) -> str | None:
    """Gives a complete file its name; otherwise removes the file, and returns the reason."""
    if step.before is None:
        return replace.place(directory, temporary, step.path.rpartition(b"/")[2])
    return replace.swap(directory, temporary, step, seen, token)


def write(
    directory: int,
    temporary: bytes,
    entry: Entry,
    content: Iterable[bytes],
    old: os.stat_result | None,
    *,
    sync: bool = True,
) -> os.stat_result:
    """Writes a complete file; permissions beyond the exec bit are those of `old`.

    Returns its stat after the last write. Without `sync`, the caller makes it durable
    before it gets its name.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666, dir_fd=directory)
    try:
        for chunk in content:
            done = os.write(fd, chunk)
            while done < len(chunk):
                done += os.write(fd, memoryview(chunk)[done:])
        status = os.fstat(fd)
        mode = stat.S_IMODE(status.st_mode)
        wanted = _with_mode(mode if old is None else old.st_mode & 0o777, entry.mode)
        if wanted != mode:
            os.fchmod(fd, wanted)
        if sync:
            os.fsync(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    finally:
        os.close(fd)
    return status


def _with_mode(permissions: int, mode: int) -> int:
    """Returns permissions that are executable wherever they are readable, or not."""
    if mode == EXECUTABLE:
        return permissions | (permissions & 0o444) >> 2 | stat.S_IXUSR
    return permissions & ~_X


def _change_mode(root: Root, path: bytes, entry: Entry) -> None:
    fd = root.open(path)
    try:
        permissions = stat.S_IMODE(os.fstat(fd).st_mode)
        os.fchmod(fd, _with_mode(permissions, entry.mode))
    finally:
        os.close(fd)


def _remove_directory(root: Root, path: bytes) -> str | None:
    """Removes a directory if it is empty: uncaptured files keep it."""
    fd, name = root.parent(path)
    try:
        os.rmdir(name, dir_fd=fd)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return CHANGED
    except OSError as exc:
        if exc.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY}:
            return None
        raise
    return None


def look(root: Root, step: FileStep) -> PreviousContent:
    """Returns what a step's path holds."""
    expected = step.before or step.after
    is_link = expected is not None and expected.mode == LINK
    form = replace.form_for(step.before, step.after)
    return replace.look(root, step.path, form, link=is_link)


def compare(seen: PreviousContent, step: FileStep) -> Held:
    """Returns whether a path is in the state before a step, or after it."""
    if seen.entry == step.after:
        return Held.AFTER
    return Held.BEFORE if seen.entry == step.before else Held.OTHER


def state(root: Root, step: FileStep) -> Held:
    """Looks at a step's path, and returns whether it holds what the step starts from."""
    return compare(look(root, step), step)
