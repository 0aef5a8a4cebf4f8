"""Joins acknowledged ledger commits to a ledger that another process moved meanwhile."""

from msgspec.structs import replace

from gitcp.errors import CorruptError
from gitcp.format.checkpoint import timestamp
from gitcp.format.ledger import JOINED, Record, encode_ledger_commit, ledger_trailers
from gitcp.git.objects import TREE
from gitcp.git.transaction import Transaction
from gitcp.ledger.signing import RecordSigner
from gitcp.wal.drain import Conflict, is_below


def join(txn: Transaction, conflict: Conflict) -> None:
    """Adds the ledger commit that joins both lines.

    Raises:
        CorruptError: the ref does not point to a ledger.
    """
    if is_below(txn, conflict, first_parent=False):
        return
    ref, present, new = conflict
    trailers = ledger_trailers(txn.objects.commit(bytes.fromhex(present)))
    if trailers is None:
        raise CorruptError(
            f"{ref} points to {present}, which is not a ledger",
            hint=f"look at it with `git show {present}`",
        )
    epoch = txn.objects.commit(bytes.fromhex(new)).epoch
    record = Record(trailers.last + 1, timestamp(epoch), JOINED, "")
    seal = RecordSigner(txn.repository, trailers.session).seal(record)
    raw = encode_ledger_commit(
        txn.add_object(TREE, b""),
        bytes.fromhex(present),
        epoch,
        trailers.session,
        [replace(record, seal=seal)],
        joins=bytes.fromhex(new),
    )
    txn.publish(ref, expect=present, new=txn.add_commit(raw))
