"""Hands chunks of a batch to an executor, and collects their outcomes."""

import pickle
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from queue import SimpleQueue
from typing import Any, Generic, Self, TypeVar

from gitcp.steps import worker
from gitcp.steps.worker import Outcome

T = TypeVar("T")

# How often a chunk that the executor loses is handed out, and how often an executor is made
# again without a chunk done in between: a record may kill its worker each time.
LOST = 3


class Chunk(Generic[T]):
    """Consecutive records, from number `first`."""

    def __init__(self, first: int, records: list[T]) -> None:
        self.first = first
        self.records = records
        self.lost = 0


class Dispatch(Generic[T]):
    """The chunks that are handed out and not yet done; use it as a context manager.

    `executor` may be a function that returns one. That executor is closed at the end, and
    made again if a lost worker breaks it. None: the caller's thread does the work. `brief`
    makes a worker's briefing on the records from the first to the last.
    """

    def __init__(
        self,
        executor: Executor | Callable[[], Executor] | None,
        function: Callable[[T], Any],
        brief: Callable[[int, int], bytes | None] = lambda _first, _last: None,
    ) -> None:
        self._function = function
        self._brief = brief
        self._make: Callable[[], Executor] | None = None
        self._executor: Executor | None = None
        if executor is None or isinstance(executor, Executor):
            self._executor = executor
        else:
            self._make = executor
            self._executor = executor()
        if self._executor is not None:
            worker.accompany(self._executor)
        self._ended: SimpleQueue[Future[bytes]] = SimpleQueue()
        self._here: list[Chunk[T]] = []
        self._out: dict[Future[bytes], tuple[Chunk[T], Executor]] = {}
        self._breaks = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        running = [future for future in self._out if not future.cancel()]
        # A chunk that still runs would process the same records as the next batch.
        wait(running)
        self._out.clear()
        if self._make is not None and self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def __len__(self) -> int:
        return len(self._out) + len(self._here)

    def submit(self, chunk: Chunk[T]) -> None:
        """Hands out a chunk.

        Raises:
            BrokenExecutor: the executor has lost its workers.
        """
        executor = self._executor
        if executor is None:
            self._here.append(chunk)
            return
        try:
            future = executor.submit(
                worker.work, worker.Handed(self._function, *self._given(chunk))
            )
        except BrokenExecutor as exc:
            self._renew(executor, exc)
            self.submit(chunk)
        else:
            self._out[future] = chunk, executor
            future.add_done_callback(self._ended.put)

    def _given(self, chunk: Chunk[T]) -> tuple[int, list[T], bytes | None]:
        last = chunk.first + len(chunk.records) - 1
        return chunk.first, chunk.records, self._brief(chunk.first, last)

    def take(self) -> tuple[Chunk[T], Outcome]:
        """Waits for a chunk that is handed out; returns it with its outcome.

        Raises:
            BrokenExecutor: the executor has lost its workers, and is not made again.
            Exception: any other error of the executor, but not of the function.
        """
        while not self._here:
            future = self._ended.get()
            chunk, executor = self._out.pop(future)
            try:
                pickled = future.result()
            except (BrokenExecutor, CancelledError) as exc:
                self._renew(executor, exc)
            except Exception as exc:
                chunk.lost += 1
                if chunk.lost >= LOST:
                    exc.add_note(f"{_numbers(chunk)}: handed out {LOST} times")
                    raise
            else:
                self._breaks = 0
                return chunk, pickle.loads(pickled)  # noqa: S301  what our worker wrote
            self.submit(chunk)
        chunk = self._here.pop()
        return chunk, worker.work_here(self._function, chunk.first, chunk.records)

    def _renew(self, broken: Executor, error: BaseException) -> None:
        """Makes a new executor in place of a broken one, unless that is done already."""
        if broken is not self._executor:
            return
        if self._make is None:
            error.add_note(
                "what is done is saved: run it again; or pass a function that makes the"
                " executor, to have it made again: executor=lambda: ProcessPoolExecutor(8)"
            )
            raise error
        self._breaks += 1
        if self._breaks > LOST:
            error.add_note(f"it broke {LOST} times without a chunk coming back")
            raise error
        broken.shutdown(wait=False, cancel_futures=True)
        self._executor = self._make()
        worker.accompany(self._executor)


def _numbers(chunk: Chunk[Any]) -> str:
    last = chunk.first + len(chunk.records) - 1
    return f"records {chunk.first} to {last}"
