"""The effects ledger of a session: reads it and appends to it (E1 to E4).

A record is durable once it is in the session's write-ahead log; a drain moves it into git
soon after (docs/format.md, 12a and 16).
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from msgspec import UNSET

from gitcp import at_fork
from gitcp.errors import CorruptError
from gitcp.format import layout
from gitcp.format.checkpoint import storable
from gitcp.format.commit import Commit
from gitcp.format.ledger import (
    JOINED,
    LedgerCommit,
    Record,
    ledger_trailers,
    value_name,
)
from gitcp.git.repository import Repository
from gitcp.ledger.commits import PagesRead, new_page, read_pages, record_key
from gitcp.ledger.group_commit import GroupCommit
from gitcp.ledger.join import join
from gitcp.ledger.known_pages import KnownPages
from gitcp.ledger.page_cache import Kept, PageCache
from gitcp.ledger.signing import RecordSigner
from gitcp.names import encode, quoted
from gitcp.wal.background import BackgroundDrainer
from gitcp.wal.client import LogClient
from gitcp.wal.log_file import RefMove

# The outcomes of adopting a ledger from elsewhere; the fourth is JOINED.
UP_TO_DATE, CREATED, FAST_FORWARD = "up-to-date", "created", "fast-forward"


class Ledger:
    """The ledger of one session; safe to share among threads."""

    def __init__(
        self,
        repository: Repository,
        session: str,
        drainer: BackgroundDrainer,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.repository = repository
        self.session = session
        self.ref = layout.ledger_ref(session)
        self.signet = RecordSigner(repository, encode(session))
        self._cache = PageCache(repository, session, self.signet)
        self._drainer = drainer
        self._clock = clock
        # Its lock is held while the log is read or written.
        self._log = LogClient(repository, layout.ledger_log(session), join)
        self._reset()
        at_fork.in_child(self, Ledger._reset_after_fork)

    def _reset_after_fork(self) -> None:
        self._log.reset_after_fork()
        self._reset()

    def _reset(self) -> None:
        self._known = KnownPages()
        # Held briefly, around `_known`; never while writing.
        self._lock = threading.Lock()
        self._appends = GroupCommit(self._add)
        # True while the log is held to write: then `_known` is up to date.
        self._current = False

    # --- reading ------------------------------------------------------------------

    def pages(self) -> list[LedgerCommit]:
        """Returns all ledger commits as of now, each after its parents.

        Raises:
            CorruptError: the ledger is damaged, or its ref was moved back.
            FormatTooNewError: a newer gitcp wrote it.
            BusyError: another process kept the write-ahead log.
        """
        return self.since(0)

    def since(self, count: int) -> list[LedgerCommit]:
        """Returns the ledger commits after the first `count`, as `pages` does."""
        with self._lock:
            if self._current and self._known.whole:
                return self._known.pages[count:]
        with self._log.held(catch_up=True), self._lock:
            if not self._known.whole:
                self._forget_pages()
            self._refresh()
            return self._known.pages[count:]

    def after(self, page: str, last: int) -> list[LedgerCommit] | None:
        """Returns the ledger commits after one, whose last record has the number `last`.

        Does not read those before it. None if the ledger does not have that one (any more).
        """
        with self._lock:
            if self._current and page in self._known.places:
                return self._known.after(page)
        with self._log.held(catch_up=True), self._lock:
            if self._known.tip is not None:
                self._refresh()
            known = self._known
            if page not in known.places and not (known.whole and known.pages):
                self._forget_pages()
                self._begin(KnownPages.beginning_after(page, last, keeps=False))
            return self._known.after(page)

    def select(self, wanted: Callable[[str], bool]) -> Kept | None:
        """Returns the cached ledger commits about the scopes that are wanted.

        `after` returns those that follow. None if some were read already, if none are
        cached, or if the cached ones belong to another ledger.
        """
        with self._log.held(catch_up=True), self._lock:
            if self._known.tip is not None:
                return None
            kept = self._cache.select(wanted)
            if kept is None:
                self._cache.forget()
                return None
            self._begin(KnownPages.beginning_after(kept.page, kept.last, keeps=True))
            return kept if kept.page in self._known.places else None

    def _begin(self, known: KnownPages) -> None:
        """Reads only the ledger commits after one; both locks are held."""
        self._known = known
        try:
            self._refresh()
        except CorruptError:
            # This ledger does not have that one. Reading the whole ledger reports damage.
            self._forget_pages()

    def records(self) -> list[Record]:
        """Returns the records of all ledger commits."""
        return [record for page in self.pages() for record in page.records]

    def position(self) -> tuple[int, str]:
        """Returns the number of the last record, and the tip.

        0 and an empty text if there is none.

        Raises:
            CorruptError: the last ledger commit is damaged.
            BusyError: another process kept the write-ahead log.
        """
        with self._log.held(catch_up=True):
            tip = self._find_tip()
            if tip is None:
                return 0, ""
            with self._lock:
                if tip == self._known.tip:
                    return self._known.last, tip
            trailers = ledger_trailers(self._commit(tip))
        if trailers is None:
            raise CorruptError(
                f"{self.ref} points to {tip}, which is not a ledger",
                hint=f"look at it with `git show {tip}`",
            )
        return trailers.last, tip

    def _find_tip(self) -> str | None:
        """Returns the last ledger commit; the log is held."""
        chain = self._log.moves.get(self.ref)
        try:
            tip = self.repository.refs.read(self.ref)
        except CorruptError:
            if not chain:
                raise
            # The write-ahead log has a sound tip.
            tip = ""
        if not chain:
            return tip
        if tip in chain:
            return next(reversed(chain))
        # Another process moved the ref, or the log came back after a power cut.
        self._log.restart()
        self._log.catch_up()
        return self._find_tip()

    def _refresh(self) -> None:
        """Reads the ledger commits that are not known yet; both locks are held."""
        tip, before = self._find_tip(), self._known.tip
        if tip == before:
            return
        if tip is not None:
            new, met = self._read_on(tip)
            purged = any(before in page.purged for page in new)
            if before is None or before in met or purged:
                if purged:
                    # A purge rewrites every ledger commit after the first purged one.
                    new, _ = self._read(tip, set())
                    self._forget_pages()
                self._known.take(new)
                self._known.tip = tip
                return
        raise CorruptError(
            f"{self.ref} was rewound: it no longer contains {before}",
            hint=f"git update-ref {quoted(self.ref)} {before} restores it",
        )

    def _read_on(self, tip: str) -> PagesRead:
        """Returns the unknown ledger commits, as `_read` does, but from the cache if possible."""
        kept = self._cache.read() if self._known.tip is None else []
        if kept:
            new, met = self._read(tip, {page.oid for page in kept})
            if kept[-1].oid in met:
                return [*kept, *new], met
            # The cached ones are of another ledger, or of this one before a purge.
            self._cache.forget()
        return self._read(tip, self._known.places)

    def _forget_pages(self) -> None:
        self._known = KnownPages()
        self._cache.forget()

    def _read(self, tip: str, known: Collection[str]) -> PagesRead:
        """Returns the unknown ledger commits that a tip reaches, and the known ones met."""
        return read_pages(self._commit, tip, self.ref, known)

    def _commit(self, tip: str) -> Commit:
        return self._log.commit(bytes.fromhex(tip))

    def value(self, record: Record) -> bytes:
        """Returns the JSON text of a result.

        Raises:
            CorruptError: the object is missing.
            BusyError: another process kept the write-ahead log.
        """
        if not record.size:
            return b"null" if record.value is UNSET else bytes(record.value)
        if not self._known.whole:
            self.pages()
        with self._log.held(catch_up=True):
            root = self._known.trees.get(record_key(record))
            entry = self._log.tree(root).get(value_name(record.n)) if root else None
            if entry is None:
                raise CorruptError(
                    f"the value of record {record.n} of {self.ref} is missing",
                    hint="run `gitcp verify`",
                )
            return self._log.blob(entry.oid)

    # --- adding -------------------------------------------------------------------

    def append(self, *records: Record) -> tuple[Record, ...]:
        """Adds records, durably, and returns them with number and time.

        Raises:
            StorageError: the disk refused; the records were not added.
            BusyError: other processes kept the log busy.
        """
        written = self._appends.append(records)
        self._drainer.note(self)
        return written

    def _add(self, records: Sequence[Record]) -> Sequence[Record]:
        """Makes one ledger commit of the records of several callers."""
        with self._log.held(write=True, catch_up=True):
            with self._lock:
                self._refresh()
                if self._known.keeps:
                    self._cache.keep(self._known.pages)
                self._current = True
            try:
                return self._publish(records)
            finally:
                self._current = False

    def _publish(
        self, records: Sequence[Record], joins: str | None = None
    ) -> Sequence[Record]:
        """Writes one ledger commit, durably; the log is held, and was read.

        Raises:
            StorageError: the disk refused; the ledger is unchanged.
        """
        parents = [parent for parent in (self._known.tip, joins) if parent is not None]
        page, objects = new_page(
            self.session,
            records,
            parents,
            self._known.last,
            storable(self._clock()),
            self.repository.form,
            self.signet.seal,
        )
        self._move(page.oid, objects)
        if joins is None:
            with self._lock:
                self._known.take([page])
                self._known.tip = page.oid
        return page.records

    def _move(self, new: str, objects: dict[bytes, bytes]) -> None:
        """Moves the ref in the write-ahead log, durably."""
        self._log.append(RefMove(self.ref, self._known.tip, new), objects)

    def adopt(self, theirs: str) -> str:
        """Makes this ledger hold all of another one with the same beginning.

        Its objects are in the repository, and validated. If ours has all of it, nothing
        changes; if it continues ours, ours is fast-forwarded; if they diverged, a ledger
        commit joins them. Returns the outcome: `up-to-date`, `created`, `fast-forward` or
        `joined`.

        Raises:
            BusyError: another process kept the write-ahead log.
            StorageError: the disk refused.
        """
        self.pages()
        with self._log.held(write=True, catch_up=True):
            with self._lock:
                self._refresh()
                purged = {old for page in self._known.pages for old in page.purged}
                known = self._known.places.keys() | purged
            if theirs in known:
                return UP_TO_DATE
            _, met = self._read(theirs, known)
            tip = self._known.tip
            if tip is None or tip in met:
                done = CREATED if tip is None else FAST_FORWARD
                self._move(theirs, {})
            else:
                self._publish([Record(0, "", JOINED, "")], joins=theirs)
                done = JOINED
            # The caller reads the refs to report the outcome.
            self._log.drain()
        return done

    # --- git ----------------------------------------------------------------------

    @property
    def label(self) -> str:
        """The name for warnings."""
        return f"the ledger of {self.session!r}"

    @property
    def undrained(self) -> int:
        """The number of bytes that this process knows of and git does not have yet."""
        return self._log.size

    def drain(self) -> None:
        """Moves the write-ahead log into git.

        Raises:
            BusyError, StorageError: the log stays, and nothing is lost.
        """
        with self._log.held():
            self._log.drain()

    @contextmanager
    def drained(self) -> Iterator[None]:
        """Holds the ledger so that no other process appends; git has all of it meanwhile.

        A caller that rewrites its commits does so inside this context.

        Raises:
            BusyError, StorageError: the log could not be drained; nothing is lost.
        """
        with self._log.drained():
            yield

    def keep(self) -> None:
        """Writes the ledger commits that were read to the cache, if there are enough.

        Raises:
            BusyError: other processes kept the log busy.
            StorageError: the disk refused.
        """
        with self._lock:
            known = self._known
            if not (known.keeps and self._cache.is_due(known.pages)):
                return
        with self._log.held(write=True, catch_up=True), self._lock:
            self._refresh()
            if self._known.keeps:
                self._cache.keep(self._known.pages)
        self._drainer.note(self)

    def drop_kept(self) -> None:
        """Removes the ledger's cache files; for use within `drained`.

        Raises:
            StorageError: the disk refused.
        """
        self._cache.remove()
