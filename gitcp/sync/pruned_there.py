"""Branches whose older checkpoints were pruned on a remote, and the same here.

Ours may have grown meanwhile, or theirs. If both have, the branch has diverged.
"""

from typing import NamedTuple

from gitcp.format.layout import BranchKey
from gitcp.git.drop_unreachable import store_locked
from gitcp.git.transaction import Transaction
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.numbering import note_pruned
from gitcp.store.rewrite import AS_IT_IS, NewContent, rewrite
from gitcp.store.store import Store
from gitcp.sync.history import is_pruned_form


class PrunedThere(NamedTuple):
    """Two forms of a branch: `ours` and `theirs` are the tips.

    `common` is the newest checkpoint of ours that they had when they pruned: their tip as
    it is here, or our tip.
    """

    ours: Checkpoint
    theirs: Checkpoint
    common: Checkpoint

    @property
    def has_more(self) -> bool:
        """Whether there are checkpoints there that are not here."""
        return self.theirs.id != self.common.id


def pruned_there(store: Store, ours: Checkpoint, oid: str) -> PrunedThere | None:
    """Returns how a remote pruned a branch; None if it did not, or if both have grown since.

    `ours` is the tip here, `oid` the commit of the tip there, which is here as well.
    """
    theirs = store.checkpoint(oid)
    if theirs is None:
        return None
    common: Checkpoint | None = ours
    # Theirs first: after a fast-forward our tip is found near the end of their line.
    if all(one.id != ours.id for one in store.line(theirs)):
        common = next((one for one in store.line(ours) if one.id == theirs.id), None)
    if common is None or not is_pruned_form(store, of=common.commit, line=oid):
        return None
    return PrunedThere(ours, theirs, common)


def prune_here(
    store: Store, txn: Transaction, key: BranchKey, branch: PrunedThere
) -> str:
    """Removes the same checkpoints here, and returns the new tip.

    Raises:
        BusyError: `gc` or a pruning is at work here, or holds a ref's lock.
        BranchMovedError: the branch moved meanwhile; nothing was removed.
        StorageError: the disk refused; nothing was removed, or everything will be.
    """
    ours, theirs, common = branch
    with store_locked(store.repository, timeout=1):
        if common == ours:
            note_pruned(store, ours, theirs.commit)
            txn.move_ref(key.ref, expect=ours.commit, new=theirs.commit)
            return theirs.commit
        # What was saved after it is made again on the form that they have.
        stay = {one.id for one in store.line(theirs)}
        go = {one.oid for one in store.line(common) if one.id not in stay}

        def change(found: Checkpoint) -> NewContent | None:
            return None if found.oid in go else AS_IT_IS

        return rewrite(store, txn, [key.ref], change).moved[key.ref][1]
