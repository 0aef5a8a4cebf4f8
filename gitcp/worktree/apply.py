"""Carries out a plan: the only code that changes files of a user's work tree.

A path is touched only while it holds what the plan says it held before (I6); one that
holds the result already is left alone. So applying is repeatable, and applying the
reversed plan undoes it. libgit2's checkout is never used: it writes through symbolic
links.
"""

import os
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from gitcp import durable, progress
from gitcp.errors import CorruptError
from gitcp.worktree import bulk as bulks
from gitcp.worktree import files, one_step, spelling
from gitcp.worktree.bulk import BulkWriter, Streams
from gitcp.worktree.disks import Disks
from gitcp.worktree.files import Root
from gitcp.worktree.one_step import Held
from gitcp.worktree.plan import (
    DELETE,
    FIRST,
    MAKE_DIR,
    REMOVE_DIR,
    WRITE,
    FilePlan,
    FileStep,
    Left,
)
from gitcp.worktree.read import Written
from gitcp.worktree.replace import CHANGED, Stream
from gitcp.worktree.staging import Staging

_ONE_FILE = "this disk treats it and another name of the checkpoint as the same"
_IN_THE_WAY = "not captured and in the way"


class Ahead(NamedTuple):
    """Content at paths where a plan expects nothing.

    No checkpoint holds the `obstacles`, which would have to be overwritten. `already`
    are uncaptured paths that hold what the plan would write there.
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
        # Computed only if something is in the way.
        if not spelling.folds(self._root):
            return frozenset()
        return frozenset(map(spelling.key, self._paths))


def look_ahead(
    root: Root, plan: FilePlan, *, tracked: frozenset[bytes] = frozenset()
) -> Ahead:
    """Returns the content at paths that a plan would create.

    `tracked` are paths that belong to this repository although they lie in another one.
    """
    removed = {step.path for step in plan.steps if step.action in {DELETE, REMOVE_DIR}}
    going = _Going(root, removed)
    root.forget()
    obstacles: dict[bytes, Left] = {}
    already: set[bytes] = set()
    seen: set[bytes] = set()
    twins = spelling.twins(step.path for step in plan.steps)
    # Directories that do not exist, so nothing below them does.
    absent: set[bytes] = set()
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
            if step.path.rpartition(b"/")[0] in absent:
                absent.add(step.path)
                continue
            if step.path not in tracked:
                for left in _on_the_way(root, step.path, going, seen):
                    obstacles[left.path] = left
            there = root.lstat(step.path)
            if there is None and step.action == MAKE_DIR:
                absent.add(step.path)
            if there is None or (others and not spelling.is_listed(root, step.path)):
                continue
            if one_step.state(root, step) is Held.AFTER:
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
    """Yields the content at the places of the directories above a path."""
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
    """Yields the content at a path that no checkpoint holds."""
    if files.is_directory(there):
        for inside in _content(root, path, removed):
            yield Left(inside, _IN_THE_WAY)
    elif path not in removed:
        yield Left(path, _IN_THE_WAY)


def apply(
    root: Root,
    plan: FilePlan,
    stream: Stream,
    *,
    token: str,
    tolerant: bool = False,
    streams: Streams | None = None,
    written: Written | None = None,
    staging: Staging | None = None,
) -> list[Left]:
    """Carries out a plan; returns the paths that were not as the plan expected.

    `stream` yields the content of a blob, `streams` that of many, for writing in bulk.
    `token` names the temporary files, so that those of a killed run are found. `tolerant`
    skips paths whose content is damaged. `written` receives the files that were written in
    bulk, with their stat. `staging` has directories that wait for their names.

    Raises:
        CorruptError: a blob cannot be read.
        StorageError: the disk refused; the plan can be applied again, or reversed.
    """
    with durable.storage("restoring files"), Disks() as disks:
        steps: Sequence[FileStep] = plan.steps
        left: list[Left] = []
        if len(steps) >= bulks.AT_LEAST:
            disks.note(root.fd)
        if staging is not None:
            # They come first in any plan.
            away = [step for step in steps if step.action in FIRST]
            left += _one_by_one(root, away, plan, stream, token, tolerant=tolerant)
            placed = staging.place(disks)
            steps = [step for step in steps[len(away) :] if step.path not in placed]
        bulk: list[FileStep] = []
        if streams is not None and bulks.is_many(steps):
            bulk = [step for step in steps if step.action == WRITE]
            # They come last in any plan.
            steps = [step for step in steps if step.action != WRITE]
        left += _one_by_one(root, steps, plan, stream, token, tolerant=tolerant)
        if bulk and streams is not None:
            writer = BulkWriter(
                root,
                streams,
                disks,
                token=token,
                tolerant=tolerant,
                written=written,
                made={step.path for step in steps if step.action == MAKE_DIR},
            )
            left += writer.write(bulk)
            more = _one_by_one(
                root, writer.alone, plan, stream, token, tolerant=tolerant
            )
            left += more
        _sync(root, plan, disks)
        root.forget()
    return left


def _one_by_one(
    root: Root,
    steps: Sequence[FileStep],
    plan: FilePlan,
    stream: Stream,
    token: str,
    *,
    tolerant: bool,
) -> list[Left]:
    """Carries out some steps of a plan; returns what was not as expected."""
    if not steps:
        return []
    left: list[Left] = []
    report = progress.of("writing files:")
    last = ""
    # A path that changes its type has two steps.
    final = {step.path: step for step in plan.steps if step.after is not None}
    twins = spelling.twins(step.path for step in plan.steps)
    for done, step in enumerate(steps):
        if report is not None:
            report(done, len(plan.steps))
        if step.action != last:
            # Directories that are kept open may be removed or replaced by this step.
            root.forget()
            last = step.action
        try:
            if step.path in twins and _is_respelled(root, step):
                continue
            problem = one_step.carry_out(root, step, stream, token)
        except (NotADirectoryError, FileNotFoundError):
            # Another process moves directories at the same time.
            root.forget()
            problem = CHANGED
        except CorruptError as exc:
            if not tolerant:
                raise
            problem = f"its content cannot be read: {exc.message}"
        except OSError as exc:
            # Its temporary name would mean nothing to the user.
            exc.filename = step.path
            raise
        again = final.get(step.path) if step.after is None else None
        if problem and again and one_step.state(root, again) is Held.AFTER:
            problem = None
        if problem:
            left.append(Left(step.path, problem))
    root.forget()
    return left


def _is_respelled(root: Root, step: FileStep) -> bool:
    """Whether a path to remove is found only because a file with another spelling exists."""
    return step.after is None and not spelling.is_listed(root, step.path)


def is_done(root: Root, step: FileStep) -> bool:
    """Whether a path, in exactly this spelling, holds the result of a step."""
    if one_step.state(root, step) is not Held.AFTER:
        return step.after is None and not spelling.is_listed(root, step.path)
    return step.after is None or spelling.is_listed(root, step.path)


def conflicts(root: Root, plan: FilePlan) -> list[Left]:
    """Returns the paths that hold neither the state before a plan nor the one after it."""
    root.forget()
    return [
        Left(step.path, CHANGED)
        for step in plan.steps
        if step.action not in {MAKE_DIR, REMOVE_DIR}
        and one_step.state(root, step) is Held.OTHER
    ]


def _sync(root: Root, plan: FilePlan, disks: Disks) -> None:
    """Makes the names that a plan created and removed durable."""
    directories = {step.path.rpartition(b"/")[0] for step in plan.steps}
    directories |= {
        above for directory in directories for above in (b"", *_ancestors(directory))
    }
    report = progress.of("syncing directories:")
    for done, directory in enumerate(sorted(directories)):
        if report is not None:
            report(done, len(directories))
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            disks.sync_directory(root, directory)
    disks.sync()


def _ancestors(path: bytes) -> Iterator[bytes]:
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)


def _content(
    root: Root, directory: bytes, removed: Container[bytes]
) -> Iterator[bytes]:
    """Yields the names that stay in a directory after `removed` are gone."""
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
