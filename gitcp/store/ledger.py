"""The effects ledger of a session: read it, add to it, never take from it (E1 to E4).

Appends of several threads that meet become one commit: while one is being made durable
the others queue up, and the next takes all of them.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

import msgspec
from msgspec import UNSET

from gitcp import durable
from gitcp.errors import BranchMovedError, CorruptError, StorageError
from gitcp.format import layout, tree
from gitcp.format.checkpoint import timestamp
from gitcp.format.ledger import (
    INLINE,
    JOINED,
    Page,
    Record,
    encode_ledger_commit,
    ledger_trailers,
    page_of,
    value_name,
)
from gitcp.format.tree import FILE, Entry
from gitcp.git.consolidate import consolidate
from gitcp.git.objects import TREE, Objects
from gitcp.git.repository import Repository
from gitcp.git.transaction import STAGED_REF, Transaction, transaction
from gitcp.names import encode
from gitcp.store.own import Signet

_RETRIES = 200
# What became of a ledger that came from elsewhere; the fourth is JOINED.
UP_TO_DATE, CREATED, FAST_FORWARD = "up-to-date", "created", "fast-forward"


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
        self.signet = Signet(repository)
        self._clock = clock
        self._tip: str | None = None
        self._pages: list[Page] = []
        self._known: set[str] = set()
        self._trees: dict[tuple[str, int, str], bytes] = {}
        # Held for moments, around what is known of the ledger; never while writing.
        self._lock = threading.RLock()
        self._writing = threading.Lock()
        self._queue: list[_Ticket] = []
        self._queued = threading.Lock()

    def pages(self) -> list[Page]:
        """Returns all pages as they are now, each after those that it follows on.

        Raises:
            CorruptError: the ledger is damaged, or was moved back.
            FormatTooNewError: a newer gitcp wrote it.
        """
        return self.since(0)

    def since(self, count: int) -> list[Page]:
        """Returns the pages after the first `count`, as `pages` does."""
        with self._lock:
            self._refresh()
            return self._pages[count:]

    def records(self) -> list[Record]:
        """Returns the records of all pages."""
        return [record for page in self.pages() for record in page.records]

    def _refresh(self) -> None:
        found = self.repository.refs.read(self.ref)
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
        return read_pages(self.repository.objects, tip, self.ref, known)

    def _take(self, new: Sequence[Page]) -> None:
        self._pages += new
        for page in new:
            self._known.add(page.oid)
            self._trees.update(
                (_place(record), page.tree) for record in page.records if record.size
            )

    def is_ours(self, record: Record) -> bool:
        """Whether a record was written in this repository."""
        return self.signet.is_ours(record)

    def value(self, record: Record) -> bytes:
        """Returns the JSON text of a result.

        Raises:
            CorruptError: it is missing.
        """
        if record.size:
            objects = self.repository.objects
            entry = tree.lookup(
                self._trees.get(_place(record)), value_name(record.n), objects.tree
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
        sealed = [
            msgspec.structs.replace(record, seal=self.signet.seal(record))
            for record in records
        ]
        ticket = _Ticket(sealed)
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
                try:
                    page = self._publish(opened, tip, wanted)
                except BranchMovedError:
                    continue
                break
            else:
                raise BranchMovedError(
                    f"{self.ref} kept moving", hint="run the command again"
                )
        # It is recorded: housekeeping that fails must not deny that.
        with suppress(StorageError):
            consolidate(self.repository)
        return list(page.records)

    def _publish(
        self,
        opened: Transaction,
        tip: str | None,
        wanted: Sequence[Record],
        joins: str | None = None,
    ) -> Page:
        """Writes one page after `tip`, durably.

        Raises:
            BranchMovedError: it is not the tip any more.
            StorageError: the disk refused.
        """
        with self._lock:
            last = self._pages[-1].records[-1].n if self._pages else 0
        now = self._clock()
        at = timestamp(now)
        numbered = [
            msgspec.structs.replace(record, n=last + number, at=at)
            for number, record in enumerate(wanted, 1)
        ]
        root, numbered = _store_values(opened, numbered)
        parents = [bytes.fromhex(one) for one in (tip, joins) if one is not None]
        raw = encode_ledger_commit(
            root,
            parents[0] if parents else None,
            int(now),
            encode(self.session),
            numbered,
            joins=parents[1] if joins is not None else None,
        )
        oid = opened.add_commit(raw)
        try:
            opened.publish(self.ref, expect=tip, new=oid)
        except StorageError as exc:
            if self.repository.refs.read(self.ref) != oid.hex():
                raise
            raise StorageError(
                f"the record is written, but not known to be durable: {exc.message}",
                hint="see to the disk; `gitcp steps` shows what is recorded",
            ) from exc
        page = Page(
            oid.hex(), tuple(one.hex() for one in parents), tuple(numbered), root
        )
        with self._lock:
            # A reader may have seen it already.
            if self._tip == tip and joins is None:
                self._tip = page.oid
                self._take([page])
        return page

    def adopt(self, opened: Transaction, theirs: str) -> str:
        """Makes this ledger hold all of another that went on from the same beginning.

        Its objects are in the repository, and it was judged. Where ours has it already
        nothing changes; where it goes on from ours, ours moves there; where both grew a
        page joins them. Returns which of it: `up-to-date`, `created`, `fast-forward` or
        `joined`.

        Raises:
            BranchMovedError: it kept moving.
            StorageError: the disk refused.
        """
        for _ in range(_RETRIES):
            with self._lock:
                self._refresh()
                tip, known = self._tip, self._known | self._purged()
            if theirs in known:
                return UP_TO_DATE
            _, met = self._read(theirs, known)
            try:
                if tip is None or tip in met:
                    self.repository.refs.compare_and_swap(
                        self.ref,
                        expect=tip,
                        new=theirs,
                        staged=opened.scratch / STAGED_REF,
                    )
                    return CREATED if tip is None else FAST_FORWARD
                note = Record(0, "", JOINED, "")
                note = msgspec.structs.replace(note, seal=self.signet.seal(note))
                self._publish(opened, tip, [note], joins=theirs)
            except BranchMovedError:
                continue
            return JOINED
        raise BranchMovedError(f"{self.ref} kept moving", hint="run the command again")

    def _purged(self) -> set[str]:
        return {oid for page in self._pages for oid in page.purged}


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


def read_pages(
    objects: Objects, tip: str, where: str, known: Collection[str] = ()
) -> tuple[list[Page], set[str]]:
    """Returns the pages below a commit, each after those that it follows on.

    Those in `known` are left out, with all below them; which of them were met is the
    second part of the answer.

    Raises:
        CorruptError, FormatTooNewError: a page cannot be read.
    """
    made: dict[str, Page] = {}
    found: list[Page] = []
    met: set[str] = set()
    ahead: list[tuple[str, bool]] = [(tip, False)]
    while ahead:
        oid, below_done = ahead.pop()
        if below_done:
            found.append(made[oid])
        elif oid in known:
            met.add(oid)
        elif oid not in made:
            page = page_of(oid, objects.commit(bytes.fromhex(oid)), where)
            made[oid] = page
            ahead.append((oid, True))
            ahead += [(parent, False) for parent in reversed(page.parents)]
    return found, met


def _place(record: Record) -> tuple[str, int, str]:
    """Returns what tells a record from one of the same number on a joined line."""
    return record.id, record.n, record.at


def reached(repository: Repository, session: str) -> tuple[int, str]:
    """Returns how far a ledger has come: the number of its last record, and its tip.

    0 and nothing where there is none.
    """
    tip = repository.refs.read(layout.ledger_ref(session))
    if tip is None:
        return 0, ""
    said = ledger_trailers(repository.objects.commit(bytes.fromhex(tip)))
    if said is None:
        raise CorruptError(
            f"{layout.ledger_ref(session)} points to {tip}, which is no ledger",
            hint=f"look at it with `git show {tip}`",
        )
    return said.last, tip


def ledgers(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yields the encoded session and the tip of each ledger."""
    for ref, oid in repository.refs.list(layout.EFFECTS).items():
        component = ref.removeprefix(layout.EFFECTS)
        if "/" not in component:
            yield component, oid
