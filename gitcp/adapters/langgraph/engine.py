"""All threads of one store in this process, and the one that settles their logs."""

import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterator

from gitcp.adapters.langgraph.files import Follower
from gitcp.adapters.langgraph.thread import Thread
from gitcp.errors import GitcpError, UsageError
from gitcp.format import layout
from gitcp.git import redo
from gitcp.git.consolidate import consolidate
from gitcp.names import decode, encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

PREFIX = "langgraph-"
_LONGEST = 900
_THREADS = 128

# A log is settled when its thread has been quiet for this long, or is this old, or has
# this many bytes; the refs lag behind by no more.
QUIET = 0.3
OLDEST = 2.0
BYTES = 4 * 1024 * 1024
_RETRY = 5.0

_LOG = logging.getLogger("gitcp.langgraph")


def session_of(thread_id: str) -> str:
    """Returns the name of the session that holds a thread.

    Raises:
        UsageError: the id is not valid Unicode.
    """
    try:
        raw = thread_id.encode()
    except UnicodeEncodeError as exc:
        raise UsageError(
            f"the thread id {thread_id!a} is not valid Unicode",
            hint="use an id that can be written in UTF-8",
        ) from exc
    if len(raw) <= _LONGEST:
        return PREFIX + thread_id
    import hashlib  # noqa: PLC0415  ids this long are rare

    return f"{PREFIX}{thread_id[:64]}...{hashlib.sha256(raw).hexdigest()}"


class Engine:
    """What a saver and its clones share."""

    def __init__(self, store: Store, follower: Follower | None) -> None:
        self.store = store
        self.repository = store.repository
        self.follower = follower
        self._reset()
        me = weakref.ref(self)

        def reset() -> None:
            engine = me()
            if engine is not None:
                # Locks and threads of the parent mean nothing in the child.
                engine._reset()  # noqa: SLF001

        os.register_at_fork(after_in_child=reset)

    def _reset(self) -> None:
        for thread in getattr(self, "_threads", {}).values():
            # A lock of the parent is on the child's descriptor as well.
            thread.log.close()
        self._guard = threading.Condition()
        self._threads: OrderedDict[str, Thread] = OrderedDict()
        self._dirty: dict[str, tuple[float, float]] = {}
        self._janitor: threading.Thread | None = None
        self._closing = False

    def thread(self, thread_id: str) -> Thread:
        """Returns a thread by its id; looking at it writes nothing."""
        session = session_of(thread_id)
        with self._guard:
            found = self._threads.get(session)
            if found is None:
                found = Thread(self.store, thread_id, session)
                self._threads[session] = found
                self._shrink()
            self._threads.move_to_end(session)
            return found

    def _shrink(self) -> None:
        if len(self._threads) <= _THREADS:
            return
        for name in list(self._threads):
            # Its lock is not held by anyone only if nobody else has the object.
            if name not in self._dirty and self._threads[name].mutex.acquire(
                blocking=False
            ):
                old = self._threads.pop(name)
                old.mutex.release()
                return

    def thread_ids(self) -> Iterator[str]:
        """Yields the ids of all threads there are."""
        refs = self.repository.refs.list(layout.SESSIONS)
        found: dict[str, str | None] = dict.fromkeys(redo.names(self.repository))
        for ref in refs:
            found[ref.removeprefix(layout.SESSIONS).partition("/")[0]] = refs[ref]
        for component, tip in sorted(found.items()):
            if not component.startswith(encode(PREFIX)):
                continue
            name = self._name(component, tip)
            if name is not None:
                yield name

    def _name(self, component: str, tip: str | None) -> str | None:
        session = decode(component)
        if session is not None and "..." not in session:
            return session.removeprefix(PREFIX)
        with self._guard:
            for known, thread in self._threads.items():
                if encode(known) == component:
                    return thread.thread_id
        checkpoint = self.store.checkpoint(tip) if tip is not None else None
        about = checkpoint.metadata if checkpoint is not None else None
        if isinstance(about, dict) and isinstance(about.get("thread_id"), str):
            return str(about["thread_id"])
        return session.removeprefix(PREFIX) if session is not None else None

    def checkpoint(self, oid: bytes) -> Checkpoint | None:
        """Returns the checkpoint of gitcp in a commit."""
        return self.store.checkpoint(oid)

    # --- settling -------------------------------------------------------------------

    def written(self, thread: Thread) -> None:
        """Notes that a thread's redo log has grown."""
        now = time.monotonic()
        with self._guard:
            first, _ = self._dirty.get(thread.session, (now, now))
            self._dirty[thread.session] = first, now
            if self._janitor is None or not self._janitor.is_alive():
                self._closing = False
                self._janitor = threading.Thread(
                    target=_work, args=(weakref.ref(self),), daemon=True
                )
                self._janitor.name = "gitcp-langgraph"
                self._janitor.start()
            if thread.unsettled > BYTES or len(self._dirty) == 1:
                self._guard.notify_all()

    def due(self) -> tuple[list[Thread], float | None]:
        """Returns the threads to settle now, and how long to wait where there is none."""
        now = time.monotonic()
        ready = []
        wait: float | None = None
        with self._guard:
            for session, (first, last) in self._dirty.items():
                thread = self._threads[session]
                left = min(last + QUIET, first + OLDEST) - now
                if left <= 0 or thread.unsettled > BYTES:
                    ready.append(thread)
                else:
                    wait = left if wait is None else min(wait, left)
        return ready, wait

    def settle(self, thread: Thread) -> None:
        """Puts a thread's redo log into git.

        Raises:
            BusyError, StorageError: it stays.
        """
        with thread.mutex:
            thread.settle()
            with self._guard:
                self._dirty.pop(thread.session, None)

    def tidy(self, threads: list[Thread]) -> bool:
        """Settles threads and merges packs; whether all went well."""
        well = True
        for thread in threads:
            try:
                self.settle(thread)
            except GitcpError as exc:
                # Nothing is lost: the log stays, and is settled later.
                _LOG.warning("settling %s failed: %s", thread.session, exc)
                well = False
        try:
            consolidate(self.repository, anew=True)
        except GitcpError as exc:
            _LOG.warning("merging packs failed: %s", exc)
        return well

    def flush(self) -> None:
        """Puts everything into git.

        Raises:
            BusyError, StorageError: some of it stays in the redo log.
        """
        with self._guard:
            threads = [self._threads[name] for name in self._dirty]
        for thread in threads:
            self.settle(thread)

    def close(self) -> None:
        """Flushes, and ends the thread that settles; the next write starts it again.

        Raises:
            BusyError, StorageError: as `flush` does.
        """
        with self._guard:
            self._closing = True
            janitor, self._janitor = self._janitor, None
            self._guard.notify_all()
        if janitor is not None and janitor is not threading.current_thread():
            janitor.join()
        self.flush()

    def wait(self, seconds: float | None) -> bool:
        """Waits for work; False where the engine is closing."""
        with self._guard:
            if not self._closing and (seconds is not None or not self._dirty):
                self._guard.wait(seconds)
            return not self._closing


def _work(reference: "weakref.ref[Engine]") -> None:
    """Settles what is due until the engine closes or is gone."""
    pause = 0.0
    while True:
        engine = reference()
        if engine is None:
            return
        ready, wait = engine.due()
        if ready:
            pause = 0.0 if engine.tidy(ready) else _RETRY
        # An idle engine may be collected: it is not held while waiting for long.
        if not engine.wait(pause or (wait if wait is not None or ready else 60.0)):
            return
        del engine
