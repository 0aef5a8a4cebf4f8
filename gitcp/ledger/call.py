"""The state of one call of a step, and how each record of the ledger changes it."""

from typing import NamedTuple

from gitcp.format.ledger import (
    ANSWER,
    FAILED,
    INTENT,
    KEPT,
    OUTSIDE,
    RESULT,
    UNDO_FAILED,
    UNDOING,
    UNDONE,
    UNKNOWN,
    Record,
)

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
# Of two accounts of one step the first of these counts: none lets it run once more
# where the other does not.
_FIRST = (STUCK, UNDOING, DONE, OPEN, AGAIN, UNDONE, FAILED)


class StepSlot(NamedTuple):
    """The identity of a step on a branch; `call` is a number or a key."""

    scope: str
    name: str
    call: str


class Call(NamedTuple):
    """One step's state in the ledger; `n` is the number of its last record.

    States: `open` (begun, without a result), `done`, `failed`, `again` (may be run once
    more), `undoing`, `undone`, `stuck` (its undo failed). `kept`: a person said that what
    it did shall stand. `told` are the records that say so.
    """

    id: str
    slot: StepSlot
    intent: Record
    n: int
    state: str = OPEN
    attempts: int = 1
    result: Record | None = None
    error: str = ""
    kept: bool = False
    told: tuple[Record, ...] = ()

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


def places(call: Call) -> tuple[StepSlot, StepSlot]:
    """Returns where a step can stand: in its own place, or beside another one there."""
    begun = call.intent
    slot = StepSlot(begun.scope, begun.step, begun.call)
    return slot, slot._replace(call=f"{begun.call}~{call.id}")


def weight(call: Call) -> tuple[int, str, str, bool, str, int]:
    """Orders two accounts alike on whatever side they are looked at."""
    result = call.result
    return (
        _FIRST.index(call.state),
        call.intent.at,
        call.id,
        # A result that the call returned outranks one that a person reported.
        result is not None and bool(result.by),
        result.at if result is not None else "",
        call.n,
    )


def merged(mine: Call, theirs: Call) -> Call:
    """Returns what two accounts of a step come to."""
    if mine == theirs:
        return mine
    mine_told, their_told = (
        set(map(_record_key, mine.told)),
        set(map(_record_key, theirs.told)),
    )
    if mine_told >= their_told:
        return mine
    if their_told >= mine_told:
        return theirs
    first, second = sorted((mine, theirs), key=weight)
    known = set(map(_record_key, first.told))
    more = tuple(record for record in second.told if _record_key(record) not in known)
    return first._replace(
        attempts=max(mine.attempts, theirs.attempts),
        result=first.result or second.result,
        kept=mine.kept or theirs.kept,
        told=(*first.told, *more),
    )


def _record_key(record: Record) -> tuple[str, int, str]:
    return record.kind, record.n, record.at


def after(call: Call | None, record: Record) -> Call | None:
    """Returns a step after one more record; None if its beginning is missing."""
    if record.kind == INTENT:
        if call is None:
            slot = StepSlot(record.scope, record.step, record.call)
            return Call(record.id, slot, record, record.n, told=(record,))
        return call._replace(
            intent=record,
            n=record.n,
            state=OPEN,
            attempts=call.attempts + 1,
            result=None,
            error="",
            told=(*call.told, record),
        )
    if call is None:
        return None
    told = (*call.told, record)
    if record.kind == KEPT:
        return call._replace(kept=True, told=told)
    if record.kind == UNKNOWN:
        return call._replace(n=record.n, error=record.error, told=told)
    if record.kind == ANSWER:
        state = AGAIN if record.answer == RUN_AGAIN else FAILED
        return call._replace(n=record.n, state=state, error=record.error, told=told)
    # Most records are of these: this takes half as long as `_replace`.
    return Call(
        call.id,
        call.slot,
        call.intent,
        record.n,
        _AFTER[record.kind],
        call.attempts,
        record if record.kind == RESULT else call.result,
        record.error,
        call.kept,
        told,
    )


def show_call(call: Call) -> str:
    """Returns the name of a step with what is known of it."""
    slot = call.slot
    which = "" if slot.call == "1" else f" ({slot.call})"
    where = f"{slot.scope}: " if slot.scope else ""
    return f"{where}{slot.name}{which}"
