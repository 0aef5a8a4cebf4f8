"""Builds the commit of one event: its entries in `.gitcp`, as a checkpoint of the store."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from gitcp.adapters.langgraph.origins import Origins
from gitcp.adapters.langgraph.reader import ThreadReader
from gitcp.format import checkpoint as manifests
from gitcp.format import layout
from gitcp.format import tree as trees
from gitcp.format.checkpoint import Base, Files, Manifest
from gitcp.format.graph import PUT, EventHeader, encode_header
from gitcp.format.tree import DIRECTORY, FILE, Entry, Tree
from gitcp.store.builder import (
    BranchSlot,
    Carried,
    CheckpointBuilder,
    Circumstances,
    TreeContent,
)
from gitcp.store.draft import Draft, FilesState
from gitcp.store.origin import HERE, Origin
from gitcp.store.store import Store
from gitcp.wal.record_sink import RecordSink


class EventCommit(NamedTuple):
    """A commit to be built on a branch; `parent` is the commit before it.

    `graph` are the files of `.gitcp` that hold the event; `channels` the logs of a
    checkpoint's channels, None if those of the parent stay; `carried` the commit of the
    checkpoint that the graph continued from.
    """

    header: EventHeader
    note: str
    branch: str
    seq: int
    parent: bytes | None
    graph: dict[bytes, Entry]
    channels: dict[bytes, Entry] | None
    files: FilesState | None
    base: Base | None
    carried: bytes | None = None


class EventCommitBuilder:
    """Makes the commits of one thread."""

    def __init__(
        self,
        store: Store,
        reader: ThreadReader,
        session: str,
        thread_id: str,
        origins: Origins,
    ) -> None:
        self._store = store
        self._repository = store.repository
        self._reader = reader
        self._session = session
        self._thread_id = thread_id
        self._origins = origins

    def commit(
        self, sink: RecordSink, event: EventCommit, anchor: Callable[[], str | None]
    ) -> tuple[bytes, bytes]:
        """Adds the objects of a commit and returns its oid and its raw form."""
        parent = event.parent
        before = self._reader.manifest(parent) if parent is not None else None
        content = self._content(sink, event, before)
        forked = before.id if before is not None and event.seq == 1 else None
        if parent is None and (found := anchor()) is not None:
            parent = bytes.fromhex(found)
        is_put = event.header.kind == PUT
        built = CheckpointBuilder(sink, self._store.seals).build(
            Draft(
                "graph" if is_put else "graph-writes",
                note=event.note,
                metadata=self._metadata(event.header),
            ),
            BranchSlot(self._session, event.branch, event.seq, parent, forked),
            content,
            Carried.of(before),
            Circumstances(self._store.time(), event.base),
            # Writes are half of all commits, and soon part of a checkpoint: no page for
            # them.
            with_summary=is_put,
            extra=(encode_header(event.header),),
        )
        self._reader.keep_manifest(built.oid, built.manifest)
        return built.oid, built.raw

    def _content(
        self, sink: RecordSink, event: EventCommit, before: Manifest | None
    ) -> TreeContent:
        root, held = self._reader.own(event.parent) if event.parent else ({}, {})
        files = {name: entry for name, entry in root.items() if name != layout.RESERVED}
        own = dict(held)
        old = before.files if before else Files(None, 0, 0, 0, captured=False)
        skipped = before.skipped if before else 0
        if event.files is None:
            counts = Files(old.tree, 0, 0, 0, captured=old.captured)
        else:
            new = self._files(event.files.tree)
            counts = self._count(files, new, event.files.tree)
            files = dict(new)
            skipped = len(event.files.skipped)
            _lists(own, event.files, sink)
        own.pop(layout.WRITES, None)
        own.pop(layout.SUMMARY, None)
        own.update(event.graph)
        if event.channels is not None:
            self._log(own, event.channels, sink)
        return TreeContent(files, own, counts, skipped, self._origin(event))

    def _origin(self, event: EventCommit) -> Origin:
        """Returns what was not made here: what it carries on may come from elsewhere.

        Small values of a graph are in its event, so a parent without logs brings some, too.
        """
        before = self._origins.of(event.parent) if event.parent is not None else HERE
        state = self._origins.of(event.carried) if event.carried is not None else HERE
        return Origin(
            before.files if event.files is None else None, before.where or state.where
        )

    def _metadata(self, header: EventHeader) -> msgspec.Raw:
        about = {
            "thread_id": self._thread_id,
            "checkpoint_ns": header.key.namespace,
            "checkpoint_id": header.key.ident,
        }
        return msgspec.Raw(msgspec.json.encode(about))

    def _files(self, tree: bytes | None) -> Tree:
        return self._repository.objects.tree(tree) if tree is not None else {}

    def _count(self, old: Tree, new: Tree, oid: bytes | None) -> Files:
        counts = {"added": 0, "modified": 0, "deleted": 0}
        # The root of files alone is in no commit: `.gitcp` lies beside it there.
        roots = {b"old": old, b"new": new}
        for change in trees.diff(
            b"old", b"new", lambda one: roots.get(one) or self._subtree(one)
        ):
            counts[change.status] += 1
        text = oid.hex() if oid is not None else None
        return Files(text, counts["added"], counts["modified"], counts["deleted"])

    def _subtree(self, oid: bytes) -> Tree:
        return {} if oid in {b"old", b"new"} else self._repository.objects.tree(oid)

    def _log(
        self, held: dict[bytes, Entry], channels: dict[bytes, Entry], sink: RecordSink
    ) -> None:
        """Replaces the graph's part of the logs; others stay as they are."""
        old = held.pop(layout.LOG, None)
        logs = dict(self._reader.tree(old.oid)) if old is not None else {}
        logs.pop(layout.GRAPH.encode(), None)
        if channels:
            inner = sink.add_tree(channels)
            logs[layout.GRAPH.encode()] = Entry(DIRECTORY, inner)
        if logs:
            held[layout.LOG] = Entry(DIRECTORY, sink.add_tree(logs))


def _lists(held: dict[bytes, Entry], files: FilesState, sink: RecordSink) -> None:
    """Replaces the lists of what was not captured and of empty directories."""
    for path, data in (
        (layout.SKIPPED, manifests.encode_skipped(files.skipped)),
        (layout.EMPTY_DIRS, manifests.encode_empty_dirs(files.empty)),
    ):
        held.pop(path, None)
        if data:
            held[path] = Entry(FILE, sink.add_blob(data))
