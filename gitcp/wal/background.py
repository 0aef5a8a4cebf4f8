"""Drains write-ahead logs in the background, and at the end of the process."""

import atexit
import threading
import time
import weakref
from typing import NamedTuple, Protocol

from gitcp import at_fork
from gitcp.errors import GitcpError
from gitcp.git.consolidate import consolidate
from gitcp.git.repository import Repository

# A log is drained when nothing was added for this long, or when it is this old, or has
# this many bytes; refs are never further behind.
QUIET = 0.3
OLDEST = 2.0
BYTES = 4 * 1024 * 1024
# If a writer is faster than the background thread, it drains the log itself.
LIMIT = 16 * 1024 * 1024
_RETRY = 5.0
# The thread ends when it has nothing to do; the next write starts another.
_IDLE = 5.0


class Drainable(Protocol):
    """A writer with a write-ahead log."""

    @property
    def label(self) -> str:
        """The name for warnings."""

    @property
    def undrained(self) -> int:
        """The number of bytes of its write-ahead log that this process knows of."""

    def drain(self) -> None:
        """Moves its log into git.

        Raises:
            BusyError, StorageError: the log stays.
        """


class _Due(NamedTuple):
    """When a log began to hold something undrained, and when it last grew."""

    what: Drainable
    first: float
    last: float


class BackgroundDrainer:
    """Drains the write-ahead logs of one store; safe to share among threads.

    Its thread holds a reference to each undrained log, so the caller need not.
    """

    def __init__(self, repository: Repository, *, new_deltas: bool = False) -> None:
        self._repository = repository
        self._new_deltas = new_deltas
        self._reset_after_fork()
        at_fork.in_child(self, BackgroundDrainer._reset_after_fork)
        _drainers.add(self)

    def _reset_after_fork(self) -> None:
        # After a fork, the parent drains what it wrote itself.
        self._guard = threading.Condition()
        self._due: dict[int, _Due] = {}
        self._thread: threading.Thread | None = None
        self._closing = False

    def note(self, what: Drainable) -> None:
        """Notes that a log has grown.

        Raises:
            BusyError, StorageError: the log has grown too large, and could not be drained.
        """
        now = time.monotonic()
        with self._guard:
            known = self._due.get(id(what))
            self._due[id(what)] = _Due(what, known.first if known else now, now)
            if self._thread is None:
                self._closing = False
                thread = threading.Thread(
                    target=self._work, name="gitcp-settling", daemon=True
                )
                # If this process is ending already, the log stays for the next process.
                try:
                    thread.start()
                except RuntimeError:
                    return
                self._thread = thread
            if known is None or what.undrained > BYTES:
                self._guard.notify_all()
        if what.undrained > LIMIT:
            self.drain(what)

    def waits_for(self, what: Drainable) -> bool:
        """Whether a log still holds something undrained."""
        with self._guard:
            return id(what) in self._due

    def drain(self, what: Drainable) -> None:
        """Drains one log now.

        Raises:
            BusyError, StorageError: the log stays.
        """
        with self._guard:
            known = self._due.get(id(what))
        what.drain()
        with self._guard:
            # `note` was called again for what was written meanwhile.
            if known is not None and self._due.get(id(what)) is known:
                del self._due[id(what)]

    def flush(self) -> None:
        """Drains everything.

        Raises:
            BusyError, StorageError: some of it stays in its log.
        """
        with self._guard:
            waiting = [due.what for due in self._due.values()]
        for what in waiting:
            self.drain(what)

    def compact(self) -> None:
        """Drains everything and merges gitcp's packs into one.

        Raises:
            BusyError, StorageError: as `flush`.
        """
        self.flush()
        consolidate(self._repository, force=True, new_deltas=self._new_deltas)

    def close(self) -> None:
        """Drains everything and ends the thread; the next write starts it again.

        Raises:
            BusyError, StorageError: as `flush` does.
        """
        with self._guard:
            self._closing = True
            thread = self._thread
            self._guard.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self.flush()

    def _work(self) -> None:
        while True:
            ready, wait = self._ready()
            if ready:
                wait = 0.0 if self._tidy(ready) else _RETRY
            with self._guard:
                if wait and not self._closing:
                    self._guard.wait(wait)
                if self._closing or not (ready or self._due):
                    self._thread = None
                    return

    def _ready(self) -> tuple[list[Drainable], float]:
        """Returns what to drain now, and how long to wait if there is nothing."""
        now = time.monotonic()
        ready = []
        wait = _IDLE
        with self._guard:
            for due in self._due.values():
                left = min(due.last + QUIET, due.first + OLDEST) - now
                if left <= 0 or due.what.undrained > BYTES:
                    ready.append(due.what)
                else:
                    wait = min(wait, left)
        return ready, wait

    def _tidy(self, ready: list[Drainable]) -> bool:
        """Drains logs and merges packs; returns whether all went well."""
        well = True
        for what in ready:
            try:
                self.drain(what)
            except GitcpError as exc:
                # Nothing is lost: the log stays, and is drained later.
                _warn("settling %s failed: %s", what.label, exc)
                well = False
        self.merge()
        return well

    def merge(self) -> None:
        """Merges packs if there are too many; a failure is reported and does no harm."""
        try:
            consolidate(self._repository, new_deltas=self._new_deltas)
        except GitcpError as exc:
            _warn("merging packs failed: %s", exc)


def _warn(text: str, *about: object) -> None:
    import logging  # noqa: PLC0415  rarely needed, and slow to load

    logging.getLogger("gitcp.settling").warning(text, *about)


_drainers: "weakref.WeakSet[BackgroundDrainer]" = weakref.WeakSet()


def _at_exit() -> None:
    for drainer in list(_drainers):
        try:
            drainer.close()
        except GitcpError as exc:
            _warn("settling was left to the next gitcp: %s", exc)


atexit.register(_at_exit)
