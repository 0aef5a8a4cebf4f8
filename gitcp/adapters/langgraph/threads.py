"""All threads of one store in this process."""

import threading
from collections import OrderedDict
from collections.abc import Iterator

from gitcp import at_fork
from gitcp.adapters.langgraph.foreign import Allowed
from gitcp.adapters.langgraph.snapshots import WorktreeSnapshots
from gitcp.adapters.langgraph.thread import Thread
from gitcp.errors import UsageError
from gitcp.format import layout
from gitcp.names import decode, encode
from gitcp.project.following import Following
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store
from gitcp.trust.trusted_remotes import Pulled
from gitcp.wal import log_file
from gitcp.wal.background import BackgroundDrainer

PREFIX = "langgraph-"
_LONGEST = 900
_THREADS = 128


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


class Threads:
    """State that a saver and its clones share."""

    def __init__(
        self, store: Store, follower: WorktreeSnapshots | None, *, trust: bool = False
    ) -> None:
        self.store = store
        self._pulled = Pulled(store)
        self.allowed = Allowed(store, trust=trust)
        self.repository = store.repository
        self.follower = follower
        self._following = Following(self.repository)
        # One pack holds many checkpoints, written without deltas.
        self.drainer = BackgroundDrainer(self.repository, new_deltas=True)
        self._reset()
        at_fork.in_child(self, Threads._reset_after_fork)

    def _reset_after_fork(self) -> None:
        for thread in self._threads.values():
            # A lock of the parent is on the child's descriptor as well.
            thread.log.close()
        self._reset()

    def _reset(self) -> None:
        self._guard = threading.Lock()
        self._threads: OrderedDict[str, Thread] = OrderedDict()

    def thread(self, thread_id: str) -> Thread:
        """Returns a thread by its id; looking at it writes nothing."""
        session = session_of(thread_id)
        self._following.now()
        with self._guard:
            thread = self._threads.get(session)
            if thread is None:
                thread = Thread(self.store, thread_id, session, self._pulled)
                self._threads[session] = thread
                self._shrink()
            self._threads.move_to_end(session)
            return thread

    def _shrink(self) -> None:
        if len(self._threads) <= _THREADS:
            return
        for name, old in self._threads.items():
            # Its lock is surely free only if no other thread has the object.
            if not self.drainer.waits_for(old) and old.mutex.acquire(blocking=False):
                del self._threads[name]
                old.mutex.release()
                return

    def thread_ids(self) -> Iterator[str]:
        """Yields the ids of all threads there are."""
        refs = self.repository.refs.list(layout.SESSIONS)
        tips: dict[str, str | None] = dict.fromkeys(log_file.names(self.repository))
        for ref in refs:
            tips[ref.removeprefix(layout.SESSIONS).partition("/")[0]] = refs[ref]
        for component, tip in sorted(tips.items()):
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
