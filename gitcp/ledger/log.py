"""The effects ledger of a session: reads it and appends to it (E1 to E4).

A record is durable once it is in the session's redo log; git has it soon after
(docs/format.md, 12a and 16). Appends of several threads that meet become one page: while
one is being made durable the others queue up, and the next takes all of them.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from msgspec import UNSET

from gitcp import at_fork
from gitcp.errors import CorruptError
from gitcp.format import layout, tree
from gitcp.format.commit import Commit, parse_commit
from gitcp.format.ledger import JOINED, Page, Record, ledger_trailers, value_name
from gitcp.git.pack import read_entry
from gitcp.git.repository import Repository
from gitcp.ledger.commits import new_page, place, read_pages
from gitcp.ledger.join import join
from gitcp.ledger.signing import Signet
from gitcp.wal import log_file
from gitcp.wal.background import Janitor
from gitcp.wal.drain import drain
from gitcp.wal.log_file import Move, RedoLog

# What became of a ledger that came from elsewhere; the fourth is JOINED.
UP_TO_DATE, CREATED, FAST_FORWARD = "up-to-date", "created", "fast-forward"


class Ledger:
    """The ledger of one session; safe to share among threads."""

    def __init__(
        self,
        repository: Repository,
        session: str,
        janitor: Janitor,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.repository = repository
        self.session = session
        self.ref = layout.ledger_ref(session)
        self.signet = Signet(repository)
        self._janitor = janitor
        self._clock = clock
        self._log = RedoLog(repository, layout.ledger_log(session))
        self._reset()
        at_fork.in_child(self, Ledger._reset_after_fork)

    def _reset_after_fork(self) -> None:
        # In a child. A lock of the parent is on its descriptor as well.
        self._log.close()
        self._reset()

    def _reset(self) -> None:
        self._tip: str | None = None
        self._pages: list[Page] = []
        self._known: set[str] = set()
        self._trees: dict[tuple[str, int, str], bytes] = {}
        # Held while the redo log is read or written.
        self._mutex = threading.Lock()
        # Held for moments, around what is known of the ledger; never while writing.
        self._lock = threading.Lock()
        self._queue: list[_Ticket] = []
        self._writing = threading.Lock()
        # While the log is held to write, what is known is all there is.
        self._current = False
        self._forget_log()

    def _forget_log(self) -> None:
        self._generation = self._log.generation
        # Where the log moves the ref from and to, in order, and the objects it holds.
        self._moves: dict[str | None, None] = {}
        self._objects: dict[bytes, bytes] = {}

    # --- reading ------------------------------------------------------------------

    def pages(self) -> list[Page]:
        """Returns all pages as they are now, each after those that it follows on.

        Raises:
            CorruptError: the ledger is damaged, or was moved back.
            FormatTooNewError: a newer gitcp wrote it.
            BusyError: another process kept the redo log.
        """
        return self.since(0)

    def since(self, count: int) -> list[Page]:
        """Returns the pages after the first `count`, as `pages` does."""
        with self._lock:
            if self._current:
                return self._pages[count:]
        with self._held(), self._lock:
            self._refresh()
            return self._pages[count:]

    def records(self) -> list[Record]:
        """Returns the records of all pages."""
        return [record for page in self.pages() for record in page.records]

    def reached(self) -> tuple[int, str]:
        """Returns how far it has come: the number of its last record, and its tip.

        0 and nothing where there is none.

        Raises:
            CorruptError: the last page is damaged.
            BusyError: another process kept the redo log.
        """
        with self._held():
            tip = self._find_tip()
            if tip is None:
                return 0, ""
            with self._lock:
                if tip == self._tip:
                    return self._pages[-1].records[-1].n, tip
            said = ledger_trailers(self._commit(tip))
        if said is None:
            raise CorruptError(
                f"{self.ref} points to {tip}, which is not a ledger",
                hint=f"look at it with `git show {tip}`",
            )
        return said.last, tip

    @contextmanager
    def _held(self, *, write: bool = False) -> Iterator[None]:
        """Holds the redo log, where there is one, and takes in what it holds."""
        with self._mutex:
            if not write and not self._log.exists():
                # Looking must not leave a file behind.
                self._log.close()
                self._forget_log()
                yield
                return
            with self._log.locked(timeout=self.repository.refs.lock_timeout):
                self._take_in()
                yield

    def _take_in(self) -> None:
        if self._log.generation != self._generation:
            # Another file: what the one before held is in git by now.
            self._forget_log()
        for record, _ in self._log.news():
            self._absorb(record)

    def _absorb(self, record: log_file.Record) -> None:
        self._objects.update(record.objects)
        for move in record.moves:
            self._moves |= {move.expect: None, move.new: None}

    def _find_tip(self) -> str | None:
        """Returns the last page; the log is held."""
        found: str | None
        try:
            found = self.repository.refs.read(self.ref)
        except CorruptError:
            if not self._moves:
                raise
            # The redo log knows better.
            found = ""
        if not self._moves:
            return found
        if found in self._moves:
            return next(reversed(self._moves))
        # Another process moved the ref, or the log came back after a power cut.
        drain(self.repository, [self._log], join)
        self._log.acquire(timeout=self.repository.refs.lock_timeout)
        self._take_in()
        return self._find_tip()

    def _refresh(self) -> None:
        """Reads the pages that are not known yet; both locks are held."""
        found = self._find_tip()
        if found == self._tip:
            return
        if found is not None:
            new, met = self._read(found, self._known)
            purged = any(self._tip in page.purged for page in new)
            if self._tip is None or self._tip in met or purged:
                if purged:
                    # Every page after the first that was purged is another one.
                    new, _ = self._read(found, set())
                    self._pages.clear()
                    self._known.clear()
                self._take(new)
                self._tip = found
                return
        raise CorruptError(
            f"{self.ref} was moved back: {self._tip} is not in it any more",
            hint=f"git update-ref {self.ref} {self._tip} puts it right",
        )

    def _read(self, tip: str, known: Collection[str]) -> tuple[list[Page], set[str]]:
        """Returns the pages below a commit that are not known, and those met that are."""
        return read_pages(self._commit, tip, self.ref, known)

    def _commit(self, tip: str) -> Commit:
        oid = bytes.fromhex(tip)
        held = self._objects.get(oid)
        if held is None:
            return self.repository.objects.commit(oid)
        return parse_commit(read_entry(held)[1])

    def _take(self, new: Sequence[Page]) -> None:
        self._pages += new
        for page in new:
            self._known.add(page.oid)
            self._trees.update(
                (place(record), page.tree) for record in page.records if record.size
            )

    def is_ours(self, record: Record) -> bool:
        """Whether a record was written in this repository."""
        return self.signet.is_ours(record)

    def value(self, record: Record) -> bytes:
        """Returns the JSON text of a result.

        Raises:
            CorruptError: it is missing.
            BusyError: another process kept the redo log.
        """
        if not record.size:
            return b"null" if record.value is UNSET else bytes(record.value)
        with self._held():
            entry = self._tree(self._trees.get(place(record))).get(value_name(record.n))
            if entry is None:
                raise CorruptError(
                    f"the value of record {record.n} of {self.ref} is missing",
                    hint="run `gitcp verify`",
                )
            held = self._objects.get(entry.oid)
            if held is not None:
                return read_entry(held)[1]
            return self.repository.objects.blob(entry.oid)

    def _tree(self, oid: bytes | None) -> tree.Tree:
        if oid is None:
            return {}
        held = self._objects.get(oid)
        if held is not None:
            return tree.parse(read_entry(held)[1])
        return self.repository.objects.tree(oid)

    # --- adding -------------------------------------------------------------------

    def append(self, *records: Record) -> tuple[Record, ...]:
        """Adds records, durably, and returns them with number and time.

        Raises:
            StorageError: the disk refused; they are not in it.
            BusyError: other processes kept it busy.
        """
        sealed = [
            msgspec.structs.replace(record, seal=self.signet.seal(record))
            for record in records
        ]
        ticket = _Ticket(sealed)
        with self._lock:
            self._queue.append(ticket)
        with self._writing:
            if not ticket.done:
                with self._lock:
                    batch, self._queue = self._queue, []
                self._write(batch)
        if ticket.error is not None:
            raise ticket.error
        self._janitor.written(self)
        return ticket.written

    def _write(self, batch: Sequence["_Ticket"]) -> None:
        """Makes one page of what several callers want to add."""
        try:
            page = self._add([one for t in batch for one in t.records])
            written = iter(page.records)
            for ticket in batch:
                ticket.written = tuple(next(written) for _ in ticket.records)
        except BaseException as exc:
            for ticket in batch:
                ticket.error = exc
            raise
        finally:
            for ticket in batch:
                ticket.done = True

    def _add(self, wanted: Sequence[Record]) -> Page:
        with self._held(write=True):
            with self._lock:
                self._refresh()
                self._current = True
            try:
                return self._publish(wanted)
            finally:
                self._current = False

    def _publish(self, wanted: Sequence[Record], joins: str | None = None) -> Page:
        """Writes one page, durably; the log is held, and read.

        Raises:
            StorageError: the disk refused; it is not in it.
        """
        parents = [one for one in (self._tip, joins) if one is not None]
        last = self._pages[-1].records[-1].n if self._pages else 0
        page, objects = new_page(self.session, wanted, parents, last, self._clock())
        self._move(page.oid, objects)
        if joins is None:
            with self._lock:
                self._take([page])
                self._tip = page.oid
        return page

    def _move(self, new: str, objects: dict[bytes, bytes]) -> None:
        """Moves the ref in the redo log, durably."""
        record = log_file.Record(
            (Move(self.ref, self._tip, new),), tuple(objects.items())
        )
        before = self._log.known
        self._log.append(record)
        try:
            self._log.sync()
        except BaseException:
            self._log.cut(before)
            raise
        self._absorb(record)

    def adopt(self, theirs: str) -> str:
        """Makes this ledger hold all of another that went on from the same beginning.

        Its objects are in the repository, and it was judged. Where ours has it already
        nothing changes; where it goes on from ours, ours moves there; where both grew a
        page joins them. Returns which of it: `up-to-date`, `created`, `fast-forward` or
        `joined`.

        Raises:
            BusyError: another process kept the redo log.
            StorageError: the disk refused.
        """
        with self._held(write=True):
            with self._lock:
                self._refresh()
                known = self._known | self._purged()
            if theirs in known:
                return UP_TO_DATE
            _, met = self._read(theirs, known)
            if self._tip is None or self._tip in met:
                done = CREATED if self._tip is None else FAST_FORWARD
                self._move(theirs, {})
            else:
                note = Record(0, "", JOINED, "")
                note = msgspec.structs.replace(note, seal=self.signet.seal(note))
                self._publish([note], joins=theirs)
                done = JOINED
            # The caller that adopts it reports it, by refs.
            drain(self.repository, [self._log], join)
        return done

    def _purged(self) -> set[str]:
        return {oid for page in self._pages for oid in page.purged}

    # --- git ----------------------------------------------------------------------

    @property
    def label(self) -> str:
        """The name for warnings."""
        return f"the ledger of {self.session!r}"

    @property
    def unsettled(self) -> int:
        """The number of bytes of the write-ahead log that this process knows of."""
        return self._log.known

    def settle(self) -> None:
        """Puts the redo log into git.

        Raises:
            BusyError, StorageError: it stays, and nothing is lost.
        """
        with self._mutex:
            if self._log.exists():
                with self._log.locked(timeout=self.repository.refs.lock_timeout):
                    drain(self.repository, [self._log], join)

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Holds the ledger so that no other process appends; git has all of it meanwhile.

        A caller that rewrites its pages does so inside this context.

        Raises:
            BusyError, StorageError: it could not be settled; nothing is lost.
        """
        timeout = self.repository.refs.lock_timeout
        with self._mutex, self._log.locked(timeout=timeout):
            # Between settling it and holding it again another process may add to it.
            while not self._log.empty:
                drain(self.repository, [self._log], join)
                self._log.acquire(timeout=timeout)
            try:
                yield
            finally:
                self._log.remove()


class _Ticket:
    """The records that one caller appends, and the result."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.written: tuple[Record, ...] = ()
        self.error: BaseException | None = None
        self.done = False
