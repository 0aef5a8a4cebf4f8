"""Appends a checkpoint to a branch: makes the next one, publishes it, and numbers it."""

import os
from collections.abc import Callable

from gitcp import durable
from gitcp.errors import BranchMovedError, CorruptError
from gitcp.format.commit import parse_commit
from gitcp.format.layout import BranchKey
from gitcp.git.transaction import Transaction
from gitcp.store.builder import Built
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, Saved
from gitcp.store.publish import give_number, publish
from gitcp.store.store import Store
from gitcp.store.successor import LedgerPosition, Successor

_RETRIES = 50


def append_checkpoint(
    store: Store, transaction: Transaction, session: str, branch: str, draft: Draft
) -> Saved:
    """Makes a checkpoint at the tip of a branch, durably.

    If another process was faster, the checkpoint is made again on the new tip.

    Raises:
        BranchMovedError: the branch kept moving, or the fork's name is taken.
        BusyError: the ref stayed locked.
        StorageError: the disk refused.
    """
    saved = grow(store, transaction, session, branch, lambda _: draft)
    assert saved is not None
    return saved


def grow(
    store: Store,
    transaction: Transaction,
    session: str,
    branch: str,
    make: Callable[[Checkpoint | None], Draft | None],
) -> Saved | None:
    """Appends what `make` returns for the tip; for each new tip it is asked again.

    Returns None if `make` has nothing to add.

    Raises:
        BranchMovedError, BusyError, StorageError: as `append_checkpoint` does.
    """
    key = BranchKey.of(session, branch)
    thorough = False
    # All attempts share one id, by which the rest of a failed attempt is recognized.
    ident = ""
    for _ in range(_RETRIES):
        standing = store.standing(key, thorough=thorough)
        tip, damage = standing.checkpoint, standing.damage
        if damage is not None and not store.salvage.is_certain(damage):
            raise damage
        draft = make(tip)
        if draft is None:
            return None
        ident = draft.id or ident or os.urandom(6).hex()
        draft = draft._replace(id=ident)
        if draft.fork_of is not None and tip is not None:
            raise BranchMovedError(
                f"the branch {branch!r} of {session!r} exists",
                hint="choose another name, or `gitcp switch` to it",
            )
        try:
            built, rewritten = _build(store, transaction, session, branch, draft, tip)
        except CorruptError:
            # The tip's commit is intact; its content may not be.
            if thorough or tip is None:
                raise
            thorough = True
            continue
        if built is None:
            assert tip is not None
            return Saved(tip, created=False)
        try:
            publish(store.repository, transaction, key.ref, standing.ref, built.oid)
        except BranchMovedError:
            continue
        commit = parse_commit(built.raw, len(built.oid))
        checkpoint = store.made(built.oid, commit, built.manifest)
        assert checkpoint is not None
        # This work tree may never have had the files of a fork.
        here = draft.files_from is None and not draft.elsewhere
        give_number(store.numbers, checkpoint, here=here)
        return Saved(checkpoint, created=True, rewritten=rewritten)
    raise BranchMovedError(
        f"{session}/{branch} kept moving", hint="run the command again"
    )


def _build(
    store: Store,
    transaction: Transaction,
    session: str,
    branch: str,
    draft: Draft,
    tip: Checkpoint | None,
) -> tuple[Built | None, int]:
    """Returns the new commit, None if no change, and the segments it replaces."""
    with durable.storage("writing the checkpoint"):
        # The ledger's position in the state to save.
        if draft.fork_of is not None:
            start = draft.fork_of.manifest
            position = LedgerPosition(start.effects, start.ledger)
        else:
            position = LedgerPosition(*store.ledger_position(session))
        successor = Successor(
            store.repository, transaction, store.seals, draft, tip, position
        )
        built = successor.build(session, branch, store.time())
    return built, successor.rewritten
