"""A batch: iterates over records, and saves which are done."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from gitcp import notices
from gitcp.checkpoints.done_records import DoneRecords
from gitcp.errors import UsageError
from gitcp.store.checkpoint import Checkpoint

if TYPE_CHECKING:
    from gitcp.checkpoints.session import BaseSession

T = TypeVar("T")


class Batch(Generic[T]):
    """Iterates over records, saving how many are done; use it as a context manager.

    A record counts as done when the next one is requested. The position is
    `{"offset": n}`: n records are done.
    """

    def __init__(
        self,
        session: "BaseSession",
        records: Iterable[T],
        *,
        every: int | None,
        seconds: float | None,
        note: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if every is not None and every < 1:
            raise UsageError("every must be at least 1", hint="for instance every=1000")
        if seconds is not None and seconds <= 0:
            raise UsageError(
                "seconds must be more than 0", hint="for instance seconds=30"
            )
        self._clock = clock
        self._session = session
        self._records = records
        self._every = every
        self._seconds = seconds
        self._note = note
        last = session.last
        self._done = _done(last) if last is not None else DoneRecords()
        self._found = self._done.end
        self._saved = self._done.count
        self._saved_at = self._clock()

    @property
    def offset(self) -> int:
        """The number of the first record that is not done: all before it are."""
        return self._done.offset

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        # Records that are done stay done, even if an error ended the loop.
        if self._done.count != self._saved:
            self.save()
        self._session.flush()

    def save(self) -> Checkpoint:
        """Saves the position now."""
        saved = self._session.save(
            position=self._done.position, note=self._note, trigger="interval"
        )
        self._saved = self._done.count
        self._saved_at = self._clock()
        return saved

    def __iter__(self) -> Iterator[T]:
        for number, record in self._pending():
            yield record
            self._count(number)

    def _pending(self) -> Iterator[tuple[int, T]]:
        """Yields the records that are not done, with their numbers.

        Raises:
            UsageError: more records are done than were given.
        """
        count = 0
        for number, record in enumerate(self._records):
            count = number + 1
            if number not in self._done:
                yield number, record
        if count < self._found:
            # Otherwise tomorrow's records, under the name of today's, would all count
            # as done.
            session = self._session
            raise UsageError(
                f"{self._found} records are done in"
                f" {session.name}/{session.branch}, but there are only {count}:"
                " these are other records",
                hint="use a different session for other records",
            )

    def _count(self, number: int) -> None:
        """Counts a record as done, and saves if a save is due."""
        self._done.add(number)
        if self._is_due():
            self.save()

    def _is_due(self) -> bool:
        if self._every is not None and self._done.count - self._saved >= self._every:
            return True
        return (
            self._seconds is not None
            and self._clock() - self._saved_at >= self._seconds
        )


def _done(last: Checkpoint) -> DoneRecords:
    """Returns which records are done, as a batch saved it.

    Raises:
        UsageError: the position is not that of a batch; to begin at 0 would repeat
            every record.
    """
    position = last.position
    try:
        done = DoneRecords.of(position)
    except ValueError as exc:
        raise UsageError(
            f"the position in {last.session}/{last.branch}:{last.seq} is not a batch's:"
            f" {json.dumps(position)[:80]}",
            hint='give the batch a session of its own, or save position={"offset": N}'
            " first",
        ) from exc
    if done.count and not last.origin.here:
        notices.tell(
            f"{done.count} records count as done in {last.session}/{last.branch},"
            f" because a checkpoint that was made elsewhere ({last.origin.where}) says so"
        )
    return done
