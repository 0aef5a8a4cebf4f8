"""Recreates a session's branches without some checkpoints, or as another session."""

from collections.abc import Callable

import msgspec

from gitcp.errors import CorruptError
from gitcp.format import layout
from gitcp.git.drop_unreachable import store_locked
from gitcp.git.transaction import Transaction, transaction
from gitcp.names import decode
from gitcp.store.builder import BranchSlot, CheckpointBuilder, Extra
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


class Relink:
    """One run over the branches of a session; the caller holds its write-ahead log.

    `is_gone` says which checkpoints to leave out, `extra` the trailers of a checkpoint
    beside the usual ones, `vouches` whether one may be sealed again.
    """

    def __init__(
        self,
        store: Store,
        session: str,
        is_gone: Callable[[Checkpoint], bool],
        extra: Callable[[Checkpoint], Extra],
        vouches: Callable[[Checkpoint], bool],
    ) -> None:
        self._store = store
        self._session = session
        self._is_gone = is_gone
        self._extra = extra
        self._vouches = vouches
        # By commit: its new form or, if it is gone, the one before it.
        self._new: dict[bytes, bytes | None] = {}
        self._counts: dict[str, int] = {}

    def run(self) -> None:
        """Recreates the branches and moves their refs; empty ones are deleted.

        Raises:
            BusyError, StorageError, GitFailedError: some branches may have been done.
        """
        repository = self._store.repository
        prefix = layout.session_prefix(self._session)
        with store_locked(repository, timeout=repository.refs.lock_timeout):
            refs = repository.refs.list(prefix)
            ordered = sorted(refs, key=lambda ref: (ref != prefix + "main", ref))
            empty = []
            with transaction(repository) as txn:
                moves = []
                for ref in ordered:
                    tip = bytes.fromhex(refs[ref])
                    new, own = self._branch(txn, tip, ref.removeprefix(prefix))
                    if not own or new is None:
                        empty.append(ref)
                    elif new != tip:
                        moves.append((ref, new))
                txn.store()
                for ref, new in moves:
                    txn.publish(ref, expect=refs[ref], new=new)
            repository.refs.delete(dict.fromkeys(empty))

    def _branch(
        self, txn: Transaction, tip: bytes, branch: str
    ) -> tuple[bytes | None, bool]:
        """Returns the new tip, and whether the branch has a commit of its own left."""
        newest = self._store.checkpoint(tip)
        chain = list(self._store.line(newest)) if newest is not None else []
        oldest = chain[-1].raw.parents if chain else ()
        # The user's own commit that a session may be anchored to stays below it.
        parent = oldest[0] if oldest else None
        own = False
        for checkpoint in reversed(chain):
            if checkpoint.oid not in self._new:
                self._new[checkpoint.oid] = self._recreate(txn, checkpoint, parent)
            kept = self._new[checkpoint.oid] != parent
            own = own or (kept and checkpoint.trailers.branch == branch)
            parent = self._new[checkpoint.oid]
        return parent, own

    def _recreate(
        self, txn: Transaction, checkpoint: Checkpoint, parent: bytes | None
    ) -> bytes | None:
        if self._is_gone(checkpoint):
            return parent
        name = decode(checkpoint.trailers.branch) or checkpoint.branch
        seq = self._counts[name] = self._counts.get(name, 0) + 1
        return CheckpointBuilder(txn, self._store.seals).recreate(
            checkpoint,
            BranchSlot(self._session, name, seq, parent),
            extra=self._extra(checkpoint),
            sealed=self._vouches(checkpoint),
        )


def delete_branches(store: Store, session: str) -> None:
    """Deletes all branches of a session.

    Raises:
        GitFailedError: git could not.
    """
    refs = store.repository.refs
    refs.delete(dict.fromkeys(refs.list(layout.session_prefix(session))))


def copy_branches(
    store: Store, source: str, target: str, metadata: msgspec.Raw
) -> None:
    """Makes each branch of a session a branch of another, forked at its tip.

    Raises:
        StorageError, BusyError: some branches may have been made.
    """
    repository = store.repository
    prefix = layout.session_prefix(source)
    with transaction(repository) as txn:
        builder = CheckpointBuilder(txn, store.seals)
        moves = []
        for ref, oid in repository.refs.list(prefix).items():
            tip = store.checkpoint(oid)
            if tip is None:
                raise CorruptError(
                    f"{ref} points to {oid}, which is not a checkpoint",
                    hint="run `gitcp verify`",
                )
            branch = decode(ref.removeprefix(prefix)) or tip.branch
            slot = BranchSlot(target, branch, 1, tip.oid, tip.id)
            new = builder.recreate(tip, slot, metadata=metadata)
            moves.append((layout.branch_ref(target, branch), new))
        txn.store()
        for name, new in moves:
            txn.publish(name, expect=None, new=new)
