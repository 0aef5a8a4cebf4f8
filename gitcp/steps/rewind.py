"""Step state per branch, and the steps that a restore rewinds past."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from gitcp.checkpoints.restore_observer import RewoundSteps
from gitcp.format.ledger import BACK, LINE, UNDOING, LedgerCommit, Record
from gitcp.ledger.call import DONE, STUCK
from gitcp.ledger.state import LedgerPoint, LedgerState, StepsBySlot
from gitcp.names import encode
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


def state_at(checkpoint: Checkpoint) -> LedgerPoint:
    """Returns the ledger's position when a checkpoint was made."""
    return LedgerPoint(
        checkpoint.branch, checkpoint.manifest.effects, checkpoint.manifest.ledger
    )


def line_of(store: Store, session: str, branch: str) -> LedgerPoint | None:
    """Returns the ledger state that a branch began with, where it was forked."""
    last = store.tip(session, branch)
    component = encode(branch)
    for checkpoint in store.line(last) if last is not None else ():
        if checkpoint.trailers.branch != component:
            return state_at(last or checkpoint)._replace(branch=checkpoint.branch)
        last = checkpoint
    return None


class LedgerReplay(NamedTuple):
    """A ledger's state, the steps of one branch, and where that was forked."""

    book: LedgerState
    live: StepsBySlot
    line: LedgerPoint | None


def read(
    store: Store,
    pages: Sequence[LedgerCommit],
    current: Current,
    cuts: Collection[LedgerPoint] = (),
) -> LedgerReplay:
    """Replays a ledger for one branch."""
    line = None
    if not any(
        record.branch == current.branch for page in pages for record in page.records
    ):
        line = line_of(store, current.session, current.branch)
    if line is not None:
        cuts = {*cuts, line}
    book = LedgerState(pages, cuts)
    return LedgerReplay(book, book.live(current.branch, line), line)


def behind(workspace: Workspace, current: Current, target: Checkpoint) -> RewoundSteps:
    """Returns the steps done in a branch since a checkpoint.

    Raises:
        CorruptError: the ledger is damaged.
    """
    if not workspace.ledgers.position(current.session)[0]:
        return RewoundSteps()
    pages = workspace.ledgers.of(current.session).pages()
    state = _state_of(workspace.store, pages, current, target)
    replay = read(workspace.store, pages, current, {state})
    before = replay.book.at(state)
    outside, inside = [], []
    for call in sorted(replay.live.values(), key=lambda call: call.n, reverse=True):
        earlier = before.get(call.slot)
        if (
            earlier is not None
            and earlier.id == call.id
            and earlier.state == call.state
        ):
            continue
        if call.outside and call.standing:
            outside.append(call)
        elif call.state in {DONE, UNDOING, STUCK}:
            inside.append(call)
    return RewoundSteps(tuple(outside), tuple(inside))


def _state_of(
    store: Store, pages: Sequence[LedgerCommit], current: Current, target: Checkpoint
) -> LedgerPoint:
    """Returns the state that the ledger had at a checkpoint.

    A checkpoint of another session has none, because no step of this session was done in
    it. Nor has one whose ledger is not here, because its number belongs to another ledger.
    """
    nothing = LedgerPoint(current.branch, 0)
    if target.session != current.session:
        return nothing
    state = state_at(target)
    if state.ledger:
        if not any(state.ledger in {page.oid, *page.purged} for page in pages):
            return nothing
    elif target.origin.files is not None:
        return nothing
    while not LedgerState(pages, {state}).had_branch(state):
        line = line_of(store, current.session, state.branch)
        if line is None:
            break
        state = line
    return state


def went_back(
    workspace: Workspace, current: Current, target: Checkpoint, restore: str
) -> Record | None:
    """Records in the ledger that a branch was rewound; once for each restore.

    Raises:
        CorruptError: the ledger is damaged.
        StorageError: the disk refused.
    """
    if not workspace.ledgers.position(current.session)[0]:
        return None
    ledger = workspace.ledgers.of(current.session)
    pages = ledger.pages()
    if _noted(pages, restore):
        return None
    state = _state_of(workspace.store, pages, current, target)
    replay = read(workspace.store, pages, current, {state})
    if replay.book.at(state) == replay.live:
        return None
    notes = first_of(replay, current.branch)
    notes.append(
        Record(
            0,
            "",
            BACK,
            current.branch,
            of=state.branch,
            upto=state.upto,
            checkpoint=target.id,
            restore=restore,
            ledger=state.ledger,
        )
    )
    return ledger.append(*notes)[-1]


def stayed(workspace: Workspace, current: Current, restore: str) -> Record | None:
    """Reverts the rewind record of a restore that was aborted or undone; once.

    Raises:
        CorruptError: the ledger is damaged.
        StorageError: the disk refused.
    """
    if not workspace.ledgers.position(current.session)[0]:
        return None
    ledger = workspace.ledgers.of(current.session)
    pages = ledger.pages()
    noted = _noted(pages, restore)
    if len(noted) != 1:
        return None
    ((page, back),) = noted
    # A join may have happened since, so a number needs the commit that it belongs to.
    first = page.records[0].n == back.n
    before = "".join(page.parents[:1]) if first else page.oid
    branch = current.branch
    again = Record(
        0, "", BACK, branch, of=branch, upto=back.n - 1, restore=restore, ledger=before
    )
    return ledger.append(again)[0]


def _noted(
    pages: Sequence[LedgerCommit], restore: str
) -> list[tuple[LedgerCommit, Record]]:
    return [
        (page, record)
        for page in pages
        for record in page.records
        if record.kind == BACK and record.restore == restore
    ]


def first_of(replay: LedgerReplay, branch: str) -> list[Record]:
    """Returns the first ledger record of a fork, if the ledger does not have it yet."""
    if replay.line is None or replay.book.has_branch(branch):
        return []
    of, upto, ledger = replay.line
    return [Record(0, "", LINE, branch, of=of, upto=upto, ledger=ledger)]
