"""The record of a batch that is being worked on, and the next step in it."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gitcp.errors import UsageError
from gitcp.format.ledger import LOCAL
from gitcp.ledger.call import Call, StepSlot
from gitcp.steps.briefing import BriefedSteps, scope_of
from gitcp.steps.model import Options


class _Record:
    """A record by its number; `beside`: others may be worked on at the same time."""

    def __init__(
        self, number: int, briefing: BriefedSteps | None, *, beside: bool
    ) -> None:
        self.number = number
        self.briefing = briefing
        self.beside = beside
        self.counts: Counter[tuple[str, str]] = Counter()


_current: ContextVar[_Record | None] = ContextVar("gitcp_record", default=None)


@contextmanager
def entered(
    number: int, briefing: BriefedSteps | None = None, *, beside: bool
) -> Iterator[None]:
    """Makes a record the current one: its steps are counted from 1."""
    token = _current.set(_Record(number, briefing, beside=beside))
    try:
        yield
    finally:
        _current.reset(token)


def briefing() -> BriefedSteps | None:
    """Returns what this worker was briefed on, if it was."""
    record = _current.get()
    return record.briefing if record is not None else None


def not_in_workers(ask: Callable[[Call], str]) -> Callable[[Call], str]:
    """Returns a function that asks, but in a worker of a batch, which has no answer."""

    def asked(call: Call) -> str:
        record = _current.get()
        return "" if record is not None and record.beside else ask(call)

    return asked


def next_slot(options: Options) -> StepSlot | None:
    """Returns which call of a step comes next in the record; None outside of a batch.

    A step with a key of its own is the same one in whatever record.

    Raises:
        UsageError: the step changes files, and other workers change them as well.
    """
    record = _current.get()
    if record is None:
        return None
    if record.beside and options.effect == LOCAL:
        raise UsageError(
            f"the step {options.name!a} changes files of the project, which other"
            " workers may change at the same time, so its changes could not be"
            " told apart",
            hint="return the content, and write the files where `map` yields it",
        )
    if options.key is not None:
        return None
    record.counts[options.scope, options.name] += 1
    call = str(record.counts[options.scope, options.name])
    return StepSlot(scope_of(record.number, options.scope), options.name, call)
