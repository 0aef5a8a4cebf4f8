"""Carrying out a plan: the only code that changes files of a user's work tree.

A path is touched only while it holds what the plan says it held before (I6); one that
holds the result already is left alone. So applying is repeatable, and applying the
reversed plan takes it back. libgit2's checkout is never used: it writes through
symbolic links.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum, auto

from gitcp import durable
from gitcp.format.tree import DIRECTORY, EXECUTABLE, LINK, Entry
from gitcp.worktree import files
from gitcp.worktree.files import Root
from gitcp.worktree.plan import (
    CHMOD,
    DELETE,
    LINK_TO,
    MAKE_DIR,
    REMOVE_DIR,
    FilePlan,
    Left,
    Step,
)
from gitcp.worktree.read import tree_mode
from gitcp.worktree.scan import TEMPORARY

Stream = Callable[[bytes], Iterator[bytes]]

_CHANGED = "changed meanwhile"
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})
_X = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


class _Now(Enum):
    BEFORE = auto()
    AFTER = auto()
    OTHER = auto()


def obstacles(root: Root, plan: FilePlan) -> list[Left]:
    """Returns what no checkpoint holds and the plan would have to overwrite."""
    removed = {step.path for step in plan.steps if step.action in {DELETE, REMOVE_DIR}}
    root.forget()
    found: dict[bytes, Left] = {}
    seen: set[bytes] = set()
    for step in plan.steps:
        if step.after is None:
            continue
        try:
            for left in _in_the_way(root, step, removed, seen):
                found[left.path] = left
        except PermissionError:
            found[step.path] = Left(step.path, "in a directory that cannot be read")
    return sorted(found.values())


def _in_the_way(
    root: Root, step: Step, removed: set[bytes], seen: set[bytes]
) -> Iterator[Left]:
    """Yields what is where a step, or a directory on its way, has to be."""
    for above in _ancestors(step.path):
        if above in seen:
            continue
        seen.add(above)
        there = root.lstat(above)
        if there is None:
            break
        if not files.is_directory(there):
            if above not in removed:
                yield Left(above, "not captured and in the way")
            break
        if root.lstat(above + b"/.git") is not None:
            yield Left(above, "a nested repository is in the way")
            break
    there = root.lstat(step.path) if step.before is None else None
    if there is None or _state(root, step) is _Now.AFTER:
        return
    if files.is_directory(there):
        for inside in _content(root, step.path, removed):
            yield Left(inside, "not captured and in the way")
    elif step.path not in removed:
        yield Left(step.path, "not captured and in the way")


def apply(root: Root, plan: FilePlan, stream: Stream, *, token: str) -> list[Left]:
    """Carries out a plan; returns the paths that were not as the plan expected.

    `stream` yields the content of a blob; `token` names the temporary files, so that
    what a killed run left is found.

    Raises:
        StorageError: the disk refused; the plan can be applied again, or reversed.
    """
    left: list[Left] = []
    last = ""
    # A path that changes its kind has two steps.
    final = {step.path: step for step in plan.steps if step.after is not None}
    with durable.storage("restoring files"):
        for number, step in enumerate(plan.steps):
            if step.action != last:
                # Directories kept open may be about to go, or to be replaced.
                root.forget()
                last = step.action
            try:
                problem = _carry_out(root, step, stream, f"{token}-{number}")
            except (NotADirectoryError, FileNotFoundError):
                # Somebody moves directories about while we work.
                root.forget()
                problem = _CHANGED
            except OSError as exc:
                # The temporary file that it names says nothing to anybody.
                exc.filename = step.path
                raise
            again = final.get(step.path) if step.after is None else None
            if problem and again and _state(root, again) is _Now.AFTER:
                problem = None
            if problem:
                left.append(Left(step.path, problem))
        root.forget()
        _sync(root, plan)
        root.forget()
    return left


def is_done(root: Root, step: Step) -> bool:
    """Whether a path holds what a step was to bring about."""
    return _state(root, step) is _Now.AFTER


def conflicts(root: Root, plan: FilePlan) -> list[Left]:
    """Returns the paths that hold neither what a plan starts from nor what it makes."""
    root.forget()
    return [
        Left(step.path, _CHANGED)
        for step in plan.steps
        if step.action not in {MAKE_DIR, REMOVE_DIR}
        and _state(root, step) is _Now.OTHER
    ]


def clean(root: Root, plan: FilePlan, token: str) -> None:
    """Removes temporary files that a killed run of this plan left."""
    mark = TEMPORARY + token.encode()
    with durable.storage("clearing away temporary files"):
        for directory in {step.path.rpartition(b"/")[0] for step in plan.steps}:
            with suppress(FileNotFoundError, NotADirectoryError):
                fd = root.directory(directory)
                for name in os.listdir(fd):
                    if os.fsencode(name).startswith(mark):
                        os.unlink(name, dir_fd=fd)
        root.forget()


def _carry_out(root: Root, step: Step, stream: Stream, token: str) -> str | None:
    now = _state(root, step)
    if now is _Now.AFTER:
        return None
    if step.action == REMOVE_DIR:
        return _remove_directory(root, step.path)
    if now is _Now.OTHER:
        return _CHANGED
    if step.action == MAKE_DIR:
        root.make_directory(step.path)
        return None
    if step.action == DELETE:
        fd, name = root.parent(step.path)
        os.unlink(name, dir_fd=fd)
        return None
    if step.after is None:
        raise ValueError(f"a step without a result: {step.action}")
    fd = root.make_directory(step.path.rpartition(b"/")[0])
    name = step.path.rpartition(b"/")[2]
    # Through a hard link the mode of another file would change, here or elsewhere.
    if step.action == CHMOD and not _is_shared(root, step.path):
        _change_mode(root, step.path, step.after)
        return None
    temporary = TEMPORARY + token.encode()
    try:
        if step.action == LINK_TO:
            os.symlink(b"".join(stream(step.after.oid)), temporary, dir_fd=fd)
        else:
            _write(fd, temporary, name, step.after, stream)
        # As late as can be: what a user did meanwhile must not be lost.
        if _state(root, step) is not _Now.BEFORE:
            os.unlink(temporary, dir_fd=fd)
            return _CHANGED
        if not _place(fd, temporary, name, replace=step.before is not None):
            return _CHANGED
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=fd)
        raise
    return None


def _place(directory: int, temporary: bytes, name: bytes, *, replace: bool) -> bool:
    """Gives a complete file its name; False if something took the name meanwhile.

    A link, unlike a rename, fails where there is something.
    """
    if not replace:
        try:
            os.link(
                temporary,
                name,
                src_dir_fd=directory,
                dst_dir_fd=directory,
                follow_symlinks=False,
            )
        except FileExistsError:
            os.unlink(temporary, dir_fd=directory)
            return False
        except OSError as exc:
            # Some file systems have no hard links.
            if exc.errno not in _NO_LINKS:
                raise
        else:
            os.unlink(temporary, dir_fd=directory)
            return True
    os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    return True


def _sync(root: Root, plan: FilePlan) -> None:
    """Makes the names that a plan gave and took durable."""
    directories = {step.path.rpartition(b"/")[0] for step in plan.steps}
    directories |= {
        above for directory in directories for above in (b"", *_ancestors(directory))
    }
    for directory in sorted(directories):
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.fsync(root.directory(directory))


def _write(
    directory: int, temporary: bytes, name: bytes, entry: Entry, stream: Stream
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666, dir_fd=directory)
    try:
        for chunk in stream(entry.oid):
            view = memoryview(chunk)
            while view:
                view = view[os.write(fd, view) :]
        try:
            old = os.stat(name, dir_fd=directory, follow_symlinks=False)
            keep = old.st_mode & 0o777 if files.is_regular(old) else None
        except FileNotFoundError:
            keep = None
        base = keep if keep is not None else stat.S_IMODE(os.fstat(fd).st_mode)
        os.fchmod(fd, _with_mode(base, entry.mode))
        os.fsync(fd)
    finally:
        os.close(fd)


def _with_mode(permissions: int, mode: int) -> int:
    """Returns permissions that are executable wherever they are readable, or not."""
    if mode == EXECUTABLE:
        return permissions | (permissions & 0o444) >> 2 | stat.S_IXUSR
    return permissions & ~_X


def _is_shared(root: Root, path: bytes) -> bool:
    found = root.lstat(path)
    return found is not None and found.st_nlink > 1


def _change_mode(root: Root, path: bytes, entry: Entry) -> None:
    fd = root.open(path)
    try:
        permissions = stat.S_IMODE(os.fstat(fd).st_mode)
        os.fchmod(fd, _with_mode(permissions, entry.mode))
    finally:
        os.close(fd)


def _remove_directory(root: Root, path: bytes) -> str | None:
    """Removes a directory if it is empty: what no checkpoint holds keeps it."""
    fd, name = root.parent(path)
    try:
        os.rmdir(name, dir_fd=fd)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return _CHANGED
    except OSError as exc:
        if exc.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY}:
            return None
        raise
    return None


def _state(root: Root, step: Step) -> _Now:
    """Returns whether a path is as it was before a step, or as it is to be after."""
    found = root.lstat(step.path)
    if found is None:
        present = None
    elif files.is_directory(found):
        present = Entry(DIRECTORY, b"")
    elif files.is_link(found):
        target = root.readlink(step.path)
        head = f"blob {len(target)}\0".encode()
        oid = hashlib.sha1(head + target, usedforsecurity=False).digest()
        present = Entry(LINK, oid)
    elif files.is_regular(found):
        try:
            present = _hashed(root, step.path, found)
        except PermissionError:
            return _Now.OTHER
    else:
        return _Now.OTHER
    if present == step.after:
        return _Now.AFTER
    return _Now.BEFORE if present == step.before else _Now.OTHER


def _hashed(root: Root, path: bytes, found: os.stat_result) -> Entry:
    digest = hashlib.sha1(f"blob {found.st_size}\0".encode(), usedforsecurity=False)
    fd = root.open(path)
    try:
        for chunk in files.chunks(fd):
            digest.update(chunk)
    finally:
        os.close(fd)
    return Entry(tree_mode(found), digest.digest())


def _ancestors(path: bytes) -> Iterator[bytes]:
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)


def _content(root: Root, directory: bytes, removed: set[bytes]) -> Iterator[bytes]:
    """Yields what would stay in a directory once `removed` is gone."""
    names = sorted(os.fsencode(name) for name in os.listdir(root.directory(directory)))
    if b".git" in names or not (names or directory in removed):
        yield directory
        return
    for name in names:
        path = directory + b"/" + name
        found = root.lstat(path)
        if found is not None and files.is_directory(found):
            yield from _content(root, path, removed)
        elif path not in removed:
            yield path
