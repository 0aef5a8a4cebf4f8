"""What the ledger tells: which steps stand, and which a restore goes back behind."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from gitcp.format.ledger import (
    ABOUT_STEPS,
    ANSWER,
    BACK,
    FAILED,
    INTENT,
    KEPT,
    LINE,
    LOCAL,
    OUTSIDE,
    RESULT,
    UNDO_FAILED,
    UNDOING,
    UNDONE,
    UNKNOWN,
    Record,
)
from gitcp.names import encode
from gitcp.ops.workspace import Current
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.ledger import last_number
from gitcp.store.store import Store

OPEN, DONE, AGAIN, STUCK = "open", "done", "again", "stuck"
# The answer to "did it happen?" that lets a step run once more, with the same key.
RUN_AGAIN, DID_NOT = "again", "failed"
# States in which the outside world has, or may have, what a step did.
_STANDING = frozenset({OPEN, DONE, AGAIN, UNDOING, STUCK})
_AFTER = {
    RESULT: DONE,
    FAILED: FAILED,
    UNDOING: UNDOING,
    UNDONE: UNDONE,
    UNDO_FAILED: STUCK,
}


class Slot(NamedTuple):
    """What tells the steps of a branch apart; `call` is a number or a key."""

    scope: str
    name: str
    call: str


class Call(NamedTuple):
    """One step as the ledger tells it; `n` is the record that made it so.

    States: `open` (begun, without a result), `done`, `failed`, `again` (may be run once
    more), `undoing`, `undone`, `stuck` (its undo failed). `kept`: a person said that what
    it did shall stand.
    """

    id: str
    slot: Slot
    intent: Record
    n: int
    state: str = OPEN
    attempts: int = 1
    result: Record | None = None
    error: str = ""
    kept: bool = False

    def __repr__(self) -> str:
        return f"<Call {show_call(self)} {self.effect} {self.state}>"

    @property
    def name(self) -> str:
        """The name that the step was given."""
        return self.slot.name

    @property
    def effect(self) -> str:
        """`none`, `local`, `reversible` or `irreversible`."""
        return self.intent.effect

    @property
    def outside(self) -> bool:
        """Whether it reaches beyond the project."""
        return self.effect in OUTSIDE

    @property
    def standing(self) -> bool:
        """Whether what it did is, or may be, there."""
        return self.state in _STANDING


Live = dict[Slot, Call]


class Book:
    """The state of all steps after the records of a ledger.

    `cuts` are record numbers at which the state will be asked for.
    """

    def __init__(self, records: Iterable[Record], cuts: Collection[int] = ()) -> None:
        records = list(records)
        wanted = {one.upto for one in records if one.kind in {BACK, LINE}}
        wanted |= set(cuts)
        self.last = 0
        self.calls: dict[str, Call] = {}
        self._live: dict[str, Live] = {}
        self._then: dict[int, dict[str, Live]] = {0: {}}
        for record in records:
            self._take(record)
            if record.n in wanted:
                self._then[record.n] = {
                    branch: dict(live) for branch, live in self._live.items()
                }

    def take(self, record: Record) -> bool:
        """Goes on by one record; False where the book has to be made anew for it."""
        if record.kind in {BACK, LINE} and record.upto not in self._then:
            return False
        self._take(record)
        return True

    def live(self, branch: str, line: tuple[str, int] | None = None) -> Live:
        """Returns the steps that a branch knows of.

        `line` says where a branch that the ledger has not met was forked.
        """
        found = self._live.get(branch)
        if found is None and line is not None:
            found = self.then(*line)
        return dict(found or {})

    def knows(self, branch: str) -> bool:
        """Whether any record is about the branch."""
        return branch in self._live

    def then(self, branch: str, upto: int) -> Live:
        """Returns the steps of a branch as they were after a record."""
        return dict(self._then.get(min(upto, self.last), {}).get(branch, {}))

    def back(self, live: Live, branch: str, upto: int) -> Live:
        """Returns the steps that stand after going back to an earlier state.

        What happened outside has happened; what happened to files has not.
        """
        after = {
            slot: self.calls[then.id] if then.outside else then
            for slot, then in self.then(branch, upto).items()
        }
        after.update(
            (slot, call)
            for slot, call in live.items()
            if call.outside and call.standing
        )
        return after

    def _take(self, record: Record) -> None:
        self.last = record.n
        live = self._live.setdefault(record.branch, {})
        if record.kind == LINE:
            live.update(self.then(record.of, record.upto))
        elif record.kind == BACK:
            self._live[record.branch] = self.back(live, record.of, record.upto)
        elif record.kind in ABOUT_STEPS:
            known = self.calls.get(record.id)
            call = _after(known, record)
            if call is None:
                return
            self.calls[call.id] = call
            if known is None:
                live[call.slot] = call
                return
            for branch, steps in self._live.items():
                same = steps.get(call.slot)
                # Files of a fork lie elsewhere; the outside world is one for all.
                if (
                    same is not None
                    and same.id == call.id
                    and (call.outside or branch == record.branch)
                ):
                    steps[call.slot] = call


def _after(call: Call | None, record: Record) -> Call | None:
    """Returns a step after one more record; None where its beginning is missing."""
    if record.kind == INTENT:
        if call is None:
            slot = Slot(record.scope, record.step, record.call)
            return Call(record.id, slot, record, record.n)
        return call._replace(
            intent=record,
            n=record.n,
            state=OPEN,
            attempts=call.attempts + 1,
            result=None,
            error="",
        )
    if call is None:
        return None
    if record.kind == KEPT:
        return call._replace(kept=True)
    if record.kind == UNKNOWN:
        return call._replace(n=record.n, error=record.error)
    if record.kind == ANSWER:
        state = AGAIN if record.answer == RUN_AGAIN else FAILED
        return call._replace(n=record.n, state=state, error=record.error)
    return call._replace(
        n=record.n,
        state=_AFTER[record.kind],
        result=record if record.kind == RESULT else call.result,
        error=record.error,
    )


def line_of(store: Store, session: str, branch: str) -> tuple[str, int] | None:
    """Returns where a branch was forked: from which, after which record of the ledger."""
    at = store.tip(session, branch)
    component = encode(branch)
    for found in store.line(at) if at is not None else ():
        if found.trailers.branch != component:
            return found.branch, (at or found).manifest.effects
        at = found
    return None


class Opened(NamedTuple):
    """A ledger's book, and the steps of one branch."""

    book: Book
    live: Live
    line: tuple[str, int] | None


def read(
    store: Store,
    records: Iterable[Record],
    place: Current,
    cuts: Collection[int] = (),
) -> Opened:
    """Returns what records tell of a branch."""
    records = list(records)
    line = None
    if not any(one.branch == place.branch for one in records):
        line = line_of(store, place.session, place.branch)
    if line is not None:
        cuts = {*cuts, line[1]}
    book = Book(records, cuts)
    return Opened(book, book.live(place.branch, line), line)


class Behind(NamedTuple):
    """The steps that a restore goes back behind, newest first.

    What the `outside` ones did stays; the `inside` ones are run again when called.
    """

    outside: tuple[Call, ...] = ()
    inside: tuple[Call, ...] = ()


def behind(store: Store, place: Current, target: Checkpoint) -> Behind:
    """Returns the steps done in a branch since a checkpoint.

    Raises:
        CorruptError: the ledger is damaged.
    """
    if not last_number(store.repository, place.session):
        return Behind()
    records = store.ledger(place.session).records()
    of, upto = _state_of(store, records, place, target)
    opened = read(store, records, place, {upto})
    then = opened.book.then(of, upto)
    outside, inside = [], []
    for call in sorted(opened.live.values(), key=lambda one: one.n, reverse=True):
        before = then.get(call.slot)
        if before is not None and before.id == call.id and before.state == call.state:
            continue
        if call.outside and call.standing:
            outside.append(call)
        elif call.state in {DONE, UNDOING, STUCK}:
            inside.append(call)
    return Behind(tuple(outside), tuple(inside))


def _state_of(
    store: Store, records: list[Record], place: Current, target: Checkpoint
) -> tuple[str, int]:
    """Returns the branch and record at which the ledger has a checkpoint's state.

    One of another session has none: no step of this one was done in it. Nor has one that
    came with a pull: its number is that of another ledger.
    """
    if target.session != place.session or target.origin.files is not None:
        return place.branch, 0
    of, upto = target.branch, target.manifest.effects
    while not any(one.branch == of and one.n <= upto for one in records):
        line = line_of(store, place.session, of)
        if line is None:
            break
        of, upto = line
    return of, upto


def went_back(
    store: Store, place: Current, target: Checkpoint, restore: str
) -> Record | None:
    """Notes in the ledger that a branch went back; once for each restore.

    Raises:
        CorruptError: the ledger is damaged.
        StorageError: the disk refused.
    """
    if not last_number(store.repository, place.session):
        return None
    ledger = store.ledger(place.session)
    records = ledger.records()
    if any(one.kind == BACK and one.restore == restore for one in records):
        return None
    of, upto = _state_of(store, records, place, target)
    opened = read(store, records, place, {upto})
    if opened.book.then(of, upto) == opened.live:
        return None
    notes = first_of(opened, place.branch)
    notes.append(
        Record(
            0,
            "",
            BACK,
            place.branch,
            of=of,
            upto=upto,
            checkpoint=target.id,
            restore=restore,
        )
    )
    return ledger.append(*notes)[-1]


def stayed(store: Store, place: Current, restore: str) -> Record | None:
    """Takes back the note of a restore that was taken back itself; once.

    Raises:
        CorruptError: the ledger is damaged.
        StorageError: the disk refused.
    """
    if not last_number(store.repository, place.session):
        return None
    ledger = store.ledger(place.session)
    noted = [
        one for one in ledger.records() if one.kind == BACK and one.restore == restore
    ]
    if len(noted) != 1:
        return None
    branch = place.branch
    again = Record(0, "", BACK, branch, of=branch, upto=noted[0].n - 1, restore=restore)
    return ledger.append(again)[0]


def first_of(opened: Opened, branch: str) -> list[Record]:
    """Returns the record that a fork begins with in the ledger, if it is not there."""
    if opened.line is None or opened.book.knows(branch):
        return []
    of, upto = opened.line
    return [Record(0, "", LINE, branch, of=of, upto=upto)]


def show_call(call: Call) -> str:
    """Returns the name of a step with what is known of it."""
    slot = call.slot
    which = "" if slot.call == "1" else f" ({slot.call})"
    where = f"{slot.scope}: " if slot.scope else ""
    return f"{where}{slot.name}{which}"


def of_files(calls: Mapping[Slot, Call]) -> list[Call]:
    """Returns the finished steps that changed files, oldest first."""
    found = [one for one in calls.values() if one.effect == LOCAL and one.state == DONE]
    return sorted(found, key=lambda one: one.n)
