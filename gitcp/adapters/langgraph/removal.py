"""Removes checkpoints from threads, except those that others are rebuilt from."""

from collections.abc import Callable, Iterable

from gitcp.adapters.langgraph import events
from gitcp.adapters.langgraph.events import Load
from gitcp.adapters.langgraph.index import Index
from gitcp.adapters.langgraph.thread import Thread
from gitcp.adapters.langgraph.threads import Threads
from gitcp.errors import UsageError
from gitcp.format.graph import GraphKey

_COUNTERS = "counters_since_delta_snapshot"


class DeltaChainError(UsageError, NotImplementedError):
    """The checkpoint to delete is needed to rebuild a `DeltaChannel`."""


def remove_runs(threads: Threads, runs: set[str], load: Load) -> None:
    """Removes the checkpoints that some runs have made, in all threads."""

    def of_runs(index: Index) -> set[GraphKey]:
        return {key for key, node in index.nodes.items() if node.run in runs}

    _remove(threads, list(threads.thread_ids()) if runs else (), of_runs, load)


def keep_latest(threads: Threads, thread_ids: Iterable[str], load: Load) -> None:
    """Removes all but the newest checkpoint of each namespace."""

    def older(index: Index) -> set[GraphKey]:
        return {key for key in index.nodes if index.latest(key.namespace) != key}

    _remove(threads, thread_ids, older, load)


def _remove(
    threads: Threads,
    thread_ids: Iterable[str],
    choose: Callable[[Index], set[GraphKey]],
    load: Load,
) -> None:
    for thread_id in thread_ids:
        thread = threads.thread(str(thread_id))

        def checked(index: Index, thread: Thread = thread) -> set[GraphKey]:
            gone = choose(index)
            _check_chains(thread, index, gone, load)
            return gone

        thread.remove(checked)


def _check_chains(
    thread: Thread, index: Index, gone: set[GraphKey], load: Load
) -> None:
    """Raises if a checkpoint that stays needs one to be deleted.

    A `DeltaChannel` has a value only at some checkpoints; in between it is rebuilt
    from the writes of those before. The metadata counts the steps since.
    """
    for key, node in index.nodes.items():
        if key in gone or GraphKey(key.namespace, node.parent or "") not in gone:
            continue
        event = thread.reader.event(node.oid)
        metadata = events.unpack(event["metadata"], load)
        rebuilt = sorted(set(metadata.get(_COUNTERS) or ()) - set(event["channels"]))
        if rebuilt:
            raise DeltaChainError(
                f"{key.ident} of thread {thread.thread_id!r} rebuilds"
                f" {', '.join(rebuilt)} from the checkpoints before it",
                hint="keep them, or delete the whole thread",
            )
