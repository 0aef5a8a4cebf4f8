"""Replays a ledger: the state of each step, on each branch.

If two lines were joined, each is read from where they diverged, as its own repository saw
it, and then they are merged: a step that is finished on either is finished.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from gitcp.format.ledger import (
    ABOUT_STEPS,
    BACK,
    JOINED,
    LINE,
    LedgerCommit,
    Record,
)
from gitcp.ledger.call import Call, StepSlot, after, merged, places, weight


class LedgerPoint(NamedTuple):
    """The state of a branch after a record, counted on the line that ends in `ledger`.

    Without `ledger`, the record is on the line that names this state.
    """

    branch: str
    upto: int
    ledger: str = ""


StepsBySlot = dict[StepSlot, Call]
StepsByBranch = dict[str, StepsBySlot]


class LedgerState:
    """The state of all steps after the commits of a ledger.

    `cuts` are states that will be requested.
    """

    def __init__(
        self, pages: Iterable[LedgerCommit], cuts: Collection[LedgerPoint] = ()
    ) -> None:
        pages = list(pages)
        self._alias = {old: page.oid for page in pages for old in page.purged}
        points = [
            LedgerPoint(record.of, record.upto, record.ledger)
            for page in pages
            for record in page.records
            if record.kind in {BACK, LINE}
        ]
        points += cuts
        self._points = {self._point(record) for record in points}
        self._numbers = {record.upto for record in points if not record.ledger}
        self._then: dict[tuple[str, int], StepsByBranch] = {}
        self._tip = ""
        self._line = _LineState()
        heads: dict[str, _LineState] = {}
        following = Counter(parent for page in pages for parent in page.parents)
        for page in pages:
            lines = []
            for parent in page.parents:
                following[parent] -= 1
                line = heads[parent] if following[parent] else heads.pop(parent)
                lines.append(line.copy() if following[parent] else line)
            line = lines[0] if lines else _LineState()
            for other in lines[1:]:
                line.join(other)
            heads[page.oid] = line
            self._read(page, line)
            self._tip, self._line = page.oid, line

    def _point(self, state: LedgerPoint) -> tuple[str, int]:
        return self._alias.get(state.ledger, state.ledger), state.upto

    def _read(self, page: LedgerCommit, line: "_LineState") -> None:
        for record in page.records:
            self._take(record, line)
            if record.n in self._numbers:
                line.then[record.n] = line.snapshot()
            if (page.oid, record.n) in self._points:
                self._then[page.oid, record.n] = line.snapshot()

    def apply(self, page: LedgerCommit) -> bool:
        """Applies one ledger commit; False if the whole state has to be rebuilt for it."""
        if len(page.parents) > 1 or "".join(page.parents) != self._tip or page.purged:
            return False
        for record in page.records:
            if record.kind in {BACK, LINE} and record.upto:
                state = LedgerPoint(record.of, record.upto, record.ledger)
                known = self._line.then if not record.ledger else self._then
                point = self._point(state) if record.ledger else record.upto
                if point not in known:
                    return False
        self._read(page, self._line)
        self._tip = page.oid
        return True

    def live(self, branch: str, start: LedgerPoint | None = None) -> StepsBySlot:
        """Returns the steps of a branch.

        If the ledger has no record of the branch, `start` says where it was forked.
        """
        return dict(self._known(branch, start))

    def call(
        self, branch: str, slot: StepSlot, start: LedgerPoint | None = None
    ) -> Call | None:
        """Returns one step of a branch; see `live`."""
        return self._known(branch, start).get(slot)

    def _known(self, branch: str, start: LedgerPoint | None) -> StepsBySlot:
        steps = self._line.live.get(branch)
        if steps is None and start is not None:
            steps = self._lives(start, self._line).get(start.branch)
        return steps or {}

    def begun(self, slot: StepSlot) -> list[Call]:
        """Returns all steps that ever began with a slot, on any branch."""
        return [self._line.calls[ident] for ident in self._line.begun.get(slot, ())]

    def has_branch(self, branch: str) -> bool:
        """Whether any record is about the branch."""
        return branch in self._line.live

    def had_branch(self, state: LedgerPoint) -> bool:
        """Whether any record before that state is about its branch."""
        return state.branch in self._lives(state, self._line)

    def at(self, state: LedgerPoint) -> StepsBySlot:
        """Returns the steps of a branch in an earlier state."""
        return dict(self._lives(state, self._line).get(state.branch, {}))

    def _lives(self, state: LedgerPoint, line: "_LineState") -> StepsByBranch:
        if state.ledger:
            return self._then.get(self._point(state), {})
        return line.then.get(min(state.upto, line.last), {})

    def _after_rewind(
        self, live: StepsBySlot, state: LedgerPoint, line: "_LineState"
    ) -> StepsBySlot:
        """Returns the steps that stand after a rewind to an earlier state.

        Steps that reached outside still stand; steps that changed files do not.
        """
        then = self._lives(state, line).get(state.branch, {})
        after = {
            slot: line.calls.get(call.id, call)._replace(slot=slot)
            if call.outside
            else call
            for slot, call in then.items()
        }
        after.update(
            (slot, call)
            for slot, call in live.items()
            if call.outside and call.standing
        )
        return after

    def _take(self, record: Record, line: "_LineState") -> None:
        line.last = record.n
        if record.kind == JOINED:
            return
        live = line.live.setdefault(record.branch, {})
        state = LedgerPoint(record.of, record.upto, record.ledger)
        if record.kind == LINE:
            live.update(self._lives(state, line).get(state.branch, {}))
        elif record.kind == BACK:
            line.live[record.branch] = self._after_rewind(live, state, line)
        elif record.kind in ABOUT_STEPS:
            line.tell(record)


class _LineState:
    """The steps after the records of one line of ledger commits."""

    def __init__(self) -> None:
        self.last = 0
        self.joined = False
        self.calls: dict[str, Call] = {}
        self.live: StepsByBranch = {}
        self.begun: dict[StepSlot, tuple[str, ...]] = {}
        self.then: dict[int, StepsByBranch] = {0: {}}

    def copy(self) -> "_LineState":
        copy = _LineState()
        copy.last = self.last
        copy.joined = self.joined
        copy.calls = dict(self.calls)
        copy.live = self.snapshot()
        copy.begun = dict(self.begun)
        copy.then = dict(self.then)
        return copy

    def snapshot(self) -> StepsByBranch:
        return {branch: dict(live) for branch, live in self.live.items()}

    def tell(self, record: Record) -> None:
        """Applies a record about a step."""
        known = self.calls.get(record.id)
        call = after(known, record)
        if call is None:
            return
        self.calls[call.id] = call
        if known is None:
            self.live[record.branch][call.slot] = call
            self.begun[call.slot] = (*self.begun.get(call.slot, ()), call.id)
            return
        for branch, steps in self.live.items():
            # Branches have their own files, but share the outside world.
            if not call.outside and branch != record.branch:
                continue
            if not self.joined and steps.get(call.slot) is known:
                # Only a join puts a step beside its own slot.
                steps[call.slot] = call
                continue
            for slot in places(call):
                same = steps.get(slot)
                if same is not None and same.id == call.id:
                    steps[slot] = call._replace(slot=slot)

    def join(self, other: "_LineState") -> None:
        """Joins another ledger: a step that is finished in either does not run again."""
        self.joined = True
        for ident, call in other.calls.items():
            mine = self.calls.get(ident)
            self.calls[ident] = call if mine is None else merged(mine, call)
        for slot, idents in other.begun.items():
            self.begun[slot] = tuple(
                dict.fromkeys((*self.begun.get(slot, ()), *idents))
            )
        for branch, live in other.live.items():
            mine_live = self.live.setdefault(branch, {})
            for slot, call in live.items():
                self._put(mine_live, slot, call)
        for live in self.live.values():
            for slot, call in list(live.items()):
                own = places(call)[0]
                if slot != own and own in live and live[own].id == call.id:
                    # It had to stand beside another step there, and has its own slot now.
                    del live[slot]
                elif call.outside:
                    live[slot] = self.calls[call.id]._replace(slot=slot)

    def _put(self, live: StepsBySlot, slot: StepSlot, call: Call) -> None:
        mine = live.get(slot)
        if mine is None:
            live[slot] = call
        elif mine.id == call.id:
            live[slot] = merged(mine, call)._replace(slot=slot)
        else:
            # Both sides ran the step, each for itself.
            first, second = sorted((mine, call), key=weight)
            for other in [
                key for key, step in live.items() if step.id in {first.id, second.id}
            ]:
                del live[other]
            live[slot] = first._replace(slot=slot)
            if second.outside and second.standing:
                # Its effect exists as well, so it is listed and can be undone.
                beside = places(second)[1]
                live[beside] = self.calls[second.id]._replace(slot=beside)
