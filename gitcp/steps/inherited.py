"""Which steps a branch has from before it was forked, as far as this repository knows itself.

Everyone who may push can put checkpoints on a branch and records into a ledger. So only the
checkpoints that were made here say where a branch began.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gitcp.format.ledger import INTENT, LedgerCommit
from gitcp.ledger.state import LedgerPoint
from gitcp.names import encode
from gitcp.project.workspace import Current
from gitcp.steps.rewind import state_at
from gitcp.store.retention import made_here
from gitcp.store.store import Store

if TYPE_CHECKING:
    from gitcp.store.checkpoint import Checkpoint


def from_before(
    store: Store, pages: Sequence[LedgerCommit], current: Current
) -> frozenset[str]:
    """Returns the ids of the steps that began before a branch was forked from theirs."""
    found: set[str] = set()
    for point in _beginnings(store, current):
        found |= _begun(pages, point)
    return frozenset(found)


def _beginnings(store: Store, current: Current) -> list[LedgerPoint]:
    """Returns each branch that a branch comes from, with the ledger's state at the fork."""
    session, branch = encode(current.session), encode(current.branch)
    tip = store.tip(current.session, current.branch)
    points: list[LedgerPoint] = []
    newer: list[Checkpoint] = []
    for checkpoint in store.line(tip) if tip is not None else ():
        trailers = checkpoint.trailers
        if trailers.session != session:
            continue
        if trailers.branch != branch and made_here(checkpoint):
            first = next(filter(made_here, reversed(newer)), checkpoint)
            points.append(state_at(first)._replace(branch=checkpoint.branch))
            branch, newer = trailers.branch, []
        if trailers.branch == branch:
            newer.append(checkpoint)
    return points


def _begun(pages: Sequence[LedgerCommit], point: LedgerPoint) -> set[str]:
    """Returns the steps that began on a branch up to a state of the ledger."""
    by_oid = {page.oid: page for page in pages}
    by_oid |= {old: page for page in pages for old in page.purged}
    reached: dict[str, LedgerCommit] = {}
    todo = [point.ledger] if point.ledger else list(by_oid)
    while todo:
        page = by_oid.get(todo.pop())
        if page is not None and page.oid not in reached:
            reached[page.oid] = page
            todo += page.parents
    last = by_oid.get(point.ledger)
    return {
        record.id
        for page in reached.values()
        for record in page.records
        if record.kind == INTENT
        and record.branch == point.branch
        and (record.n <= point.upto or (last is not None and page is not last))
    }
