"""Numbers the checkpoints that have no number: pulled ones, and an older gitcp's."""

import heapq
import os
from collections.abc import Iterator
from contextlib import suppress

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format.numbers import ELSEWHERE, MAIN_TREE
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.publish import described, without_number
from gitcp.store.store import Store


def number_all(store: Store, *, place: str | None = None) -> None:
    """Gives every checkpoint of this repository's branches its number, oldest first.

    `place` is where those were made that have none; by default it is found out. In a bare
    repository nothing is numbered: it holds what adapters keep, or is a server's.

    Raises:
        BusyError: another process kept the list of numbers.
        StorageError: the disk refused.
    """
    numbers = store.numbers
    if store.repository.top is None:
        return
    refs = store.refs()
    unnamed = numbers.unnamed(refs.values())
    lines = [
        list(_unnumbered(store, oid))[::-1] for oid in refs.values() if oid in unnamed
    ]
    # Of each branch the oldest comes first, whatever the clocks said.
    ordered = heapq.merge(*lines, key=lambda checkpoint: checkpoint.manifest.created)
    trees = _linked_trees(store)
    wanted = {}
    for checkpoint in ordered:
        if checkpoint.oid not in wanted:
            where = place or _place(checkpoint, trees)
            wanted[checkpoint.oid] = described(checkpoint, where)
    if wanted:
        numbers.assign(wanted.values())


def _unnumbered(store: Store, tip: str) -> Iterator[Checkpoint]:
    """Yields the newest checkpoints of a branch, down to the first that has a number."""
    with suppress(CorruptError, FormatTooNewError):
        newest = store.checkpoint(tip)
        if newest is None or without_number(newest):
            return
        for checkpoint in store.line(newest):
            if store.numbers.number_of(checkpoint) is not None:
                return
            # One that cannot be read has no number, nor has what follows it.
            _ = checkpoint.manifest
            yield checkpoint


def _linked_trees(store: Store) -> frozenset[str]:
    """Returns the encoded names of the linked work trees."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return frozenset(
            map(encode, os.listdir(store.repository.common_dir / "worktrees"))
        )
    return frozenset()


def _place(checkpoint: Checkpoint, trees: frozenset[str]) -> str:
    """Returns where a checkpoint without a number was made, as far as it tells.

    In a linked work tree sessions, or branches of an agent's, have the tree's name.
    """
    with suppress(CorruptError, FormatTooNewError):
        if checkpoint.origin.files is not None:
            return ELSEWHERE
    trailers = checkpoint.trailers
    named = next((one for one in trailers[1:3] if one in trees), None)
    return named or MAIN_TREE


def note_pruned(store: Store, tip: Checkpoint, new: str) -> None:
    """Notes the numbers that go as a branch becomes a pruned form of itself.

    Raises:
        BusyError, StorageError: nothing was noted.
    """
    pruned = store.checkpoint(new)
    stay = {one.id for one in store.line(pruned)} if pruned is not None else set()
    going = [one.trailers for one in store.line(tip) if one.id not in stay]
    keys = [(one.id, one.key) for one in going]
    store.numbers.note_gone(keys, store.now())
