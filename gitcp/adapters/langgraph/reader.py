"""Reads a thread's commits from git and from the write-ahead log."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from gitcp.adapters.langgraph import events
from gitcp.adapters.langgraph.events import Typed, Write
from gitcp.adapters.langgraph.index import IndexedCheckpoint
from gitcp.adapters.langgraph.values import Value, load_data, load_value
from gitcp.errors import CorruptError
from gitcp.format import checkpoint as manifests
from gitcp.format import layout
from gitcp.format.checkpoint import Manifest
from gitcp.format.graph import GraphKey
from gitcp.format.tree import Tree
from gitcp.wal.client import LogClient

_STATES = 4
_EVENTS = 64
_BLOBS = 32 * 1024 * 1024
_TREES = 512


class StoredCheckpoint(NamedTuple):
    """A checkpoint as it is stored."""

    event: Mapping[str, Any]
    values: Mapping[str, Value]


class ThreadReader:
    """Reads objects and what they mean; `logged` are those git does not have yet.

    The caller holds the thread's mutex.
    """

    def __init__(self, log: LogClient) -> None:
        self._log = log
        self.logged = log.objects
        self._states: OrderedDict[GraphKey, tuple[bytes, StoredCheckpoint]] = (
            OrderedDict()
        )
        self._events: OrderedDict[bytes, dict[str, Any]] = OrderedDict()
        self._blobs: OrderedDict[bytes, bytes] = OrderedDict()
        self._held = 0
        self._trees: OrderedDict[bytes, Tree] = OrderedDict()
        self._manifest: tuple[bytes, Manifest] | None = None

    def forget(self) -> None:
        """Drops what was read."""
        for cache in (self._states, self._events, self._blobs, self._trees):
            cache.clear()
        self._manifest = None
        self._held = 0

    # --- objects --------------------------------------------------------------------

    def tree(self, oid: bytes) -> Tree:
        """Returns a parsed tree."""
        tree = self._trees.get(oid)
        if tree is None:
            tree = self._trees[oid] = self._log.tree(oid)
            if len(self._trees) > _TREES:
                self._trees.popitem(last=False)
        return tree

    def blob(self, oid: bytes) -> bytes:
        """Returns a blob; those read last are kept."""
        blob = self._blobs.get(oid)
        if blob is not None:
            self._blobs.move_to_end(oid)
            return blob
        blob = self._blobs[oid] = self._log.blob(oid)
        self._held += len(blob)
        while self._held > _BLOBS:
            _, dropped = self._blobs.popitem(last=False)
            self._held -= len(dropped)
        return blob

    def own(self, oid: bytes) -> tuple[Tree, Tree]:
        """Returns a commit's root tree and its `.gitcp`."""
        root = self.tree(self._log.commit(oid).tree)
        held = root.get(layout.RESERVED)
        return root, self.tree(held.oid) if held is not None else {}

    # --- what they mean --------------------------------------------------------------

    def event(self, oid: bytes) -> dict[str, Any]:
        """Returns what a commit of this thread says.

        Raises:
            CorruptError: the commit is damaged.
        """
        event = self._events.get(oid)
        if event is None:
            graph = self._graph(oid)
            raw = self._log.blob(graph[layout.EVENT].oid)
            event = events.decode_event(raw, f"commit {oid.hex()}")
            self._events[oid] = event
            if len(self._events) > _EVENTS:
                self._events.popitem(last=False)
        return event

    def _graph(self, oid: bytes) -> Tree:
        _, own = self.own(oid)
        if layout.EVENT not in own:
            raise CorruptError(
                f"commit {oid.hex()} of the thread has no {layout.EVENT.decode()}",
                hint="run `gitcp verify`",
            )
        return own

    def values(
        self, key: GraphKey, node: IndexedCheckpoint
    ) -> tuple[Mapping[str, Any], dict[str, Typed]]:
        """Returns the event of a checkpoint and its serialized channel values."""
        state = self._states.get(key)
        if state is not None and state[0] == node.oid:
            self._states.move_to_end(key)
            stored = state[1].values
            return state[1].event, {
                name: (value.kind, value.data) for name, value in stored.items()
            }
        event = self.event(node.oid)
        log_tree = self._log_tree(node.oid)
        typed = {}
        for name, packed in event["channels"].items():
            (kind, data), is_head = events.channel_value(packed)
            if is_head:
                data = load_data(name, data, log_tree, self.tree, self.blob)
            typed[name] = kind, data
        return event, typed

    def _log_tree(self, oid: bytes) -> bytes | None:
        _, own = self.own(oid)
        held = own.get(layout.LOG)
        return held.oid if held is not None else None

    def state(self, key: GraphKey, node: IndexedCheckpoint) -> StoredCheckpoint:
        """Returns a checkpoint as it is stored, with what appending to it needs."""
        kept = self._states.get(key)
        if kept is not None and kept[0] == node.oid:
            return kept[1]
        event = self.event(node.oid)
        log_tree = self._log_tree(node.oid)
        values = {}
        for name, packed in event["channels"].items():
            (kind, data), is_head = events.channel_value(packed)
            values[name] = (
                load_value(name, kind, data, log_tree, self.tree, self.blob)
                if is_head
                else Value(kind, b"", data)
            )
        return self.keep(key, node.oid, StoredCheckpoint(event, values))

    def keep(
        self, key: GraphKey, oid: bytes, state: StoredCheckpoint
    ) -> StoredCheckpoint:
        """Keeps a checkpoint for what comes next; a few are kept."""
        self._states[key] = oid, state
        self._states.move_to_end(key)
        while len(self._states) > _STATES:
            self._states.popitem(last=False)
        return state

    def writes(self, oid: bytes) -> list[Write]:
        """Returns the pending writes that one commit holds."""
        held = self._graph(oid).get(layout.WRITES)
        values = self.blob(held.oid) if held is not None else b""
        return events.decode_writes(self.event(oid), values)

    def manifest(self, oid: bytes) -> Manifest:
        """Returns the checkpoint.json of a commit.

        Raises:
            CorruptError: the file is missing or damaged.
        """
        if self._manifest is not None and self._manifest[0] == oid:
            return self._manifest[1]
        _, own = self.own(oid)
        if layout.CHECKPOINT not in own:
            raise CorruptError(
                f"commit {oid.hex()} of the thread has no checkpoint.json",
                hint="run `gitcp verify`",
            )
        raw = self._log.blob(own[layout.CHECKPOINT].oid)
        return manifests.decode_manifest(raw, f"commit {oid.hex()}")

    def keep_manifest(self, oid: bytes, manifest: Manifest) -> None:
        """Keeps the newest checkpoint.json: the next commit follows it."""
        self._manifest = oid, manifest
