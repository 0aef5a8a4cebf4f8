"""Settling redo logs: what was acknowledged goes into git, once (docs/format.md, 16)."""

from collections.abc import Iterable
from contextlib import ExitStack, suppress

from gitcp import durable
from gitcp.errors import BusyError, CorruptError
from gitcp.format import layout
from gitcp.format.commit import parse_commit
from gitcp.git import redo
from gitcp.git.objects import COMMIT
from gitcp.git.redo import Move, RedoLog
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction
from gitcp.names import decode
from gitcp.store.reissue import Place, reissue
from gitcp.store.store import Store


def settle(repository: Repository, logs: Iterable[RedoLog]) -> int:
    """Puts redo logs into git as one pack and removes them; returns how many records.

    The caller holds their locks. Killed at any point it can be done again: a move that
    has been made already is left alone.

    Raises:
        StorageError, BusyError: the logs stay.
    """
    taken = list(logs)
    moves: dict[str, list[Move]] = {}
    count = 0
    with ExitStack() as stack:
        opened: Transaction | None = None
        for log in taken:
            log.known = 0
            for record, _ in log.news():
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
            log.remove()
    return count


def _move(
    repository: Repository, opened: Transaction, ref: str, chain: list[Move]
) -> None:
    new = chain[-1].new
    present = repository.refs.read(ref)
    if present == new:
        return
    if present is None or present in {move.expect for move in chain}:
        opened.publish(ref, expect=present, new=bytes.fromhex(new))
    elif not _holds(repository, present, new):
        _aside(repository, opened, ref, new)


def _holds(repository: Repository, tip: str, wanted: str) -> bool:
    """Whether a line has a commit: the log came back after a power cut."""
    oid: bytes | None = bytes.fromhex(tip)
    target = bytes.fromhex(wanted)
    while oid is not None and oid != target:
        parents = parse_commit(repository.objects.read(oid, COMMIT)).parents
        oid = parents[0] if parents else None
    return oid == target


def _aside(repository: Repository, opened: Transaction, ref: str, new: str) -> None:
    """Keeps what was acknowledged where somebody else has moved the branch meanwhile."""
    store = Store(repository)
    found = store.checkpoint(new)
    if found is None:
        raise CorruptError(
            f"the redo log of {ref} ends in {new}, which is no checkpoint",
            hint="run `gitcp verify`",
        )
    component = ref.removeprefix(layout.SESSIONS).split("/")[1]
    before = decode(component) or found.branch
    number = 1
    while store.tip(found.session, f"{before}-aside-{number}") is not None:
        number += 1
    name = f"{before}-aside-{number}"
    place = Place(found.session, name, 1, found.oid, fork=True)
    made = reissue(opened, store.seals, found, place)
    opened.publish(layout.branch_ref(found.session, name), expect=None, new=made)


def settle_all(repository: Repository) -> int:
    """Settles every redo log nobody is writing to; returns how many records.

    Raises:
        StorageError: the disk refused; the logs stay.
    """
    found = redo.names(repository)
    if not found:
        return 0
    with ExitStack() as stack:
        mine = []
        for name in found:
            log = RedoLog(repository, name)
            stack.callback(log.close)
            with suppress(BusyError):
                stack.enter_context(log.locked(timeout=1.0))
                mine.append(log)
        with durable.storage("settling the redo logs"):
            return settle(repository, mine)
