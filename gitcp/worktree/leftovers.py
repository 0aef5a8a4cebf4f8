"""Cleans up temporary names that a killed restore left, keeping the user's files."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from gitcp import durable
from gitcp.format.tree import DIRECTORY, EXECUTABLE, FILE, LINK, Entry
from gitcp.worktree import files, renames, replace
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, FileStep, Left
from gitcp.worktree.replace import Stream
from gitcp.worktree.scan import TEMPORARY

_SECTOR = 512


class Sides(NamedTuple):
    """The old and the new content of a path; there are two of them if its type changes."""

    before: list[Entry]
    after: list[Entry]


# By directory and name.
Known = dict[bytes, dict[bytes, Sides]]


class Staged(NamedTuple):
    """A directory that was written under a temporary name: its final path, and its present one.

    Git wrote for this process whatever has not changed since `until`, in nanoseconds.
    """

    place: bytes
    now: bytes
    until: int = 0


def sides_of(steps: Iterable[FileStep]) -> Known:
    """Returns what the paths of some steps hold before and after them."""
    places: Known = defaultdict(dict)
    for step in steps:
        above, _, name = step.path.rpartition(b"/")
        sides = places[above].setdefault(name, Sides([], []))
        sides.before.extend([step.before] if step.before is not None else ())
        sides.after.extend([step.after] if step.after is not None else ())
    return places


def settle(root: Root, plan: FilePlan, stream: Stream, token: str) -> list[Left]:
    """Removes the temporary files of killed runs of a plan, in either direction.

    It removes only content that a checkpoint holds: complete files, the beginnings of
    files that were being written, and what a power cut left of these. Any other file was
    moved aside and edited meanwhile: it gets its name back or, if that is taken, one
    beside it, and is returned.

    Raises:
        StorageError: the disk refused.
    """
    mark = TEMPORARY + token.encode() + b"-"
    places = sides_of(plan.steps)
    left: list[Left] = []
    with durable.storage("clearing away temporary files"):
        for above, known in list(places.items()):
            with suppress(FileNotFoundError, NotADirectoryError):
                fd = root.directory(above)
                names = [os.fsencode(name) for name in os.listdir(fd)]
                leftover = [name for name in names if name.startswith(mark)]
                staged = _directories(fd, above, leftover, known, token)
                leftover = [name for name in leftover if name not in staged]
                left += _settle_directory(fd, above, leftover, known, stream, token)
                for one in staged.values():
                    kept = clear(root, one, places, stream, token)
                    left += [Left(one.place, kept)] if kept is not None else ()
        root.forget()
    return left


def _directories(
    directory: int,
    above: bytes,
    leftover: Iterable[bytes],
    known: Iterable[bytes],
    token: str,
) -> dict[bytes, Staged]:
    """Returns the directories among temporary names, by name."""
    prefix = above + b"/" if above else b""
    owners = {replace.temporary_name(token, name): name for name in known}
    found = {}
    for name in leftover:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if name in owners and files.is_directory(status):
            found[name] = Staged(prefix + owners[name], prefix + name)
    return found


def clear(
    root: Root, staged: Staged, known: Known, stream: Stream, token: str
) -> str | None:
    """Removes a directory that did not get its name, if a checkpoint holds everything in it.

    If it holds anything else, all of it stays, beside its final path; returns how to
    report that. An absent directory is fine.

    Raises:
        OSError: the disk refused.
    """
    try:
        inside = list(_inside(root, staged.now))
    except (FileNotFoundError, NotADirectoryError):
        root.forget()
        return None
    skip = len(staged.now)
    for directory, names in inside:
        places = known.get(staged.place + directory[skip:], {})
        for name in names:
            sides = places.get(name)
            fd = root.directory(directory)
            if sides is None or not _may_go(fd, name, sides, stream, staged.until):
                root.forget()
                above, temporary = root.parent(staged.now)
                place = staged.place.rpartition(b"/")[2]
                return replace.beside(above, temporary, place, token)
    for directory, names in reversed(inside):
        for name in names:
            os.unlink(name, dir_fd=root.directory(directory))
        root.forget()
        above, name = root.parent(directory)
        os.rmdir(name, dir_fd=above)
    return None


def _inside(root: Root, directory: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yields a directory and all below it, each with the names that are no directories."""
    with os.scandir(root.directory(directory)) as listed:
        entries = [
            (os.fsencode(entry.name), entry.is_dir(follow_symlinks=False))
            for entry in listed
        ]
    yield directory, [name for name, below in entries if not below]
    for name, below in entries:
        if below:
            yield from _inside(root, directory + b"/" + name)


def _may_go(
    directory: int, name: bytes, sides: Sides, stream: Stream, until: int
) -> bool:
    """Whether a checkpoint holds a file or a continuation of it, or git has just written it."""
    if os.stat(name, dir_fd=directory, follow_symlinks=False).st_ctime_ns <= until:
        return True
    held = sides.before + sides.after
    there = replace.look_at(directory, name, replace.form_for(*held)).entry
    if there is not None and _content(there) in map(_content, held):
        return True
    return any(_begins(directory, name, entry, stream) for entry in held)


def _settle_directory(
    directory: int,
    above: bytes,
    leftover: list[bytes],
    known: dict[bytes, Sides],
    stream: Stream,
    token: str,
) -> Iterator[Left]:
    owners = {replace.temporary_name(token, name): name for name in known}
    for temporary in leftover:
        name = owners.get(temporary.removesuffix(replace.OLD))
        if name is None:
            # gitcp 0.1.0 numbered temporary files, and never moved a user's file aside.
            if temporary.rpartition(b"-")[2].isdigit():
                os.unlink(temporary, dir_fd=directory)
            continue
        kept = _settle(directory, temporary, name, known[name], stream, token)
        if kept is not None:
            path = above + b"/" + name if above else name
            yield Left(path, kept)


def _settle(
    directory: int,
    temporary: bytes,
    name: bytes,
    sides: Sides,
    stream: Stream,
    token: str,
) -> str | None:
    """Cleans up after one file; returns what to report."""
    held = sides.before + sides.after
    content = {_content(entry) for entry in held}
    form = replace.form_for(*held)
    there = replace.look_at(directory, name, form).entry
    mine = replace.look_at(directory, temporary, form).entry
    if mine is not None and _content(mine) in content:
        if there is None and _content(mine) in map(_content, sides.before):
            # The old file, with all of its permissions. A new one may not be on the disk
            # yet: it is written again, and synced before it gets the name.
            replace.put_back(directory, temporary, name, token)
        else:
            os.unlink(temporary, dir_fd=directory)
        return None
    if any(_begins(directory, temporary, entry, stream) for entry in held):
        os.unlink(temporary, dir_fd=directory)
        return None
    if (
        there is not None
        and _content(there) in content
        and there.mode != DIRECTORY
        and renames.exchange(directory, temporary, name)
    ):
        if replace.look_at(directory, temporary, form).entry == there:
            os.unlink(temporary, dir_fd=directory)
            return replace.CHANGED
        return replace.beside(directory, temporary, name, token)
    return replace.put_back(directory, temporary, name, token)


def _content(entry: Entry) -> Entry:
    """Returns an entry without the exec bit: only the bytes have to be held."""
    return entry._replace(mode=FILE) if entry.mode == EXECUTABLE else entry


def _begins(directory: int, name: bytes, entry: Entry, stream: Stream) -> bool:
    """Whether a file is an unfinished copy of an entry's content.

    After a power cut, bytes that were written but not synced may be sectors of zeros.
    """
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if entry.mode in {DIRECTORY, LINK} or not files.is_regular(status):
        return False
    fd = files.open_file(directory, name)
    try:
        for chunk in stream(entry.oid):
            view = memoryview(chunk)
            while view:
                mine = os.read(fd, len(view))
                if not mine:
                    return True
                if view[: len(mine)] != mine and not _torn(view[: len(mine)], mine):
                    return False
                view = view[len(mine) :]
        return not os.read(fd, 1)
    finally:
        os.close(fd)


def _torn(held: memoryview, mine: bytes) -> bool:
    """Whether bytes equal the held ones except for sectors of zeros."""
    zeros = bytes(_SECTOR)
    for at in range(0, len(mine), _SECTOR):
        sector = mine[at : at + _SECTOR]
        if sector != held[at : at + _SECTOR] and sector != zeros[: len(sector)]:
            return False
    return True
