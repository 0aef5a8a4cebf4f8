"""Cleans up temporary names that a killed restore left, keeping the user's files."""

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from gitcp import durable
from gitcp.format.tree import DIRECTORY, EXECUTABLE, FILE, LINK, Entry
from gitcp.worktree import files, renames, replace
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, Left
from gitcp.worktree.replace import Stream
from gitcp.worktree.scan import TEMPORARY

_SECTOR = 512


class _Sides(NamedTuple):
    """What a path held before, and what it is to hold; two where its kind changes."""

    before: list[Entry]
    after: list[Entry]


def settle(root: Root, plan: FilePlan, stream: Stream, token: str) -> list[Left]:
    """Clears away what killed runs of a plan, in either direction, left.

    Removed is only what a checkpoint holds: complete files, the beginnings of files
    that were being written, and what a power cut left of them. Any other file was moved
    aside and edited meanwhile. It gets its name back or, where that is taken, one beside
    it, and is returned.

    Raises:
        StorageError: the disk refused.
    """
    mark = TEMPORARY + token.encode() + b"-"
    places: dict[bytes, dict[bytes, _Sides]] = defaultdict(dict)
    for step in plan.steps:
        above, _, name = step.path.rpartition(b"/")
        sides = places[above].setdefault(name, _Sides([], []))
        sides.before.extend([step.before] if step.before is not None else ())
        sides.after.extend([step.after] if step.after is not None else ())
    left: list[Left] = []
    with durable.storage("clearing away temporary files"):
        for above, known in places.items():
            with suppress(FileNotFoundError, NotADirectoryError):
                fd = root.directory(above)
                names = [os.fsencode(name) for name in os.listdir(fd)]
                leftover = [name for name in names if name.startswith(mark)]
                left += _settle_directory(fd, above, leftover, known, stream, token)
        root.forget()
    return left


def _settle_directory(
    directory: int,
    above: bytes,
    leftover: list[bytes],
    known: dict[bytes, _Sides],
    stream: Stream,
    token: str,
) -> Iterator[Left]:
    owners = {replace.temporary_name(token, name): name for name in known}
    for temporary in leftover:
        name = owners.get(temporary.removesuffix(replace.OLD))
        if name is None:
            # gitcp 0.1.0 numbered them, and moved nothing of the user's aside.
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
    sides: _Sides,
    stream: Stream,
    token: str,
) -> str | None:
    """Puts one file right; returns what is to be reported."""
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

    What was written and not synced a power cut leaves as sectors of zeros.
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
    """Whether bytes are the held ones but for sectors that are zeros."""
    zeros = bytes(_SECTOR)
    for at in range(0, len(mine), _SECTOR):
        sector = mine[at : at + _SECTOR]
        if sector != held[at : at + _SECTOR] and sector != zeros[: len(sector)]:
            return False
    return True
