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
# States in which a step's effect exists, or may exist, in the outside world.
_STANDING = frozenset({OPEN, DONE, AGAIN, UNDOING, STUCK})
_AFTER = {
    RESULT: DONE,
    FAILED: FAILED,
    UNDOING: UNDOING,
    UNDONE: UNDONE,
    UNDO_FAILED: STUCK,
}
# If two lines have different states of one step, the first of these counts: a step runs
# again only if both lines allow it.
_FIRST = (STUCK, UNDOING, DONE, OPEN, AGAIN, UNDONE, FAILED)


class StepSlot(NamedTuple):
    """The identity of a step on a branch; `call` is a number or a key."""

    scope: str
    name: str
    call: str


class Call(NamedTuple):
    """One step's state in the ledger; `n` is the number of its last record.

    States: `open` (begun, without a result), `done`, `failed`, `again` (may be run once
    more), `undoing`, `undone`, `stuck` (its undo failed). `kept`: the user decided to keep
    its effect. `told` are all records about the step.
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
        """The name of the step."""
        return self.slot.name

    @property
    def effect(self) -> str:
        """`none`, `local`, `reversible` or `irreversible`."""
        return self.intent.effect

    @property
    def outside(self) -> bool:
        """Whether the step reaches beyond the project, or an earlier attempt did."""
        return self.effect in OUTSIDE or any(one.effect in OUTSIDE for one in self.told)

    @property
    def standing(self) -> bool:
        """Whether the step's effect exists, or may exist."""
        return self.state in _STANDING


def places(call: Call) -> tuple[StepSlot, StepSlot]:
    """Returns the slots that a step can have: its own, or one beside a step that has that."""
    begun = call.intent
    slot = StepSlot(begun.scope, begun.step, begun.call)
    return slot, slot._replace(call=f"{begun.call}~{call.id}")


def weight(call: Call) -> tuple[int, str, str, bool, str, int]:
    """Returns a sort key that orders the two states of a step alike on both sides."""
    result = call.result
    return (
        _FIRST.index(call.state),
        call.intent.at,
        call.id,
        # A result that the call returned outranks one that the user reported.
        result is not None and bool(result.by),
        result.at if result is not None else "",
        call.n,
    )


def merged(mine: Call, theirs: Call) -> Call:
    """Merges the states of one step on two lines."""
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
    # Most records are of these kinds, and this takes half as long as `_replace`.
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
    """Returns a step's name with its scope and its call number or key."""
    slot = call.slot
    which = "" if slot.call == "1" else f" ({slot.call})"
    where = f"{slot.scope}: " if slot.scope else ""
    return f"{where}{slot.name}{which}"
