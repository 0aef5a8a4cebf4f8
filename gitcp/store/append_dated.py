"""Appends checkpoints of the past to many branches at once: one pack, then the refs."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from gitcp import durable, notices
from gitcp.errors import BranchMovedError, BusyError, StorageError
from gitcp.format.commit import parse_commit
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import ELSEWHERE
from gitcp.git.transaction import Transaction
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft
from gitcp.store.publish import described
from gitcp.store.store import Store
from gitcp.store.successor import LedgerPosition, Successor

if TYPE_CHECKING:
    from gitcp.store.builder import Built


class Dated(NamedTuple):
    """A draft for a branch, and when it happened, in seconds since 1970."""

    session: str
    branch: str
    draft: Draft
    when: float


def append_dated(
    store: Store, transaction: Transaction, wanted: Iterable[Dated]
) -> dict[str, Checkpoint]:
    """Appends to each branch, durably; returns what was made, by session.

    A branch that another process has moved meanwhile is left as it is, as is one to which
    a draft adds nothing.

    Raises:
        BusyError: a ref stayed locked; what was moved before stays.
        CorruptError: a branch cannot be read.
        StorageError: the disk refused.
    """
    made: list[tuple[Dated, str | None, Built]] = []
    with durable.storage("writing the checkpoints"):
        for one in wanted:
            standing = store.standing(BranchKey.of(one.session, one.branch))
            if standing.damage is not None:
                raise standing.damage
            position = LedgerPosition(*store.ledger_position(one.session))
            successor = Successor(
                store.repository,
                transaction,
                store.seals,
                one.draft,
                standing.checkpoint,
                position,
            )
            built = successor.build(one.session, one.branch, one.when)
            if built is not None:
                made.append((one, standing.ref, built))
    transaction.store()
    found: dict[str, Checkpoint] = {}
    for one, expected, built in made:
        ref = BranchKey.of(one.session, one.branch).ref
        with suppress(BranchMovedError):
            transaction.move_ref(ref, expect=expected, new=built.oid.hex())
            commit = parse_commit(built.raw, len(built.oid))
            checkpoint = store.made(built.oid, commit, built.manifest)
            assert checkpoint is not None
            found[one.session] = checkpoint
    _number(store, found.values())
    return found


def _number(store: Store, made: Iterable[Checkpoint]) -> None:
    try:
        store.numbers.assign([described(one, ELSEWHERE) for one in made])
    except (BusyError, StorageError) as exc:
        notices.tell(
            f"the import is saved, but has no numbers yet: {exc.message}. The next"
            " command that lists it assigns them"
        )
