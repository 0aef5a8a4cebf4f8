"""The steps of a branch as the ledger records them, for one run of a program."""

from collections import Counter
from threading import RLock
from typing import Any

from gitcp import at_fork
from gitcp.errors import UsageError
from gitcp.format.ledger import BACK, INTENT, Record
from gitcp.ledger.call import Call, StepSlot, show_call
from gitcp.ledger.state import LedgerPoint, LedgerState, StepsBySlot
from gitcp.project.workspace import Current, Workspace
from gitcp.steps import batch_record, disputed, inherited, rewind
from gitcp.steps.briefing import BriefedSteps, round_of
from gitcp.steps.model import Options
from gitcp.steps.reopened import Identity, identity


class History:
    """The steps of one branch, as the ledger has them now; safe to share among threads.

    It counts the calls of each name in this run, to tell them apart.
    """

    def __init__(self, workspace: Workspace, current: Current) -> None:
        self.ledger = workspace.ledgers.of(current.session)
        self._store = workspace.store
        self._current = current
        self._workspace = workspace
        self._counts: Counter[tuple[str, str]] = Counter()
        self._reset_after_fork()
        at_fork.in_child(self, History._reset_after_fork)

    def _reset_after_fork(self) -> None:
        # A forked child may have copied it in mid-change, so it reads the ledger again.
        self._lock = RLock()
        self._book = LedgerState(())
        self._line: LedgerPoint | None = None
        self._tip = ""
        self._first: list[Record] = []
        self._taken = 0
        self._opened = False
        self._loops: Counter[StepSlot] = Counter()

    def live(self) -> StepsBySlot:
        """Returns the steps of this branch.

        Raises:
            CorruptError, FormatTooNewError: the ledger cannot be read.
            BusyError: another process kept the ledger busy.
        """
        with self._lock:
            self._refresh()
            return self._book.live(self._current.branch, self._line)

    def call(self, slot: StepSlot) -> Call | None:
        """Returns one step of this branch; see `live`."""
        with self._lock:
            briefing = self._briefing(slot)
            if briefing is not None:
                return briefing.calls.get(slot)
            self._refresh()
            return self._book.call(self._current.branch, slot, self._line)

    def standing_here(self, slot: StepSlot) -> tuple[Call | None, Call | None]:
        """Returns a step as this repository recorded it, if its effect stands, and as it is now.

        See `disputed`. `call` or `live` has just read the ledger.
        """
        with self._lock:
            briefing = self._briefing(slot, looked=True)
            if briefing is not None:
                reported = briefing.calls.get(slot)
            else:
                reported = self._book.call(self._current.branch, slot, self._line)
            known = [] if reported is None else [reported]
            if briefing is None:
                known += [one for one in self._book.begun(slot) if one not in known]
        branch = self._current.branch
        own = disputed.standing_here(
            self.ledger,
            branch,
            known,
            reported,
            lambda call: call.id in self._inherited,
        )
        return own, reported

    @at_fork.computed
    def _inherited(self) -> frozenset[str]:
        pages = self.ledger.pages()
        return inherited.from_before(self._store, pages, self._current)

    def next_slot(self, options: Options) -> StepSlot:
        """Returns which call of a step comes next in this run, or in a batch's record."""
        slot = batch_record.next_slot(options)
        if slot is not None:
            return slot
        if options.key is not None:
            return StepSlot(options.scope, options.name, f"key:{options.key}")
        with self._lock:
            self._refresh()
            self._counts[options.scope, options.name] += 1
            number = self._counts[options.scope, options.name]
        return StepSlot(options.scope, options.name, str(number))

    def times(self, slot: StepSlot, given: str, *, looked: bool = False) -> int:
        """Returns how often a step began with the same arguments, by their digest.

        `looked`: `call` has just read the ledger for the same step; do not read it again.
        """
        with self._lock:
            briefing = self._briefing(slot, looked=looked)
            if briefing is not None:
                return briefing.rounds[round_of(slot, given)]
            if not (looked and self._opened):
                self._refresh()
            return self._loops[round_of(slot, given)]

    @at_fork.computed
    def _identity(self) -> Identity:
        return identity(self._workspace, self._current)

    def _briefing(self, slot: StepSlot, *, looked: bool = False) -> BriefedSteps | None:
        """Returns the batch process's briefing on a step, brought up to date.

        None if it is not enough, or if the whole ledger was read already.
        """
        briefing = None if self._opened else batch_record.briefing()
        if (
            briefing is None
            or not briefing.knows(slot)
            or briefing.identity != self._identity
        ):
            return None
        return briefing if looked or briefing.catch_up(self.ledger) else None

    def is_ours(self, call: Call) -> bool:
        """Whether every command and write that a step asks for, and its result, is ours.

        Raises:
            CorruptError: the result is missing.
            BusyError: another process kept the write-ahead log.
        """
        records = (call.intent, call.result)
        return all(
            disputed.is_ours(self.ledger, record)
            for record in records
            if record is not None
        )

    def refuse_elsewhere(self, call: Call) -> None:
        """Raises unless a step was recorded here.

        Raises:
            UsageError: its records came from elsewhere.
        """
        if not self.is_ours(call):
            raise UsageError(
                f"the result of the step {show_call(call)!a} was recorded elsewhere, so"
                " it does not count here unless you say so",
                hint="look at it with `gitcp steps show`; then allow it with trust=True,"
                " or elsewhere=True of the step, or give the run a name of its own",
            )

    def about(self, kind: str, call: Call, **fields: Any) -> Record:
        """Returns a record about a step, to add to the ledger."""
        return Record(0, "", kind, self._current.branch, id=call.id, **fields)

    def note(self, record: Record) -> Record:
        """Adds a record, durably, and returns it with number and time.

        Raises:
            StorageError: the disk refused; the record was not added.
            BusyError: other processes kept the ledger busy.
        """
        with self._lock:
            first, self._first = self._first, []
        try:
            return self.ledger.append(*first, record)[-1]
        except BaseException:
            self._first = first
            raise

    def _refresh(self) -> None:
        new = self.ledger.since(self._taken)
        if self._opened and not new:
            return
        if not self._opened or not all(map(self._book.apply, new)):
            pages = self.ledger.pages()
            replay = rewind.read(self._store, pages, self._current)
            self._book, self._line = replay.book, replay.line
            self._first = rewind.first_of(replay, self._current.branch)
            new = pages[self._taken :]
        for page in new:
            # A rewind on a joined line does not rewind this run.
            mine = self._opened and "".join(page.parents[:1]) == self._tip
            for record in page.records:
                if record.branch != self._current.branch:
                    continue
                if record.kind == INTENT:
                    slot = StepSlot(record.scope, record.step, record.call)
                    self._loops[round_of(slot, record.input)] += 1
                elif record.kind == BACK:
                    self._went_back(record, running=mine)
            if self._tip in page.parents or not (self._tip or page.parents):
                self._tip = page.oid
        self._taken += len(new)
        self._tip = new[-1].oid if new else self._tip
        self._opened = True

    def _went_back(self, record: Record, *, running: bool) -> None:
        """Counts calls again from the restored state: later calls will be repeated."""
        self._loops.clear()
        if not running:
            return
        self._counts.clear()
        state = LedgerPoint(record.of, record.upto, record.ledger)
        for slot in self._book.at(state):
            if slot.call.isdecimal():
                name = slot.scope, slot.name
                self._counts[name] = max(self._counts[name], int(slot.call))
