"""The steps in a chunk of records, as far as the process of a batch knows them.

A worker starts with these in place of the whole ledger. It reads newer ledger commits, and
reads the whole ledger only if it needs another step.
"""

from collections import Counter
from collections.abc import Container, Sequence
from typing import NamedTuple

from gitcp.format.ledger import ABOUT_STEPS, INTENT, LedgerCommit, Record
from gitcp.ledger.call import Call, StepSlot, after
from gitcp.ledger.log import Ledger
from gitcp.steps import results
from gitcp.steps.reopened import Identity

_NO_ARGUMENTS = results.digest(())
_SCOPE = "record "
_DIGITS = 18


class RecordSteps:
    """The steps of one branch in some records of a batch, after a ledger commit.

    `last` is the number of the commit's last record. `rounds` counts how often a step
    began with the same arguments.
    """

    def __init__(self, branch: str, numbers: Container[int]) -> None:
        self._branch = branch
        self._numbers = numbers
        self._ids: dict[str, StepSlot] = {}
        self.page = ""
        self.last = 0
        self.calls: dict[StepSlot, Call] = {}
        self.rounds: Counter[StepSlot] = Counter()

    def take(self, pages: Sequence[LedgerCommit]) -> bool:
        """Applies the next ledger commits; False if that needs the whole ledger.

        It does after a join, or after a branch was forked or rewound.
        """
        for page in pages:
            if "".join(page.parents) != self.page:
                return False
            if not self._take_page(page):
                return False
            self.page, self.last = page.oid, page.records[-1].n
        return True

    def _take_page(self, page: LedgerCommit) -> bool:
        return all(map(self._take, page.records))

    def _take(self, record: Record) -> bool:
        known = self._ids.get(record.id)
        if record.branch != self._branch:
            # Records of other branches do not matter, unless they concern a shared step.
            return known is None
        if record.kind not in ABOUT_STEPS:
            return False
        if known is not None:
            call = self.calls[known]
            if call.id == record.id:
                updated = after(call, record)
                assert updated is not None
                self.calls[known] = updated
        if record.kind == INTENT and number_of(record.scope) in self._numbers:
            slot = StepSlot(record.scope, record.step, record.call)
            if known is None:
                began = after(None, record)
                assert began is not None
                self.calls[slot] = began
                self._ids[began.id] = slot
            self._began(slot, round_of(slot, record.input))
        return True

    def _began(self, slot: StepSlot, of: StepSlot) -> None:  # noqa: ARG002  by record
        self.rounds[of] += 1


class Briefing(NamedTuple):
    """The data sent to a worker: the steps in some records, after ledger commit `page`."""

    identity: Identity
    page: str
    last: int
    numbers: frozenset[int]
    calls: tuple[Call, ...]
    rounds: dict[StepSlot, int]


class BriefedSteps(RecordSteps):
    """The steps that a worker was briefed on, updated from the ledger."""

    def __init__(self, briefing: Briefing) -> None:
        super().__init__(briefing.identity.branch, briefing.numbers)
        self.identity = briefing.identity
        self.page, self.last = briefing.page, briefing.last
        self.calls = {call.slot: call for call in briefing.calls}
        self._ids = {call.id: call.slot for call in briefing.calls}
        self.rounds = Counter(briefing.rounds)

    def knows(self, slot: StepSlot) -> bool:
        """Whether the step is in one of the records."""
        return number_of(slot.scope) in self._numbers

    def catch_up(self, ledger: Ledger) -> bool:
        """Applies newer records; False if the whole ledger has to be read."""
        pages = ledger.after(self.page, self.last)
        return pages is not None and self.take(pages)


def scope_of(number: int, within: str = "") -> str:
    """Returns the scope of the steps in a record of a batch."""
    return f"{within}/{_SCOPE}{number}" if within else f"{_SCOPE}{number}"


def number_of(scope: str) -> int:
    """Returns the number of the record that a scope belongs to; -1 if to none."""
    number = scope.rpartition(_SCOPE)[2]
    if not number.isdecimal() or len(number) > _DIGITS:
        return -1
    return int(number) if scope.rpartition("/")[2] == _SCOPE + number else -1


def round_of(slot: StepSlot, given: str) -> StepSlot:
    """Returns the value that repeats each time a program goes round in a loop.

    That is the step's name and arguments. If it has no arguments, its key replaces them;
    if JSON cannot hold them, its slot does.
    """
    if not given or (given == _NO_ARGUMENTS and not slot.call.isdecimal()):
        return slot
    return slot._replace(call=given)
