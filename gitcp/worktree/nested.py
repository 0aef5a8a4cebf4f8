"""Adds nested repositories, submodules and omitted files to the tree of a capture."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from gitcp.format import tree as trees
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import GITLINK, Entry
from gitcp.git.discover import nested_head
from gitcp.worktree.names import parents
from gitcp.worktree.scan import empty_directories
from gitcp.worktree.state import ScanState
from gitcp.worktree.tracked import is_leaf

Lookup = Callable[[bytes], Entry | None]
Changes = dict[bytes, Entry | None]


def enter(
    top: Path,
    form: ObjectFormat,
    state: ScanState,
    sparse: Mapping[bytes, Entry],
    changes: Changes,
    previous: Lookup,
) -> None:
    """Records HEADs of nested repositories, and what a sparse checkout omits (`sparse`)."""
    occupied = _occupied(state, sparse, changes, previous)
    for path in state.nested:
        if path in occupied:
            continue
        oid = nested_head(top / os.fsdecode(path), form)
        state.nested[path] = oid
        expected = Entry(GITLINK, oid) if oid is not None else None
        if previous(path) != expected or path in changes:
            changes[path] = expected
    dropped = {path for path, entry in changes.items() if entry is None}
    for path, entry in sparse.items():
        inside = not state.nested.keys().isdisjoint(parents(path))
        if entry.mode == GITLINK and inside:
            # The repository around it counts instead; it may be newer.
            if previous(path) is not None:
                changes[path] = None
            continue
        if (
            previous(path) != entry
            or path in dropped
            or not dropped.isdisjoint(parents(path))
        ):
            changes[path] = entry


def not_checked_out(state: ScanState, captured: Lookup, head: Lookup) -> Changes:
    """Notes submodules that are empty directories; returns the entries that they add to a tree.

    `captured` looks a path up in that tree, `head` in HEAD's. A submodule with an
    ignored file that is captured all the same counts as a plain directory.
    """
    changes: Changes = {}
    for path in empty_directories(state):
        entry = head(path)
        if entry is None or entry.mode != GITLINK:
            continue
        there = captured(path)
        if there is None or there.mode != trees.DIRECTORY:
            changes[path] = entry
            state.nested[path] = entry.oid
    return changes


def _occupied(
    state: ScanState,
    sparse: Mapping[bytes, Entry],
    changes: Changes,
    previous: Lookup,
) -> set[bytes]:
    """Returns the nested repositories in which this one has files of its own.

    They are directories in the tree, and no gitlinks.
    """
    occupied: set[bytes] = set()
    for path in {*state.forced, *sparse} if state.nested else ():
        above = state.nested.keys() & set(parents(path))
        if not above or above <= occupied:
            continue
        entry = changes[path] if path in changes else previous(path)
        if is_leaf(sparse.get(path, entry)):
            occupied |= above
    return occupied
