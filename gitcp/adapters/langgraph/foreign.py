"""Decides which checkpoints made elsewhere a graph gets: its state may call its tools."""

from gitcp.adapters.langgraph.thread import Thread
from gitcp.errors import UsageError
from gitcp.format.graph import GraphKey
from gitcp.names import quoted
from gitcp.store.store import Store
from gitcp.trust.trusted_remotes import Trusting


class Allowed:
    """The checkpoints of a store that its graphs may get; with `trust` all of them."""

    def __init__(self, store: Store, *, trust: bool) -> None:
        self._store = store
        self._trust = trust
        self._known: dict[str, str] = {}

    def allows(self, thread: Thread, key: GraphKey) -> bool:
        """Whether a graph may get a checkpoint and its writes; holds the thread's mutex."""
        if self._trust:
            return True
        trusting = Trusting(self._store, self._known)
        with thread.mutex:
            return all(
                (found := self._store.checkpoint(oid)) is not None
                and trusting.covers(found)
                for oid in thread.elsewhere(key)
            )

    def check(self, thread: Thread, key: GraphKey) -> None:
        """Raises unless a graph may get a checkpoint and its writes.

        Raises:
            UsageError: it was made elsewhere, and the user has not trusted it.
        """
        if not self.allows(thread, key):
            raise UsageError(
                f"the thread {thread.thread_id!a} was made elsewhere, at least in part, so"
                " gitcp does not hand it to a graph unless you say so: its state may call"
                " the graph's tools",
                hint=f"look at it with `gitcp log -s {quoted(thread.session)}`; then `gitcp trust"
                " REMOTE` once, or GitcpSaver(path, trust=True)",
            )
