"""Carries out a plan: the only code that changes files of a user's work tree.

A path is touched only while it holds what the plan says it held before (I6); one that
holds the result already is left alone. So applying is repeatable, and applying the
reversed plan takes it back. libgit2's checkout is never used: it writes through
symbolic links.
"""

import errno
import os
import stat
from collections.abc import Container, Iterator
from contextlib import suppress
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

from gitcp import durable, progress
from gitcp.errors import CorruptError
from gitcp.format.tree import EXECUTABLE, LINK, Entry
from gitcp.worktree import files, replace, spelling
from gitcp.worktree.files import Root
from gitcp.worktree.plan import (
    CHMOD,
    DELETE,
    LINK_TO,
    MAKE_DIR,
    REMOVE_DIR,
    FilePlan,
    FileStep,
    Left,
)
from gitcp.worktree.replace import CHANGED, PreviousContent, Stream

_X = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_ONE_FILE = "this disk takes it and another name of the checkpoint for one"
_IN_THE_WAY = "not captured and in the way"


class _Now(Enum):
    BEFORE = auto()
    AFTER = auto()
    OTHER = auto()


class Ahead(NamedTuple):
    """Content that a plan meets where it expects nothing.

    `obstacles` are held by no checkpoint and would have to be overwritten; `already`
    are the paths that hold what the plan would put there, though nothing captured them.
    """

    obstacles: list[Left]
    already: set[bytes]


class _Going:
    """The paths that a plan removes, in each spelling that the disk takes for them."""

    def __init__(self, root: Root, paths: set[bytes]) -> None:
        self._root, self._paths = root, paths

    def __contains__(self, path: object) -> bool:
        if path in self._paths:
            return True
        return isinstance(path, bytes) and spelling.key(path) in self._keys

    @cached_property
    def _keys(self) -> frozenset[bytes]:
        # Asked for only where something is in the way.
        if not spelling.folds(self._root):
            return frozenset()
        return frozenset(map(spelling.key, self._paths))


def look_ahead(
    root: Root, plan: FilePlan, *, tracked: frozenset[bytes] = frozenset()
) -> Ahead:
    """Returns what is where a plan would make something.

    `tracked` are paths that are this repository's though they lie in another one.
    """
    removed = {step.path for step in plan.steps if step.action in {DELETE, REMOVE_DIR}}
    going = _Going(root, removed)
    root.forget()
    obstacles: dict[bytes, Left] = {}
    already: set[bytes] = set()
    seen: set[bytes] = set()
    twins = spelling.twins(step.path for step in plan.steps)
    for step in plan.steps:
        if step.after is None:
            continue
        others = twins.get(step.path, set()) - {step.path}
        if others - removed and spelling.folds(root):
            obstacles[step.path] = Left(step.path, _ONE_FILE)
            continue
        try:
            if step.before is not None:
                continue
            if step.path not in tracked:
                for left in _on_the_way(root, step.path, going, seen):
                    obstacles[left.path] = left
            there = root.lstat(step.path)
            if there is None or (others and not spelling.is_listed(root, step.path)):
                continue
            if _state(root, step) is _Now.AFTER:
                already.add(step.path)
                continue
            for left in _in_the_way(root, step.path, there, going):
                obstacles[left.path] = left
        except PermissionError:
            obstacles[step.path] = Left(step.path, "in a directory that cannot be read")
    return Ahead(sorted(obstacles.values()), already)


def _on_the_way(
    root: Root, path: bytes, removed: Container[bytes], seen: set[bytes]
) -> Iterator[Left]:
    """Yields what is where a directory above a path has to be."""
    for above in _ancestors(path):
        if above in seen:
            continue
        seen.add(above)
        there = root.lstat(above)
        if there is None:
            break
        if not files.is_directory(there):
            if above not in removed:
                yield Left(above, _IN_THE_WAY)
            break
        if root.lstat(above + b"/.git") is not None:
            yield Left(above, "a nested repository is in the way")
            break


def _in_the_way(
    root: Root, path: bytes, there: os.stat_result, removed: Container[bytes]
) -> Iterator[Left]:
    """Yields what no checkpoint holds where a path has to be."""
    if files.is_directory(there):
        for inside in _content(root, path, removed):
            yield Left(inside, _IN_THE_WAY)
    elif path not in removed:
        yield Left(path, _IN_THE_WAY)


def apply(
    root: Root, plan: FilePlan, stream: Stream, *, token: str, tolerant: bool = False
) -> list[Left]:
    """Carries out a plan; returns the paths that were not as the plan expected.

    `stream` yields the content of a blob; `token` names the temporary files, so that
    what a killed run left is found. `tolerant` leaves paths whose content is damaged.

    Raises:
        CorruptError: a blob cannot be read.
        StorageError: the disk refused; the plan can be applied again, or reversed.
    """
    left: list[Left] = []
    report = progress.of("writing files:")
    last = ""
    # A path that changes its kind has two steps.
    final = {step.path: step for step in plan.steps if step.after is not None}
    twins = spelling.twins(step.path for step in plan.steps)
    with durable.storage("restoring files"):
        for done, step in enumerate(plan.steps):
            if report is not None:
                report(done, len(plan.steps))
            if step.action != last:
                # Directories kept open may be about to go, or to be replaced.
                root.forget()
                last = step.action
            try:
                if step.path in twins and _is_respelled(root, step):
                    continue
                problem = _carry_out(root, step, stream, token)
            except (NotADirectoryError, FileNotFoundError):
                # Another process moves directories while we work.
                root.forget()
                problem = CHANGED
            except CorruptError as exc:
                if not tolerant:
                    raise
                problem = f"its content cannot be read: {exc.message}"
            except OSError as exc:
                # The temporary file that it names would mean nothing to the user.
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


def _is_respelled(root: Root, step: FileStep) -> bool:
    """Whether a path that is to go is found only because a new spelling is there."""
    return step.after is None and not spelling.is_listed(root, step.path)


def is_done(root: Root, step: FileStep) -> bool:
    """Whether a path holds what a step was to bring about, in this very spelling."""
    if _state(root, step) is not _Now.AFTER:
        return step.after is None and not spelling.is_listed(root, step.path)
    return step.after is None or spelling.is_listed(root, step.path)


def conflicts(root: Root, plan: FilePlan) -> list[Left]:
    """Returns the paths that hold neither what a plan starts from nor what it makes."""
    root.forget()
    return [
        Left(step.path, CHANGED)
        for step in plan.steps
        if step.action not in {MAKE_DIR, REMOVE_DIR}
        and _state(root, step) is _Now.OTHER
    ]


def _carry_out(root: Root, step: FileStep, stream: Stream, token: str) -> str | None:
    seen = _look(root, step)
    now = _compare(seen, step)
    if now is _Now.AFTER:
        return None
    if step.action == REMOVE_DIR:
        return _remove_directory(root, step.path)
    if now is _Now.OTHER:
        return CHANGED
    if step.action == MAKE_DIR:
        root.make_directory(step.path)
        return None
    if step.after is None:
        fd, name = root.parent(step.path)
        return replace.remove(fd, name, seen, token)
    fd = root.make_directory(step.path.rpartition(b"/")[0])
    name = step.path.rpartition(b"/")[2]
    # Through a hard link the mode of another file would change, here or elsewhere.
    if step.action == CHMOD and seen.stat is not None and seen.stat.st_nlink == 1:
        _change_mode(root, step.path, step.after)
        return None
    temporary = replace.temporary_name(token, name)
    if step.action == LINK_TO:
        os.symlink(b"".join(stream(step.after.oid)), temporary, dir_fd=fd)
    else:
        _write(fd, temporary, step.after, stream, seen.stat)
    if step.before is None:
        return replace.place(fd, temporary, name)
    return replace.swap(fd, temporary, step, seen, token)


def _sync(root: Root, plan: FilePlan) -> None:
    """Makes the names that a plan gave and took durable."""
    directories = {step.path.rpartition(b"/")[0] for step in plan.steps}
    directories |= {
        above for directory in directories for above in (b"", *_ancestors(directory))
    }
    report = progress.of("syncing directories:")
    for done, directory in enumerate(sorted(directories)):
        if report is not None:
            report(done, len(directories))
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.fsync(root.directory(directory))


def _write(
    directory: int,
    temporary: bytes,
    entry: Entry,
    stream: Stream,
    old: os.stat_result | None,
) -> None:
    """Writes a complete file; permissions beyond the exec bit are those of `old`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666, dir_fd=directory)
    try:
        for chunk in stream(entry.oid):
            view = memoryview(chunk)
            while view:
                view = view[os.write(fd, view) :]
        keep = (
            stat.S_IMODE(os.fstat(fd).st_mode) if old is None else old.st_mode & 0o777
        )
        os.fchmod(fd, _with_mode(keep, entry.mode))
        os.fsync(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    finally:
        os.close(fd)


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
    """Removes a directory if it is empty: what no checkpoint holds keeps it."""
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


def _look(root: Root, step: FileStep) -> PreviousContent:
    expected = step.before or step.after
    is_link = expected is not None and expected.mode == LINK
    form = replace.form_for(step.before, step.after)
    return replace.look(root, step.path, form, link=is_link)


def _compare(seen: PreviousContent, step: FileStep) -> _Now:
    """Returns whether what was seen is what a step starts from, or what it makes."""
    if seen.entry == step.after:
        return _Now.AFTER
    return _Now.BEFORE if seen.entry == step.before else _Now.OTHER


def _state(root: Root, step: FileStep) -> _Now:
    return _compare(_look(root, step), step)


def _ancestors(path: bytes) -> Iterator[bytes]:
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)


def _content(
    root: Root, directory: bytes, removed: Container[bytes]
) -> Iterator[bytes]:
    """Yields what would stay in a directory once `removed` is gone."""
    names = sorted(os.fsencode(name) for name in os.listdir(root.directory(directory)))
    if b".git" in names or not (names or directory in removed):
        yield directory
        return
    for name in names:
        path = directory + b"/" + name
        status = root.lstat(path)
        if status is not None and files.is_directory(status):
            yield from _content(root, path, removed)
        elif path not in removed:
            yield path
