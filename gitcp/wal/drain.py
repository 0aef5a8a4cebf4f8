"""Drains write-ahead logs into git (docs/format.md, 16).

The log knows commits and refs, not what they mean. If another process moved the ref of
acknowledged commits, the owner of the log decides what happens to them: it passes an
`OnConflict`.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.errors import BusyError, CorruptError
from gitcp.format import layout
from gitcp.git.ended import STAGED_REF
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction
from gitcp.wal import log_check, log_file
from gitcp.wal.log_file import DamagedLogError, LogFile, LogRecord, RefMove


class Conflict(NamedTuple):
    """A ref that another process moved: it is at `present`, the log leads to `new`."""

    ref: str
    present: str
    new: str


# Publishes what keeps both; the commits of the log are in the transaction.
OnConflict = Callable[[Transaction, Conflict], None]


def drain(
    repository: Repository, logs: Iterable[LogFile], on_conflict: OnConflict
) -> int:
    """Puts write-ahead logs into git as one pack and removes them; returns how many records.

    The caller holds their locks. Killed at any point it can be done again: a move that
    has been made already is left alone. Of a damaged log what is before the damage goes
    into git; the file is kept in `damaged`, and the log can be used again.

    Raises:
        DamagedLogError: a log was damaged, moved a ref that is not gitcp's, or was copied
            from another repository.
        StorageError, BusyError: the logs stay.
    """
    held = list(logs)
    moves: dict[str, list[RefMove]] = {}
    damaged: dict[LogFile, DamagedLogError] = {}
    count = 0
    with ExitStack() as stack:
        txn: Transaction | None = None
        read = {log: _read(log) for log in held}
        _refuse_copied(repository, read)
        for log, (records, damage) in read.items():
            if damage is not None:
                damaged[log] = damage
            for record in records:
                if txn is None:
                    txn = stack.enter_context(transaction(repository))
                count += 1
                for oid, body in record.objects:
                    txn.add_entry(oid, body)
                for move in record.moves:
                    moves.setdefault(move.ref, []).append(move)
        if txn is not None:
            # All objects before any ref: the moves below need no more of them.
            txn.store()
            for ref, chain in moves.items():
                _move(txn, ref, chain, on_conflict)
        for log in held:
            if log not in damaged:
                log.remove()
    if damaged:
        kept = ", ".join(str(log.put_aside()) for log in damaged)
        raise DamagedLogError(
            "; ".join(damage.message for damage in damaged.values()),
            hint=f"complete records were saved, and the log is kept as {kept}: later"
            " commands do not need it; run `gitcp verify`",
        )
    return count


def _refuse_copied(
    repository: Repository,
    read: dict[LogFile, tuple[list[LogRecord], DamagedLogError | None]],
) -> None:
    """Replaces the records of logs that were not written in this repository by an error.

    What this process wrote is not looked at again.
    """
    doubtful = [log for log, (records, _) in read.items() if records and not log.wrote]
    if not doubtful:
        return
    logged = {
        oid
        for records, _ in read.values()
        for record in records
        for oid, _ in record.objects
    }
    for log in doubtful:
        reason = log_check.fault(read[log][0], logged, repository.objects)
        if reason is not None:
            error = (
                f"the write-ahead log {log.path} is not of this repository: {reason}"
            )
            read[log] = [], DamagedLogError(error)


def _read(log: LogFile) -> tuple[list[LogRecord], DamagedLogError | None]:
    """Returns the records of a log, and the damage behind them.

    A log that would move anything but gitcp's own refs was not written by gitcp: none
    of it is used.
    """
    log.known = 0
    records = []
    damage = None
    try:
        for record, _ in log.news():
            records.append(record)
    except DamagedLogError as exc:
        damage = exc
    for record in records:
        for ref, expect, new in map(msgspec.structs.astuple, record.moves):
            whole = layout.is_oid(new) and (expect is None or layout.is_oid(expect))
            if not layout.is_own(ref) or not whole:
                return [], DamagedLogError(
                    f"the write-ahead log {log.path} moves {ref!a} to {new!a},"
                    " which gitcp never does"
                )
    return records, damage


def _move(
    txn: Transaction, ref: str, chain: list[RefMove], on_conflict: OnConflict
) -> None:
    refs = txn.repository.refs
    new = chain[-1].new
    try:
        present = refs.read(ref)
    except CorruptError:
        if chain[0].expect is None:
            # The writer of the log did not see what the ref held.
            raise
        # The log knows what it held: what continued from there.
        refs.drop_damaged(ref, txn.scratch / STAGED_REF)
        present = None
    if present == new:
        return
    if present is None or present in {move.expect for move in chain}:
        txn.publish(ref, expect=present, new=bytes.fromhex(new))
    else:
        on_conflict(txn, Conflict(ref, present, new))


def is_below(txn: Transaction, conflict: Conflict, *, first_parent: bool) -> bool:
    """Whether the ref has the log's commit already: the log came back after a power cut.

    With `first_parent` no other parents are followed.
    """
    target = bytes.fromhex(conflict.new)
    ahead = [bytes.fromhex(conflict.present)]
    seen: set[bytes] = set()
    while ahead:
        oid = ahead.pop()
        if oid == target:
            return True
        if oid not in seen:
            seen.add(oid)
            parents = txn.objects.commit(oid).parents
            ahead += parents[:1] if first_parent else parents
    return False


def drain_idle(
    repository: Repository, on_conflict: OnConflict, *, timeout: float
) -> int:
    """Drains every log that no process is writing to; returns how many records.

    Each lock is waited for as long as `timeout`, in seconds.

    Raises:
        StorageError: the disk refused; the logs stay.
    """
    names = log_file.names(repository)
    if not names:
        return 0
    with ExitStack() as stack:
        idle = []
        for name in names:
            log = LogFile(repository, name)
            stack.callback(log.close)
            with suppress(BusyError):
                stack.enter_context(log.locked(timeout=timeout))
                idle.append(log)
        with durable.storage("settling the redo logs"):
            return drain(repository, idle, on_conflict)
