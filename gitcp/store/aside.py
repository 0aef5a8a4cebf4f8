"""Keeps acknowledged checkpoints whose branch another process moved: `NAME-aside-1`."""

from gitcp.errors import CorruptError
from gitcp.format import layout
from gitcp.git.transaction import Transaction
from gitcp.names import decode
from gitcp.store.builder import BranchSlot, CheckpointBuilder
from gitcp.store.store import Store
from gitcp.wal.drain import Conflict, is_below


def keep_aside(txn: Transaction, conflict: Conflict) -> None:
    """Makes a branch beside the moved one, forked where the write-ahead log ends.

    Raises:
        CorruptError: the log does not end in a checkpoint.
    """
    # Only the first parents: below a branch lies the user's own history.
    if is_below(txn, conflict, first_parent=True):
        return
    store = Store(txn.repository)
    checkpoint = store.checkpoint(conflict.new)
    if checkpoint is None:
        raise CorruptError(
            f"the redo log of {conflict.ref} ends in {conflict.new},"
            " which is not a checkpoint",
            hint="run `gitcp verify`",
        )
    component = conflict.ref.removeprefix(layout.SESSIONS).split("/")[1]
    branch = decode(component) or checkpoint.branch
    number = 1
    while store.tip(checkpoint.session, f"{branch}-aside-{number}") is not None:
        number += 1
    name = f"{branch}-aside-{number}"
    slot = BranchSlot(checkpoint.session, name, 1, checkpoint.oid, checkpoint.id)
    new = CheckpointBuilder(txn, store.seals).recreate(checkpoint, slot)
    txn.publish(layout.branch_ref(checkpoint.session, name), expect=None, new=new)
