"""Combines simultaneous appends of several threads into one write.

While one batch is made durable, further records queue up, and the next batch has them all.
"""

import threading
from collections.abc import Callable, Sequence

from gitcp.format.ledger import Record


class GroupCommit:
    """The queue before a function that writes records, and returns them as written."""

    def __init__(self, write: Callable[[Sequence[Record]], Sequence[Record]]) -> None:
        self._write = write
        # Held briefly, around the queue; never while writing.
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._queue: list[_Ticket] = []

    def append(self, records: Sequence[Record]) -> tuple[Record, ...]:
        """Writes records, perhaps with those of other threads, and returns them.

        Raises the error of the write in each of the threads.
        """
        ticket = _Ticket(records)
        with self._guard:
            self._queue.append(ticket)
        with self._writing:
            if not ticket.done:
                with self._guard:
                    batch, self._queue = self._queue, []
                self._run(batch)
        if ticket.error is not None:
            raise ticket.error
        return ticket.written

    def _run(self, batch: Sequence["_Ticket"]) -> None:
        try:
            given = [record for ticket in batch for record in ticket.records]
            written = iter(self._write(given))
            for ticket in batch:
                ticket.written = tuple(next(written) for _ in ticket.records)
        except BaseException as exc:
            for ticket in batch:
                ticket.error = exc
            raise
        finally:
            for ticket in batch:
                ticket.done = True


class _Ticket:
    """The records that one caller appends, and the result."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.written: tuple[Record, ...] = ()
        self.error: BaseException | None = None
        self.done = False
