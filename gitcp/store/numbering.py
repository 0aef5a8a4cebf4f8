"""Numbers the checkpoints that have no number: pulled ones, and an older gitcp's."""

import hashlib
import heapq
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from gitcp import durable
from gitcp.errors import CorruptError, FormatTooNewError, StorageError
from gitcp.format.checkpoint import IMPORT
from gitcp.format.numbers import ELSEWHERE, MAIN_TREE
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.numbers import NAME
from gitcp.store.publish import described, without_number
from gitcp.store.store import Store

_COMPLETE = "numbered"


def number_all(store: Store, *, place: str | None = None) -> None:
    """Gives every checkpoint of this repository's branches its number, oldest first.

    `place` is where the checkpoints without a number were made; by default it is found
    out. A bare repository gets no numbers: adapters keep their records there, or it is a
    server's.

    Raises:
        BusyError: another process kept the list of numbers.
        StorageError: the disk refused.
    """
    numbers = store.numbers
    if store.repository.top is None:
        return
    refs = store.refs()
    known = _Known(store, refs.values())
    if known.complete:
        return
    unnamed = numbers.unnamed(refs.values())
    damaged: list[str] = []
    lines = [
        list(_unnumbered(store, oid, damaged))[::-1]
        for oid in refs.values()
        if oid in unnamed
    ]
    # On each branch the oldest comes first, whatever the clocks said.
    ordered = heapq.merge(*lines, key=lambda checkpoint: checkpoint.manifest.created)
    trees = _linked_trees(store)
    wanted = {}
    for checkpoint in ordered:
        if checkpoint.oid not in wanted:
            where = place or _place(checkpoint, trees)
            wanted[checkpoint.oid] = described(checkpoint, where)
    if wanted:
        numbers.assign(wanted.values())
    if not damaged:
        known.note_complete()


class _Known:
    """Remembers with which branches and list no number was missing; derived."""

    def __init__(self, store: Store, tips: Iterable[str]) -> None:
        self._store = store
        self._tips = "".join(tips)
        self._path = store.repository.store_dir / _COMPLETE

    @property
    def complete(self) -> bool:
        """Whether nothing has changed since none was missing."""
        with suppress(OSError):
            return self._path.read_bytes() == self._state()
        return False

    def note_complete(self) -> None:
        """Notes that none is missing now."""
        # A reader must not make a directory, and a repository without numbers has no
        # list.
        with suppress(StorageError), durable.storage("noting that all have a number"):
            durable.replace(self._path, self._state(), sync=False)

    def _state(self) -> bytes:
        listed = os.stat(self._store.repository.common_dir / NAME)
        state = f"{self._tips} {listed.st_ino} {listed.st_size}"
        return hashlib.sha256(state.encode()).hexdigest().encode()


def _unnumbered(store: Store, tip: str, damaged: list[str]) -> Iterator[Checkpoint]:
    """Yields the newest checkpoints of a branch, down to the first that has a number.

    A tip with an unreadable checkpoint below it is added to `damaged`.
    """
    try:
        newest = store.checkpoint(tip)
        if newest is None or without_number(newest):
            return
        for checkpoint in store.line(newest):
            if store.numbers.number_of(checkpoint) is not None:
                return
            # An unreadable checkpoint gets no number; nor do those after it.
            _ = checkpoint.manifest
            yield checkpoint
    except (CorruptError, FormatTooNewError):
        damaged.append(tip)


def _linked_trees(store: Store) -> frozenset[str]:
    """Returns the encoded names of the linked work trees."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return frozenset(
            map(encode, os.listdir(store.repository.common_dir / "worktrees"))
        )
    return frozenset()


def _place(checkpoint: Checkpoint, trees: frozenset[str]) -> str:
    """Returns the place of a checkpoint without a number, as far as its names tell.

    Sessions made in a linked work tree, or branches of an agent there, have its name.
    """
    with suppress(CorruptError, FormatTooNewError):
        if checkpoint.origin.files is not None or checkpoint.trigger == IMPORT:
            return ELSEWHERE
    trailers = checkpoint.trailers
    named = next((one for one in trailers[1:3] if one in trees), None)
    return named or MAIN_TREE


def note_pruned(store: Store, tip: Checkpoint, new: str) -> None:
    """Notes the numbers that are pruned when a branch becomes a pruned form of itself.

    Raises:
        BusyError, StorageError: nothing was noted.
    """
    pruned = store.checkpoint(new)
    stay = {one.id for one in store.line(pruned)} if pruned is not None else set()
    going = [one.trailers for one in store.line(tip) if one.id not in stay]
    keys = [(one.id, one.key) for one in going]
    store.numbers.note_gone(keys, store.now())
