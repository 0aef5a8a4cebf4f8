"""Reads checkpoints of threads as the tuples that LangGraph expects."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint as GraphCheckpoint
from langgraph.checkpoint.base import CheckpointTuple

from gitcp.adapters.langgraph import events
from gitcp.adapters.langgraph.events import Load
from gitcp.adapters.langgraph.index import ROOT, Index, IndexedCheckpoint
from gitcp.adapters.langgraph.thread import Thread
from gitcp.adapters.langgraph.threads import Threads
from gitcp.format.graph import GraphKey


class Address(NamedTuple):
    """The thread, namespace and checkpoint id that a config names."""

    thread_id: str
    namespace: str
    ident: str | None

    @classmethod
    def of(cls, config: RunnableConfig) -> "Address":
        """Returns the address in a config."""
        names = config["configurable"]
        return cls(
            str(names["thread_id"]),
            names.get("checkpoint_ns", ROOT),
            names.get("checkpoint_id"),
        )

    def node(self, index: Index) -> tuple[GraphKey, IndexedCheckpoint] | None:
        """Returns the checkpoint that is named, or the newest of the namespace."""
        key = (
            GraphKey(self.namespace, self.ident)
            if self.ident
            else index.latest(self.namespace)
        )
        node = index.nodes.get(key) if key is not None else None
        return (key, node) if key is not None and node is not None else None


def config_of(thread_id: str, key: GraphKey) -> RunnableConfig:
    """Returns the config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": key.namespace,
            "checkpoint_id": key.ident,
        }
    }


class _Listed(NamedTuple):
    """A checkpoint in a listing."""

    thread: Thread
    key: GraphKey
    node: IndexedCheckpoint
    parent: str | None


def named_tuple(
    threads: Threads, config: RunnableConfig, load: Load
) -> CheckpointTuple | None:
    """Returns the checkpoint that a config names, or the newest; None if there is none.

    Raises:
        UsageError: it was made elsewhere, and the user has not trusted it.
    """
    address = Address.of(config)
    thread = threads.thread(address.thread_id)
    with thread.current() as index:
        named = address.node(index)
        if named is None:
            return None
        key, node = named
        threads.allowed.check(thread, key)
        return _tuple(_Listed(thread, key, node, index.parent_of(key)), load)


def _tuple(listed: _Listed, load: Load) -> CheckpointTuple:
    thread, key, node, parent = listed
    with thread.mutex:
        event, values = thread.reader.values(key, node)
        writes = thread.writes(key)
    checkpoint = dict(events.unpack(event["checkpoint"], load))
    checkpoint["channel_values"] = {name: load(typed) for name, typed in values.items()}
    return CheckpointTuple(
        config_of(thread.thread_id, key),
        cast("GraphCheckpoint", checkpoint),
        events.unpack(event["metadata"], load),
        config_of(thread.thread_id, GraphKey(key.namespace, parent))
        if parent is not None
        else None,
        [(write.task, write.channel, load(write.value)) for write in writes],
    )


def list_tuples(
    threads: Threads,
    config: RunnableConfig | None,
    load: Load,
    *,
    fields: dict[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> Iterator[CheckpointTuple]:
    """Yields checkpoints, greatest id first; without a thread those of all threads.

    `fields` are what the metadata has to hold. Of all threads, what the graph may not get is
    left out.

    Raises:
        UsageError: the thread was made elsewhere, and the user has not trusted it.
    """
    names = config["configurable"] if config is not None else {}
    namespace, ident = names.get("checkpoint_ns"), names.get("checkpoint_id")
    end = before["configurable"].get("checkpoint_id") if before is not None else None
    ids = [str(names["thread_id"])] if "thread_id" in names else threads.thread_ids()
    listing: list[_Listed] = []
    for thread in map(threads.thread, list(ids)):
        with thread.current() as index:
            listing += [
                _Listed(thread, key, index.nodes[key], index.parent_of(key))
                for key in index.keys(namespace)
                if ident in {None, key.ident} and (end is None or key.ident < end)
            ]
    # Of one thread they are in order; sorting keeps that.
    listing.sort(key=lambda listed: listed.key.ident, reverse=True)
    count = 0
    for listed in listing:
        if limit is not None and count >= limit:
            return
        if "thread_id" in names:
            threads.allowed.check(listed.thread, listed.key)
        elif not threads.allowed.allows(listed.thread, listed.key):
            continue
        if fields and not _fits(listed, fields, load):
            continue
        yield _tuple(listed, load)
        count += 1


def _fits(listed: _Listed, fields: dict[str, Any], load: Load) -> bool:
    with listed.thread.mutex:
        event = listed.thread.reader.event(listed.node.oid)
    metadata = events.unpack(event["metadata"], load)
    return all(metadata.get(name) == value for name, value in fields.items())
