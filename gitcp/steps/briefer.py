"""Briefs the workers of a batch on the steps in their records."""

import pickle
import time
from collections import defaultdict
from collections.abc import Callable

from gitcp.checkpoints.done_records import DoneRecords
from gitcp.ledger.call import StepSlot
from gitcp.ledger.log import Ledger
from gitcp.project.workspace import Current, Workspace
from gitcp.steps.briefing import Briefing, RecordSteps, number_of
from gitcp.steps.reopened import identity

# Seconds between two reads of the ledger: workers read newer records themselves.
_LOOK = 0.25


class Briefer(RecordSteps):
    """The steps in all records that were not done when a batch began, as of the last read.

    With a join, or a fork or rewind of this branch, the ledger is not plain: then there is
    no briefing, and each worker reads all of it.
    """

    def __init__(
        self,
        workspace: Workspace,
        current: Current,
        done: DoneRecords,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(current.branch, _Others(done.copy()))
        self._identity = identity(workspace, current)
        self._ledgers = workspace.ledgers
        self._session = current.session
        self._clock = clock
        self._due = clock()
        self._plain = True
        # A branch without a record of its own may be a fork of another.
        self._met = False
        self._begun: defaultdict[int, set[StepSlot]] = defaultdict(set)

    def brief(self, first: int, last: int) -> bytes | None:
        """Returns the pickled `Briefing` about records; None if the ledger is not plain."""
        if self._clock() >= self._due:
            self._look()
            self._due = self._clock() + _LOOK
        if not self._plain or not self._met:
            return None
        numbers = range(first, last + 1)
        slots = [slot for number in numbers for slot in self._begun.get(number, ())]
        return pickle.dumps(
            Briefing(
                self._identity,
                self.page,
                self.last,
                frozenset(numbers),
                tuple(self.calls[slot] for slot in slots if slot in self.calls),
                {slot: self.rounds[slot] for slot in slots if slot in self.rounds},
            )
        )

    def _look(self) -> None:
        if not self._plain or not self._ledgers.started(self._session):
            return
        ledger = self._ledgers.of(self._session)
        if not self.page:
            self._begin(ledger)
        pages = ledger.after(self.page, self.last) if self.page else ledger.since(0)
        self._met = self._met or any(
            record.branch == self._branch
            for page in pages or ()
            for record in page.records
        )
        if pages is None or not self.take(pages):
            self._plain = False
        # Workers read only a part of the ledger, and cannot write the page cache.
        ledger.keep()

    def _begin(self, ledger: Ledger) -> None:
        """Reads the cached pages about records that are not done."""
        kept = ledger.select(lambda scope: number_of(scope) in self._numbers)
        if kept is not None:
            self._met = self._branch in kept.branches
            # Pages that do not concern these records are not even read.
            self._plain = all(map(self._take_page, kept.pages))
            self.page, self.last = kept.page, kept.last

    def _began(self, slot: StepSlot, of: StepSlot) -> None:
        super()._began(slot, of)
        self._begun[number_of(slot.scope)].update((slot, of))


class _Others:
    """The numbers of records that are not done."""

    def __init__(self, done: DoneRecords) -> None:
        self._done = done

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and number >= 0 and number not in self._done
