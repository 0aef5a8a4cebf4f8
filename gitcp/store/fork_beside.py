"""Keeps a line of checkpoints, lost or from elsewhere, as a fork beside ours."""

from typing import NamedTuple

from gitcp.errors import BranchMovedError
from gitcp.git.transaction import Transaction
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import fork_draft
from gitcp.store.store import Store


class KeptBeside(NamedTuple):
    """The branch that holds the line, its tip, and whether it was made just now."""

    branch: str
    commit: str
    is_new: bool


def keep_beside(
    store: Store, txn: Transaction, tip: Checkpoint, suffix: str
) -> KeptBeside:
    """Forks a line as `BRANCH~SUFFIX`; the same line twice makes one fork.

    Raises:
        BusyError: the ref stayed locked.
        StorageError: the disk refused.
    """
    number = 1
    while True:
        name = (
            f"{tip.branch}~{suffix}"
            if number == 1
            else f"{tip.branch}~{suffix}-{number}"
        )
        standing = store.tip(tip.session, name)
        if standing is not None:
            if store.holds(standing.commit, tip):
                return KeptBeside(name, standing.commit, is_new=False)
            number += 1
            continue
        try:
            fork = store.append(txn, tip.session, name, fork_draft(tip)).checkpoint
        except BranchMovedError:
            # Another process took the name; it may be for the same line.
            continue
        return KeptBeside(name, fork.commit, is_new=True)
