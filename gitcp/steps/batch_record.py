"""The record of a batch that is being processed, and the next step in it."""

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar, Token

from gitcp.errors import UsageError
from gitcp.format.ledger import LOCAL
from gitcp.ledger.call import Call, StepSlot
from gitcp.steps.briefing import BriefedSteps, scope_of
from gitcp.steps.model import Options


class BatchRecord:
    """A record by its number; as a context manager, makes it the current record.

    `beside`: workers may process others at the same time. A worker makes one for each
    record, even a small one, so this is kept cheap.
    """

    __slots__ = ("_token", "beside", "briefing", "counts", "number")

    def __init__(
        self,
        number: int,
        briefing: BriefedSteps | None = None,
        *,
        beside: bool,
    ) -> None:
        self.number = number
        self.briefing = briefing
        self.beside = beside
        # The number of calls by step; None until the first call.
        self.counts: Counter[tuple[str, str]] | None = None

    def __enter__(self) -> None:
        self._token: Token[BatchRecord | None] = _current.set(self)

    def __exit__(self, *raised: object) -> None:
        _current.reset(self._token)


_current: ContextVar[BatchRecord | None] = ContextVar("gitcp_record", default=None)


def briefing() -> BriefedSteps | None:
    """Returns this worker's briefing, if it has one."""
    record = _current.get()
    return record.briefing if record is not None else None


def not_in_workers(ask: Callable[[Call], str]) -> Callable[[Call], str]:
    """Returns a function that asks, except in a worker of a batch: there it gives no answer."""

    def asked(call: Call) -> str:
        record = _current.get()
        return "" if record is not None and record.beside else ask(call)

    return asked


def next_slot(options: Options) -> StepSlot | None:
    """Returns which call of a step comes next in the record; None outside of a batch.

    A step with a key of its own is the same step in every record.

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
    if record.counts is None:
        record.counts = Counter()
    record.counts[options.scope, options.name] += 1
    call = str(record.counts[options.scope, options.name])
    return StepSlot(scope_of(record.number, options.scope), options.name, call)
