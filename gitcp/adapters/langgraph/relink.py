"""Recreates a thread's branches without some checkpoints, or as another thread."""

from collections.abc import Sequence

import msgspec

from gitcp.errors import CorruptError
from gitcp.format import layout
from gitcp.format.graph import GraphKey, decode_header, encode_header
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction
from gitcp.names import decode
from gitcp.store.builder import BranchSlot, CheckpointBuilder
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


class Relink:
    """One run over the branches of a session; the caller holds its lock."""

    def __init__(
        self, repository: Repository, session: str, gone: set[GraphKey]
    ) -> None:
        self._repository = repository
        self._store = Store(repository)
        self._session = session
        self._gone = gone
        # What became of a commit: another one, or what came before it.
        self._made: dict[bytes, bytes | None] = {}
        self._counts: dict[str, int] = {}

    def run(self) -> None:
        """Makes the branches again and moves their refs; empty ones go."""
        prefix = layout.session_prefix(self._session)
        refs = self._repository.refs.list(prefix)
        ordered = sorted(refs, key=lambda ref: (ref != prefix + "main", ref))
        empty = []
        with transaction(self._repository) as txn:
            moves = []
            for ref in ordered:
                tip = bytes.fromhex(refs[ref])
                new, own = self._line(txn, tip, ref.removeprefix(prefix))
                if not own or new is None:
                    empty.append(ref)
                elif new != tip:
                    moves.append((ref, new))
            txn.store()
            for ref, new in moves:
                txn.publish(ref, expect=refs[ref], new=new)
        delete_refs(self._repository, empty)

    def _line(
        self, txn: Transaction, tip: bytes, branch: str
    ) -> tuple[bytes | None, bool]:
        """Returns the new tip, and whether the branch has a commit of its own left."""
        found = self._store.checkpoint(tip)
        chain = list(self._store.line(found)) if found is not None else []
        oldest = chain[-1].raw.parents if chain else ()
        # The user's own commit that a session may be anchored to stays below it.
        parent = oldest[0] if oldest else None
        own = False
        for one in reversed(chain):
            if one.oid not in self._made:
                self._made[one.oid] = self._again(txn, one, parent)
            kept = self._made[one.oid] != parent
            own = own or (kept and one.trailers.branch == branch)
            parent = self._made[one.oid]
        return parent, own

    def _again(
        self, txn: Transaction, one: Checkpoint, parent: bytes | None
    ) -> bytes | None:
        said = decode_header(one.raw)
        # A fork without an event holds a copy of what may be going.
        if said.key in self._gone if said else one.trigger == "fork":
            return parent
        name = decode(one.trailers.branch) or one.branch
        seq = self._counts[name] = self._counts.get(name, 0) + 1
        slot = BranchSlot(self._session, name, seq, parent)
        extra = (encode_header(said),) if said else ()
        builder = CheckpointBuilder(txn, self._store.seals)
        return builder.recreate(one, slot, extra=extra)


def delete_refs(repository: Repository, refs: Sequence[str]) -> None:
    """Deletes refs, packed ones too.

    Raises:
        GitFailedError: git could not.
    """
    if refs:
        lines = "".join(f"delete {ref}\n" for ref in refs)
        repository.git("update-ref", "--stdin", data=lines.encode())


def copy_lines(
    repository: Repository, source: str, target: str, about: msgspec.Raw
) -> None:
    """Makes each branch of a session a branch of another, forked at its tip.

    Raises:
        StorageError, BusyError: some branches may have been made.
    """
    store = Store(repository)
    prefix = layout.session_prefix(source)
    with transaction(repository) as txn:
        builder = CheckpointBuilder(txn, store.seals)
        moves = []
        for ref, tip in repository.refs.list(prefix).items():
            found = store.checkpoint(tip)
            if found is None:
                raise CorruptError(
                    f"{ref} points to {tip}, which is not a checkpoint",
                    hint="run `gitcp verify`",
                )
            branch = decode(ref.removeprefix(prefix)) or found.branch
            slot = BranchSlot(target, branch, 1, found.oid, found.id)
            new = builder.recreate(found, slot, metadata=about)
            moves.append((layout.branch_ref(target, branch), new))
        txn.store()
        for name, new in moves:
            txn.publish(name, expect=None, new=new)
