"""The commit of one event: its entries in `.gitcp`, made a checkpoint by the store."""

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from gitcp.adapters.langgraph.reader import ThreadReader
from gitcp.format import checkpoint as manifests
from gitcp.format import layout
from gitcp.format import tree as trees
from gitcp.format.checkpoint import Base, Files, Manifest
from gitcp.format.graph import PUT, EventHeader, encode_header
from gitcp.format.tree import DIRECTORY, FILE, Entry, Tree
from gitcp.git.objects import BLOB, COMMIT, TREE, object_id
from gitcp.git.pack import entry
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


class Pending:
    """The objects of one event, a sink for a checkpoint's; also readable from here on."""

    # A key that is made now needs a place of its own.
    scratch = None

    def __init__(self, overlay: dict[bytes, bytes]) -> None:
        self._overlay = overlay
        self.added: dict[bytes, bytes] = {}

    def add_object(self, kind: str, data: bytes) -> bytes:
        """Adds an object and returns its oid."""
        oid = object_id(kind, data)
        if oid not in self.added:
            # What the log holds already goes into the same pack.
            body = self._overlay.get(oid)
            self.added[oid] = entry(kind, data) if body is None else body
        return oid

    def add_blob(self, data: bytes) -> bytes:
        """Adds a blob and returns its oid."""
        return self.add_object(BLOB, data)

    def add_tree(self, tree: Tree) -> bytes:
        """Adds a tree and returns its oid."""
        return self.add_object(TREE, trees.encode(tree))

    def add_commit(self, raw: bytes) -> bytes:
        """Adds a commit and returns its oid."""
        return self.add_object(COMMIT, raw)

    def complete(self, root: bytes, bases: tuple[bytes | None, ...]) -> None:
        """Does nothing: a tree that is added is stored, files are in git before that."""

    def objects(self) -> dict[bytes, bytes]:
        """Returns what is not in the write-ahead log yet."""
        return {
            oid: body for oid, body in self.added.items() if oid not in self._overlay
        }


class Step(NamedTuple):
    """A commit to be built on a branch; `parent` is the commit before it.

    `graph` are the files of `.gitcp` that hold the event; `channels` the logs of a
    checkpoint's channels, None where those of the parent stay.
    """

    said: EventHeader
    note: str
    branch: str
    seq: int
    parent: bytes | None
    graph: dict[bytes, Entry]
    channels: dict[bytes, Entry] | None
    files: FilesState | None
    base: Base | None


class Builder:
    """Makes the commits of one thread."""

    def __init__(
        self, store: Store, reader: ThreadReader, session: str, thread_id: str
    ) -> None:
        self._store = store
        self._repository = store.repository
        self._reader = reader
        self._session = session
        self._thread_id = thread_id

    def commit(
        self, pending: Pending, step: Step, anchor: Callable[[], str | None]
    ) -> tuple[bytes, bytes]:
        """Adds the objects of a commit and returns its oid and its raw form."""
        parent = step.parent
        before = self._reader.manifest(parent) if parent is not None else None
        content = self._content(pending, step, before)
        forked = before.id if before is not None and step.seq == 1 else None
        if parent is None and (found := anchor()) is not None:
            parent = bytes.fromhex(found)
        is_put = step.said.kind == PUT
        built = CheckpointBuilder(pending, self._store.seals).build(
            Draft(
                "graph" if is_put else "graph-writes",
                note=step.note,
                metadata=self._metadata(step.said),
            ),
            BranchSlot(self._session, step.branch, step.seq, parent, forked),
            content,
            Carried.of(before),
            Circumstances(time.time(), step.base),
            # Writes are half of all commits, and soon part of a checkpoint: no page for
            # them.
            with_summary=is_put,
            extra=(encode_header(step.said),),
        )
        self._reader.keep_manifest(built.oid, built.manifest)
        return built.oid, built.raw

    def _content(
        self, pending: Pending, step: Step, before: Manifest | None
    ) -> TreeContent:
        root, held = self._reader.own(step.parent) if step.parent else ({}, {})
        files = {name: entry for name, entry in root.items() if name != layout.RESERVED}
        own = dict(held)
        old = before.files if before else Files(None, 0, 0, 0, captured=False)
        skipped = before.skipped if before else 0
        if step.files is None:
            counts = Files(old.tree, 0, 0, 0, captured=old.captured)
        else:
            new = self._files(step.files.tree)
            counts = self._count(files, new, step.files.tree)
            files = dict(new)
            skipped = len(step.files.skipped)
            _lists(own, step.files, pending)
        own.pop(layout.WRITES, None)
        own.pop(layout.SUMMARY, None)
        own.update(step.graph)
        if step.channels is not None:
            self._log(own, step.channels, pending)
        return TreeContent(files, own, counts, skipped, self._origin(step, own))

    def _origin(self, step: Step, own: Tree) -> Origin:
        """Returns what was not made here: what it carries on may come from elsewhere."""
        before = self._origin_of(step.parent) if step.parent is not None else HERE
        return Origin(
            before.files if step.files is None else None,
            before.logs if layout.LOG in own else None,
        )

    def _origin_of(self, parent: bytes) -> Origin:
        if parent in self._reader.overlay:
            # Made here: its seal needs no checking.
            sealed = self._reader.manifest(parent).origin
            return Origin(sealed.files, sealed.logs) if sealed is not None else HERE
        checkpoint = self._store.checkpoint(parent)
        return checkpoint.origin if checkpoint is not None else HERE

    def _metadata(self, said: EventHeader) -> msgspec.Raw:
        about = {
            "thread_id": self._thread_id,
            "checkpoint_ns": said.key.namespace,
            "checkpoint_id": said.key.ident,
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
        self, held: dict[bytes, Entry], channels: dict[bytes, Entry], pending: Pending
    ) -> None:
        """Replaces the graph's part of the logs; others stay as they are."""
        old = held.pop(layout.LOG, None)
        logs = dict(self._reader.tree(old.oid)) if old is not None else {}
        logs.pop(layout.GRAPH.encode(), None)
        if channels:
            inner = pending.add_tree(channels)
            logs[layout.GRAPH.encode()] = Entry(DIRECTORY, inner)
        if logs:
            held[layout.LOG] = Entry(DIRECTORY, pending.add_tree(logs))


def _lists(held: dict[bytes, Entry], files: FilesState, pending: Pending) -> None:
    """Replaces the lists of what was not captured and of empty directories."""
    for path, data in (
        (layout.SKIPPED, manifests.encode_skipped(files.skipped)),
        (layout.EMPTY_DIRS, manifests.encode_empty_dirs(files.empty)),
    ):
        held.pop(path, None)
        if data:
            held[path] = Entry(FILE, pending.add_blob(data))
