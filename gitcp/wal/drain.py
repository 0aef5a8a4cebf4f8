"""Drains write-ahead logs into git (docs/format.md, 16)."""

from collections.abc import Iterable
from contextlib import ExitStack, suppress

import msgspec

from gitcp import durable
from gitcp.errors import BusyError, CorruptError
from gitcp.format import layout, ledger
from gitcp.format.checkpoint import timestamp
from gitcp.format.commit import parse_commit
from gitcp.git.objects import COMMIT, TREE
from gitcp.git.repository import Repository
from gitcp.git.transaction import STAGED_REF, Transaction, transaction
from gitcp.ledger.signing import Signet
from gitcp.names import decode
from gitcp.wal import log_file
from gitcp.wal.log_file import DamagedLogError, Move, Record, RedoLog


def settle(repository: Repository, logs: Iterable[RedoLog]) -> int:
    """Puts redo logs into git as one pack and removes them; returns how many records.

    The caller holds their locks. Killed at any point it can be done again: a move that
    has been made already is left alone. Of a damaged log what is before the damage goes
    into git; the file is kept in `damaged`, and the log can be used again.

    Raises:
        DamagedLogError: one was damaged, or moved a ref that is not gitcp's.
        StorageError, BusyError: the logs stay.
    """
    taken = list(logs)
    moves: dict[str, list[Move]] = {}
    damaged: dict[RedoLog, DamagedLogError] = {}
    count = 0
    with ExitStack() as stack:
        opened: Transaction | None = None
        for log in taken:
            records, broken = _read(log)
            if broken is not None:
                damaged[log] = broken
            for record in records:
                if opened is None:
                    opened = stack.enter_context(transaction(repository))
                count += 1
                for oid, body in record.objects:
                    opened.add_entry(oid, body)
                for move in record.moves:
                    moves.setdefault(move.ref, []).append(move)
        if opened is not None:
            # All objects before any ref: the moves below need no more of them.
            opened.store()
            for ref, chain in moves.items():
                _move(repository, opened, ref, chain)
        for log in taken:
            if log not in damaged:
                log.remove()
    if damaged:
        kept = ", ".join(str(log.put_aside()) for log in damaged)
        raise DamagedLogError(
            "; ".join(broken.message for broken in damaged.values()),
            hint=f"what is whole was saved, and the log is kept as {kept}:"
            " the next command goes on without it; run `gitcp verify`",
        )
    return count


def _read(log: RedoLog) -> tuple[list[Record], DamagedLogError | None]:
    """Returns the records of a log, and the damage behind them.

    A log that would move anything but gitcp's own refs was not written by gitcp: none
    of it is used.
    """
    log.known = 0
    records = []
    broken = None
    try:
        for record, _ in log.news():
            records.append(record)
    except DamagedLogError as exc:
        broken = exc
    for record in records:
        for ref, expect, new in map(msgspec.structs.astuple, record.moves):
            whole = layout.is_oid(new) and (expect is None or layout.is_oid(expect))
            if not layout.is_own(ref) or not whole:
                return [], DamagedLogError(
                    f"the write-ahead log {log.path} moves {ref!a} to {new!a},"
                    " which gitcp never does"
                )
    return records, broken


def _move(
    repository: Repository, opened: Transaction, ref: str, chain: list[Move]
) -> None:
    new = chain[-1].new
    try:
        present = repository.refs.read(ref)
    except CorruptError:
        if chain[0].expect is None:
            # The writer of the log did not see what the ref held.
            raise
        # The log knows what it held: what went on from there.
        repository.refs.drop_damaged(ref, opened.scratch / STAGED_REF)
        present = None
    if present == new:
        return
    if present is None or present in {move.expect for move in chain}:
        opened.publish(ref, expect=present, new=bytes.fromhex(new))
    elif _holds(repository, ref, present, new):
        return
    elif ref.startswith(layout.EFFECTS):
        _joined(repository, opened, ref, present, new)
    else:
        _aside(repository, opened, ref, new)


def _holds(repository: Repository, ref: str, tip: str, wanted: str) -> bool:
    """Whether a line has a commit: the log came back after a power cut."""
    target = bytes.fromhex(wanted)
    ahead = [bytes.fromhex(tip)]
    seen: set[bytes] = set()
    # Only ledgers are ever joined; below a branch lies the user's own history.
    every = ref.startswith(layout.EFFECTS)
    while ahead:
        oid = ahead.pop()
        if oid == target:
            return True
        if oid not in seen:
            seen.add(oid)
            parents = parse_commit(repository.objects.read(oid, COMMIT)).parents
            ahead += parents if every else parents[:1]
    return False


def _aside(repository: Repository, opened: Transaction, ref: str, new: str) -> None:
    """Keeps what was acknowledged if another process moved the branch meanwhile."""
    # Rarely needed; and the store needs this module.
    from gitcp.store.builder import BranchSlot, CheckpointBuilder  # noqa: PLC0415
    from gitcp.store.store import Store  # noqa: PLC0415

    store = Store(repository)
    found = store.checkpoint(new)
    if found is None:
        raise CorruptError(
            f"the redo log of {ref} ends in {new}, which is not a checkpoint",
            hint="run `gitcp verify`",
        )
    component = ref.removeprefix(layout.SESSIONS).split("/")[1]
    before = decode(component) or found.branch
    number = 1
    while store.tip(found.session, f"{before}-aside-{number}") is not None:
        number += 1
    name = f"{before}-aside-{number}"
    slot = BranchSlot(found.session, name, 1, found.oid, found.id)
    made = CheckpointBuilder(opened, store.seals).recreate(found, slot)
    opened.publish(layout.branch_ref(found.session, name), expect=None, new=made)


def _joined(
    repository: Repository, opened: Transaction, ref: str, present: str, new: str
) -> None:
    """Joins what was acknowledged to a ledger that another process moved meanwhile."""
    tip = repository.objects.commit(bytes.fromhex(present))
    said = ledger.ledger_trailers(tip)
    if said is None:
        raise CorruptError(
            f"{ref} points to {present}, which is not a ledger",
            hint=f"look at it with `git show {present}`",
        )
    epoch = repository.objects.commit(bytes.fromhex(new)).epoch
    note = ledger.Record(0, "", ledger.JOINED, "")
    note = msgspec.structs.replace(
        note, n=said.last + 1, at=timestamp(epoch), seal=Signet(repository).seal(note)
    )
    raw = ledger.encode_ledger_commit(
        opened.add_object(TREE, b""),
        bytes.fromhex(present),
        epoch,
        said.session,
        [note],
        joins=bytes.fromhex(new),
    )
    opened.publish(ref, expect=present, new=opened.add_commit(raw))


def settle_all(repository: Repository, *, timeout: float = 1.0) -> int:
    """Settles every redo log that no process is writing to; returns how many records.

    Each is waited for as long as `timeout`.

    Raises:
        StorageError: the disk refused; the logs stay.
    """
    found = log_file.names(repository)
    if not found:
        return 0
    with ExitStack() as stack:
        mine = []
        for name in found:
            log = RedoLog(repository, name)
            stack.callback(log.close)
            with suppress(BusyError):
                stack.enter_context(log.locked(timeout=timeout))
                mine.append(log)
        with durable.storage("settling the redo logs"):
            return settle(repository, mine)
