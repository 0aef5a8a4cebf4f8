"""The class `Batch` that `gitcp` exports: over records, by any number of workers."""

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeVar

from gitcp.checkpoints import batch as batches
from gitcp.checkpoints.session import BaseSession
from gitcp.errors import StepUnknownError, UsageError
from gitcp.ledger.call import DID_NOT, DONE, OPEN, RUN_AGAIN, StepSlot
from gitcp.project.workspace import Current

if TYPE_CHECKING:
    from gitcp.steps.dispatch import Chunk
    from gitcp.steps.engine import Engine

T = TypeVar("T")
R = TypeVar("R")
# How many chunks are handed out at once, unless a program sets `ahead`.
AHEAD = 64
_SHOWN = 5


class Batch(batches.Batch[T]):
    """Iterates over records, saving which are done; use it as a context manager.

    A record counts as done when the next one is requested. The position is
    `{"offset": n}`: n records are done. With `map`, which yields in any order, it may be
    `{"offset": n, "done": [[a, b], …]}`: records a to b - 1 are done, too.
    """

    def __init__(
        self,
        session: BaseSession,
        records: Iterable[T],
        *,
        engine: "Callable[[], Engine]",
        executor: Executor | Callable[[], Executor] | None = None,
        **given: Any,
    ) -> None:
        super().__init__(session, records, **given)
        self._engine = engine
        self._executor = executor
        self.unknown: dict[int, StepUnknownError] = {}

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        session = self._session
        ledgers = session.workspace.ledgers
        if self._executor is not None and ledgers.started(session.name):
            # A worker may have ended before it moved its ledger records into git.
            ledgers.of(session.name).drain()

    def __iter__(self) -> Iterator[T]:
        if self._executor is not None:
            raise UsageError(
                "a batch with an executor does not run the body of a loop elsewhere",
                hint="for record, result in batch.map(function): …",
            )
        return super().__iter__()

    def map(
        self, function: Callable[[T], R], *, chunksize: int = 1, ahead: int = AHEAD
    ) -> Generator[tuple[T, R], None, None]:
        """Calls a function with each record that is not done; yields record and result.

        The executor's workers call it, with `chunksize` records at a time; without an
        executor this thread does. Results come in the order in which they are ready. At
        most `ahead` chunks are handed out at once, so `records` may have no end.

        If the function raises, `map` raises the error, and the batch ends; the next run
        tries the record again. If it is not known whether a step of a record took effect,
        the record is left out and listed in `unknown`; the others continue.

        Raises:
            StepUnknownError: at the end, if any record was left out.
            UsageError: the function is a generator or a coroutine function.
            BrokenExecutor: a worker died; see `Session.batch`.
        """
        from gitcp.steps.functions import is_async, refuse_generator  # noqa: PLC0415

        name = getattr(function, "__qualname__", repr(function))
        refuse_generator(name, function)
        if is_async(function):
            raise UsageError(
                f"{name!a} is a coroutine function, which workers do not await",
                hint="give map a plain function: lambda record: asyncio.run(work(record))",
            )
        for given, number in (("chunksize", chunksize), ("ahead", ahead)):
            if number < 1:
                raise UsageError(f"{given} must be at least 1", hint=f"remove {given}")
        return self._map(function, chunksize, ahead if self._executor else 1)

    def _map(
        self, function: Callable[[T], R], size: int, ahead: int
    ) -> Generator[tuple[T, R], None, None]:
        from gitcp.steps.dispatch import Chunk, Dispatch  # noqa: PLC0415  on use

        self.unknown = {}
        chunks = self._chunks(size)
        following = next(chunks, None)
        with Dispatch(self._executor, function, self._briefer()) as out:
            while following is not None or out:
                while following is not None and len(out) < ahead:
                    out.submit(following)
                    following = next(chunks, None)
                chunk, outcome = out.take()
                for place, result in outcome.results:
                    yield chunk.records[place], result
                    self._count(chunk.first + place)
                for place, unknown in outcome.unknown:
                    number = chunk.first + place
                    if self._ask(unknown):
                        out.submit(Chunk(number, [chunk.records[place]]))
                    else:
                        self.unknown[number] = unknown
                if outcome.error is not None:
                    raise outcome.error[1]
        if self.unknown:
            raise self._left_out()

    def _briefer(self) -> "Callable[[int, int], bytes | None]":
        from gitcp.steps.briefer import Briefer  # noqa: PLC0415  on use

        session = self._session
        current = Current(session.name, session.branch)
        return Briefer(session.workspace, current, self._done).brief

    def _chunks(self, size: int) -> "Iterator[Chunk[T]]":
        from gitcp.steps.dispatch import Chunk  # noqa: PLC0415  on use

        first, records = 0, list[T]()
        for number, record in self._pending():
            if records and (number != first + len(records) or len(records) == size):
                yield Chunk(first, records)
                records = []
            if not records:
                first = number
            records.append(record)
        if records:
            yield Chunk(first, records)

    def _ask(self, unknown: StepUnknownError) -> bool:
        """Asks the caller's function whether a step took effect; returns whether it answered.

        It is called here, not in a worker, so that it may use what this process has open.
        """
        engine = self._engine()
        if engine.ask is None or unknown.slot is None:
            return False
        call = engine.history.call(StepSlot(*unknown.slot))
        if call is None or call.state != OPEN:
            # The step was resolved meanwhile, for another record that has it, too.
            return call is not None
        said = engine.ask(call)
        if said not in {DONE, RUN_AGAIN, DID_NOT}:
            return False
        engine.answer(call, said)
        return True

    def _left_out(self) -> StepUnknownError:
        numbers = sorted(self.unknown)
        shown = ", ".join(map(str, numbers[:_SHOWN]))
        more = ", …" if len(numbers) > _SHOWN else ""
        count = f"{len(numbers)} record{'s' if len(numbers) > 1 else ''}"
        first = self.unknown[numbers[0]]
        return StepUnknownError(
            f"{count} left out ({shown}{more}), because it is not known whether a"
            f" step took effect. The first:  {first.message}",
            hint="answer those that `gitcp steps` lists, and run it again",
        )
