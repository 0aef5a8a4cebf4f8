"""Step state per branch, and the steps that a restore rewinds past."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from gitcp.checkpoints.restore_observer import RewoundSteps
from gitcp.format.ledger import BACK, LINE, UNDOING, Page, Record
from gitcp.ledger.state import DONE, STUCK, Book, Live, State
from gitcp.names import encode
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


def state_at(found: Checkpoint) -> State:
    """Returns how far the ledger had come when a checkpoint was made."""
    return State(found.branch, found.manifest.effects, found.manifest.ledger)


def line_of(store: Store, session: str, branch: str) -> State | None:
    """Returns where a branch was forked: the state that it began with."""
    at = store.tip(session, branch)
    component = encode(branch)
    for found in store.line(at) if at is not None else ():
        if found.trailers.branch != component:
            return state_at(at or found)._replace(branch=found.branch)
        at = found
    return None


class Opened(NamedTuple):
    """A ledger's book, the steps of one branch, and where that was forked."""

    book: Book
    live: Live
    line: State | None


def read(
    store: Store,
    pages: Sequence[Page],
    place: Current,
    cuts: Collection[State] = (),
) -> Opened:
    """Returns what a ledger tells of a branch."""
    line = None
    if not any(one.branch == place.branch for page in pages for one in page.records):
        line = line_of(store, place.session, place.branch)
    if line is not None:
        cuts = {*cuts, line}
    book = Book(pages, cuts)
    return Opened(book, book.live(place.branch, line), line)


def behind(workspace: Workspace, place: Current, target: Checkpoint) -> RewoundSteps:
    """Returns the steps done in a branch since a checkpoint.

    Raises:
        CorruptError: the ledger is damaged.
    """
    if not workspace.ledgers.position(place.session)[0]:
        return RewoundSteps()
    pages = workspace.ledgers.of(place.session).pages()
    state = _state_of(workspace.store, pages, place, target)
    opened = read(workspace.store, pages, place, {state})
    then = opened.book.then(state)
    outside, inside = [], []
    for call in sorted(opened.live.values(), key=lambda one: one.n, reverse=True):
        before = then.get(call.slot)
        if before is not None and before.id == call.id and before.state == call.state:
            continue
        if call.outside and call.standing:
            outside.append(call)
        elif call.state in {DONE, UNDOING, STUCK}:
            inside.append(call)
    return RewoundSteps(tuple(outside), tuple(inside))


def _state_of(
    store: Store, pages: Sequence[Page], place: Current, target: Checkpoint
) -> State:
    """Returns the state that the ledger had at a checkpoint.

    One of another session has none: no step of this one was done in it. Nor has one whose
    ledger is not here: its number is that of another one.
    """
    nothing = State(place.branch, 0)
    if target.session != place.session:
        return nothing
    state = state_at(target)
    if state.ledger:
        if not any(state.ledger in {page.oid, *page.purged} for page in pages):
            return nothing
    elif target.origin.files is not None:
        return nothing
    while not Book(pages, {state}).knew(state):
        line = line_of(store, place.session, state.branch)
        if line is None:
            break
        state = line
    return state


def arrives(store: Store, here: Current, place: Current, target: Checkpoint) -> bool:
    """Whether a restore comes to where a branch stands, and does not go back on it.

    Nothing that was done since is gone then: it goes on as the ledger has it.
    """
    tip = store.tip(place.session, place.branch)
    return tip == target and (here != place or target.origin.files is not None)


def went_back(
    workspace: Workspace, place: Current, target: Checkpoint, restore: str
) -> Record | None:
    """Notes in the ledger that a branch went back; once for each restore.

    Raises:
        CorruptError: the ledger is damaged.
        StorageError: the disk refused.
    """
    if not workspace.ledgers.position(place.session)[0]:
        return None
    ledger = workspace.ledgers.of(place.session)
    pages = ledger.pages()
    if _noted(pages, restore):
        return None
    state = _state_of(workspace.store, pages, place, target)
    opened = read(workspace.store, pages, place, {state})
    if opened.book.then(state) == opened.live:
        return None
    notes = first_of(opened, place.branch)
    notes.append(
        Record(
            0,
            "",
            BACK,
            place.branch,
            of=state.branch,
            upto=state.upto,
            checkpoint=target.id,
            restore=restore,
            ledger=state.ledger,
        )
    )
    return ledger.append(*notes)[-1]


def stayed(workspace: Workspace, place: Current, restore: str) -> Record | None:
    """Takes back the note of a restore that was taken back itself; once.

    Raises:
        CorruptError: the ledger is damaged.
        StorageError: the disk refused.
    """
    if not workspace.ledgers.position(place.session)[0]:
        return None
    ledger = workspace.ledgers.of(place.session)
    pages = ledger.pages()
    noted = _noted(pages, restore)
    if len(noted) != 1:
        return None
    ((page, back),) = noted
    # The line may have been joined to another since, and numbers with it.
    first = page.records[0].n == back.n
    before = "".join(page.parents[:1]) if first else page.oid
    branch = place.branch
    again = Record(
        0, "", BACK, branch, of=branch, upto=back.n - 1, restore=restore, ledger=before
    )
    return ledger.append(again)[0]


def _noted(pages: Sequence[Page], restore: str) -> list[tuple[Page, Record]]:
    return [
        (page, one)
        for page in pages
        for one in page.records
        if one.kind == BACK and one.restore == restore
    ]


def first_of(opened: Opened, branch: str) -> list[Record]:
    """Returns the record that a fork begins with in the ledger, if it is not there."""
    if opened.line is None or opened.book.knows(branch):
        return []
    of, upto, ledger = opened.line
    return [Record(0, "", LINE, branch, of=of, upto=upto, ledger=ledger)]
