"""Keeps a line of checkpoints, lost or from elsewhere, as a fork beside ours."""

from collections.abc import Collection
from typing import NamedTuple

from gitcp.errors import BranchMovedError
from gitcp.format.layout import BranchKey, RefKey
from gitcp.git.transaction import Transaction
from gitcp.store.append import append_checkpoint
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import fork_draft
from gitcp.store.store import Store


class KeptBeside(NamedTuple):
    """The branch that holds the line, its tip, and whether it was made just now."""

    branch: str
    commit: str
    is_new: bool


def keep_beside(
    store: Store,
    txn: Transaction,
    tip: Checkpoint,
    suffix: str,
    *,
    stem: str | None = None,
    taken: Collection[RefKey] = (),
    unfit: Collection[RefKey] = (),
) -> KeptBeside:
    """Forks a line as `BRANCH~SUFFIX`; a second call with the same line returns that fork.

    `stem` replaces the branch's name in front. A new fork never gets a `taken` name, and an
    `unfit` branch is never returned as the fork.

    Raises:
        BusyError: the ref stayed locked.
        StorageError: the disk refused.
    """
    number = 1
    stem = stem or tip.branch
    while True:
        name = f"{stem}~{suffix}" if number == 1 else f"{stem}~{suffix}-{number}"
        standing = store.tip(tip.session, name)
        if standing is not None:
            fit = BranchKey.of(tip.session, name) not in unfit
            if fit and store.holds(standing.commit, tip):
                return KeptBeside(name, standing.commit, is_new=False)
            number += 1
            continue
        if BranchKey.of(tip.session, name) in taken:
            number += 1
            continue
        try:
            fork = append_checkpoint(
                store, txn, tip.session, name, fork_draft(tip)
            ).checkpoint
        except BranchMovedError:
            # Another process took the name; it may be for the same line.
            continue
        return KeptBeside(name, fork.commit, is_new=True)
