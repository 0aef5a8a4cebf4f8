"""The effects ledger of a session: read it, add to it, never take from it (E1 to E4).

Appends of several threads that meet become one commit: while one is being made durable
the others queue up, and the next takes all of them.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec
from msgspec import UNSET

from gitcp import durable
from gitcp.errors import BranchMovedError, CorruptError, StorageError
from gitcp.format import layout, tree
from gitcp.format.checkpoint import timestamp
from gitcp.format.ledger import (
    INLINE,
    Record,
    encode_ledger_commit,
    ledger_trailers,
    records_of,
    value_name,
)
from gitcp.format.tree import FILE, Entry
from gitcp.git.consolidate import consolidate
from gitcp.git.objects import TREE
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction
from gitcp.names import encode

_RETRIES = 200


class Ledger:
    """The ledger of one session; safe to share among threads."""

    def __init__(
        self,
        repository: Repository,
        session: str,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.repository = repository
        self.session = session
        self.ref = layout.ledger_ref(session)
        self._clock = clock
        self._tip: str | None = None
        self._records: list[Record] = []
        self._values: dict[int, bytes] = {}
        # Held for moments, around what is known of the ledger; never while writing.
        self._lock = threading.RLock()
        self._writing = threading.Lock()
        self._queue: list[_Ticket] = []
        self._queued = threading.Lock()

    def records(self) -> list[Record]:
        """Returns all records, oldest first, as they are now.

        Raises:
            CorruptError: the ledger is damaged, or was moved back.
            FormatTooNewError: a newer gitcp wrote it.
        """
        with self._lock:
            self._refresh()
            return list(self._records)

    def since(self, count: int) -> list[Record]:
        """Returns the records after the first `count`, as `records` does."""
        with self._lock:
            self._refresh()
            return self._records[count:]

    def _refresh(self) -> None:
        found = self.repository.refs.read(self.ref)
        if found == self._tip:
            return
        new: list[list[Record]] = []
        values: dict[int, bytes] = {}
        at = found
        while at != self._tip:
            if at is None:
                raise CorruptError(
                    f"{self.ref} was moved back: {self._tip} is not in it any more",
                    hint=f"git update-ref {self.ref} {self._tip} puts it right",
                )
            oid = bytes.fromhex(at)
            commit = self.repository.objects.commit(oid)
            records = records_of(commit, self.ref)
            new.append(list(records))
            for record in records:
                if record.size:
                    values[record.n] = commit.tree
            at = commit.parents[0].hex() if commit.parents else None
        for batch in reversed(new):
            self._records += batch
        self._values |= values
        self._tip = found

    def value(self, record: Record) -> bytes:
        """Returns the JSON text of a result.

        Raises:
            CorruptError: it is missing.
        """
        if record.size:
            objects = self.repository.objects
            entry = tree.lookup(
                self._values.get(record.n), value_name(record.n), objects.tree
            )
            if entry is None:
                raise CorruptError(
                    f"the value of record {record.n} of {self.ref} is missing",
                    hint="run `gitcp verify`",
                )
            return objects.blob(entry.oid)
        return b"null" if record.value is UNSET else bytes(record.value)

    def append(self, *records: Record) -> tuple[Record, ...]:
        """Adds records, durably, and returns them with number and time.

        Raises:
            StorageError: the disk refused; they are not in it.
            BusyError, BranchMovedError: other processes kept it busy.
        """
        ticket = _Ticket(records)
        with self._queued:
            self._queue.append(ticket)
        with self._writing:
            if not ticket.done:
                with self._queued:
                    batch, self._queue = self._queue, []
                self._write(batch)
        if ticket.error is not None:
            raise ticket.error
        return ticket.written

    def _write(self, batch: Sequence["_Ticket"]) -> None:
        """Makes one commit of what several callers want to add."""
        try:
            written = iter(self._commit([one for t in batch for one in t.records]))
            for ticket in batch:
                ticket.written = tuple(next(written) for _ in ticket.records)
        except BaseException as exc:
            for ticket in batch:
                ticket.error = exc
            raise
        finally:
            for ticket in batch:
                ticket.done = True

    def _commit(self, wanted: Sequence[Record]) -> list[Record]:
        with transaction(self.repository) as opened:
            for _ in range(_RETRIES):
                with self._lock:
                    self._refresh()
                    tip = self._tip
                    last = self._records[-1].n if self._records else 0
                now = self._clock()
                at = timestamp(now)
                numbered = [
                    msgspec.structs.replace(record, n=last + number, at=at)
                    for number, record in enumerate(wanted, 1)
                ]
                root, numbered = _store_values(opened, numbered)
                parent = bytes.fromhex(tip) if tip else None
                raw = encode_ledger_commit(
                    root, parent, int(now), encode(self.session), numbered
                )
                oid = opened.add_commit(raw)
                try:
                    opened.publish(self.ref, expect=tip, new=oid)
                except BranchMovedError:
                    continue
                except StorageError as exc:
                    if self.repository.refs.read(self.ref) != oid.hex():
                        raise
                    raise StorageError(
                        f"the record is written, but not known to be durable:"
                        f" {exc.message}",
                        hint="see to the disk; `gitcp steps` shows what is recorded",
                    ) from exc
                break
            else:
                raise BranchMovedError(
                    f"{self.ref} kept moving", hint="run the command again"
                )
        with self._lock:
            # A reader may have seen it already.
            if self._tip == tip:
                self._tip = oid.hex()
                self._records += numbered
                self._values |= {record.n: root for record in numbered if record.size}
        # It is recorded: housekeeping that fails must not deny that.
        with suppress(StorageError):
            consolidate(self.repository)
        return numbered


class _Ticket:
    """What one caller wants to add, and what came of it."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.written: tuple[Record, ...] = ()
        self.error: BaseException | None = None
        self.done = False


def _store_values(
    opened: Transaction, records: Sequence[Record]
) -> tuple[bytes, list[Record]]:
    """Puts large values into a tree; returns its oid and the records without them."""
    entries: dict[bytes, Entry] = {}
    found = []
    for record in records:
        value = record.value
        if value is not UNSET and len(bytes(value)) > INLINE:
            data = bytes(value)
            with durable.storage("writing the record"):
                oid = opened.add_blob(data)
            entries[value_name(record.n)] = Entry(FILE, oid)
            found.append(msgspec.structs.replace(record, value=UNSET, size=len(data)))
        else:
            found.append(record)
    with durable.storage("writing the record"):
        return opened.add_object(TREE, tree.encode(entries)), found


def last_number(repository: Repository, session: str) -> int:
    """Returns the number of a ledger's last record; 0 where there is none."""
    tip = repository.refs.read(layout.ledger_ref(session))
    if tip is None:
        return 0
    said = ledger_trailers(repository.objects.commit(bytes.fromhex(tip)))
    if said is None:
        raise CorruptError(
            f"{layout.ledger_ref(session)} points to {tip}, which is no ledger",
            hint=f"look at it with `git show {tip}`",
        )
    return said.last


def ledgers(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yields the encoded session and the tip of each ledger."""
    for ref, oid in repository.refs.list(layout.EFFECTS).items():
        component = ref.removeprefix(layout.EFFECTS)
        if "/" not in component:
            yield component, oid
