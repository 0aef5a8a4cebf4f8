"""Selects the files of a branch's first checkpoint to index: those that differ from its base.

Each conversation has a branch of its own, and its first checkpoint has every file of the
project. Most of these files are in the index already, because the checkpoint made before it in
the same work tree has them, too. So a first checkpoint only adds the files that differ from
that checkpoint, its base.
"""

import sqlite3

from gitcp.errors import CorruptError, FormatTooNewError, TransferError
from gitcp.format import tree
from gitcp.format.layout import BranchKey
from gitcp.format.tree import Change
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# So many earlier checkpoints are searched for one in the same work tree.
_TRIED = 32
_BEFORE = (
    "SELECT n, oid, ident, session, branch FROM checkpoints WHERE whole = 1"
    " AND agent IS ? AND (created, n) < (?, ?) ORDER BY created DESC, n DESC LIMIT ?"
)


class Beginnings:
    """Finds the bases of first checkpoints, and those whose base is gone."""

    def __init__(self, store: Store, index: sqlite3.Connection) -> None:
        self._store = store
        self._index = index

    def changes(self, checkpoint: Checkpoint, n: int) -> tuple[Change, ...]:
        """Returns the changes that the first checkpoint of a branch adds; notes its base.

        Raises:
            CorruptError: a tree is missing.
        """
        base = self._base(checkpoint, n)
        if base is None:
            return checkpoint.changes
        number, before = base
        self._index.execute("UPDATE checkpoints SET base = ? WHERE n = ?", (number, n))
        objects = checkpoint.objects
        found = tree.diff(before.files_tree, checkpoint.files_tree, objects.files)
        return tuple(change for change in found if change.new is not None)

    def orphans(self) -> list[tuple[int, bytes]]:
        """Returns number and oid of first checkpoints whose base is gone, the oldest first."""
        found = self._index.execute(
            "SELECT n, oid FROM checkpoints WHERE base IS NOT NULL"
            " AND base NOT IN (SELECT n FROM checkpoints) ORDER BY created, n"
        ).fetchall()
        self._index.executemany(
            "UPDATE checkpoints SET base = NULL WHERE n = ?", [(n,) for n, _ in found]
        )
        return found

    def _base(self, checkpoint: Checkpoint, n: int) -> tuple[int, Checkpoint] | None:
        """Returns the checkpoint made before by the same client in the same work tree."""
        if not checkpoint.holds_files:
            return None
        row = self._index.execute(
            "SELECT agent, created FROM checkpoints WHERE n = ?", (n,)
        ).fetchone()
        place = self._place_of(checkpoint.id, checkpoint.trailers.key)
        if place is None:
            return None
        before = self._index.execute(_BEFORE, (*row, n, _TRIED)).fetchall()
        for number, oid, ident, session, branch in before:
            if self._place_of(ident, BranchKey(session, branch)) != place:
                continue
            try:
                found = self._store.checkpoint(oid)
                if found is not None and found.holds_files:
                    return number, found
            except (CorruptError, FormatTooNewError, TransferError):
                continue
        return None

    def _place_of(self, ident: str, key: BranchKey) -> str | None:
        """Returns the work tree in which a checkpoint was made; None without a number."""
        numbers = self._store.numbers
        number = numbers.of(ident, key)
        entry = numbers.find(number) if number is not None else None
        return entry.place if entry is not None else None
