"""The commit of one event: its tree, checkpoint.json and message."""

import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from gitcp.adapters.langgraph.reader import Reader
from gitcp.format import checkpoint as manifests
from gitcp.format import layout
from gitcp.format import tree as trees
from gitcp.format.checkpoint import NULL, Base, Files, Manifest, Sealed, timestamp
from gitcp.format.commit import Trailers, encode_commit
from gitcp.format.graph import PUT, Said, encode_said
from gitcp.format.tree import DIRECTORY, FILE, Entry, Tree
from gitcp.git.objects import BLOB, COMMIT, TREE, object_id
from gitcp.git.pack import entry
from gitcp.git.transaction import transaction
from gitcp.names import encode
from gitcp.store.draft import FilesState
from gitcp.store.origin import HERE, Origin
from gitcp.store.store import Store
from gitcp.store.summary import summary


class Pending:
    """The objects of one event; also readable from here on."""

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

    def objects(self) -> tuple[tuple[bytes, bytes], ...]:
        """Returns what is not in the redo log yet."""
        return tuple(
            (oid, body) for oid, body in self.added.items() if oid not in self._overlay
        )


class Step(NamedTuple):
    """A commit to be built on a branch; `parent` is the commit before it.

    `graph` are the files of `.gitcp` that hold the event; `channels` the logs of a
    checkpoint's channels, None where those of the parent stay.
    """

    said: Said
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
        self, store: Store, reader: Reader, session: str, thread_id: str
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
        reader, parent = self._reader, step.parent
        root, own = reader.own(parent) if parent is not None else ({}, {})
        before = reader.manifest(parent) if parent is not None else None
        files = {name: entry for name, entry in root.items() if name != layout.RESERVED}
        held = dict(own)
        old = before.files if before else Files(None, 0, 0, 0, captured=False)
        if step.files is None:
            counts = Files(old.tree, 0, 0, 0, captured=old.captured)
        else:
            new = self._files(step.files.tree)
            counts = self._count(files, new, step.files.tree)
            files = dict(new)
            _lists(held, step.files, pending)
        held.pop(layout.WRITES, None)
        held.update(step.graph)
        if step.channels is not None:
            self._log(held, step.channels, pending)
        now = time.time()
        skipped = step.files.skipped if step.files is not None else None
        ident = secrets.token_hex(6)
        logs = held.get(layout.LOG)
        sealed = self._seal(ident, counts, logs.oid if logs else None, step)
        manifest = self._manifest(step, before, counts, now)
        manifest = msgspec.structs.replace(manifest, id=ident, origin=sealed)
        if skipped is not None:
            manifest = msgspec.structs.replace(manifest, skipped=len(skipped))
        texts = {layout.CHECKPOINT: manifests.encode_manifest(manifest)}
        # Writes are half of all commits, and soon part of a checkpoint: no page for them.
        held.pop(layout.SUMMARY, None)
        if step.said.kind == PUT:
            texts[layout.SUMMARY] = summary(manifest, ())
        for path, data in texts.items():
            held[path] = Entry(FILE, pending.add_object(BLOB, data))
        files[layout.RESERVED] = Entry(
            DIRECTORY, pending.add_object(TREE, trees.encode(held))
        )
        top = pending.add_object(TREE, trees.encode(files))
        if parent is None and (found := anchor()) is not None:
            parent = bytes.fromhex(found)
        raw = encode_commit(
            top,
            parent,
            int(now),
            Trailers(
                manifest.id,
                encode(self._session),
                encode(step.branch),
                step.seq,
                manifest.trigger,
                step.base.commit if step.base else None,
                None,
            ),
            (encode_said(step.said),),
        )
        oid = pending.add_object(COMMIT, raw)
        reader.keep_manifest(oid, manifest)
        return oid, raw

    def _seal(self, ident: str, files: Files, logs: bytes | None, step: Step) -> Sealed:
        """Seals a checkpoint; what it carries on may come from elsewhere."""
        before = self._origin(step.parent) if step.parent is not None else HERE
        origin = Origin(
            before.files if step.files is None else None,
            before.logs if logs is not None else None,
        )
        tree = bytes.fromhex(files.tree) if files.tree is not None else None
        make = self._store.seals.make
        directory = self._repository.store_dir
        if (directory / "key").exists():
            return make(ident, tree, logs, origin, directory)
        # The first save of all makes the key, in a place of its own.
        with transaction(self._repository) as opened:
            return make(ident, tree, logs, origin, opened.scratch)

    def _origin(self, parent: bytes) -> Origin:
        if parent in self._reader.overlay:
            # Made here: its seal needs no checking.
            said = self._reader.manifest(parent).origin
            return Origin(said.files, said.logs) if said is not None else HERE
        found = self._store.checkpoint(parent)
        return found.origin if found is not None else HERE

    def _manifest(
        self,
        step: Step,
        before: Manifest | None,
        files: Files,
        now: float,
    ) -> Manifest:
        said = step.said
        about = {
            "thread_id": self._thread_id,
            "checkpoint_ns": said.key.namespace,
            "checkpoint_id": said.key.ident,
        }
        metadata = msgspec.Raw(msgspec.json.encode(about))
        forked = before.id if before is not None and step.seq == 1 else None
        return Manifest(
            format=layout.FORMAT,
            id="",
            session=self._session,
            branch=step.branch,
            seq=step.seq,
            created=timestamp(now),
            trigger="graph" if said.kind == PUT else "graph-writes",
            note=step.note,
            label=None,
            author=None,
            base=step.base,
            position=before.position if before else NULL,
            metadata=metadata,
            files=files,
            conversation=before.conversation if before else None,
            decisions=before.decisions if before else None,
            steps=before.steps if before else None,
            task=before.task if before else None,
            skipped=before.skipped if before else 0,
            restored_from=None,
            replaced=None,
            forked_from=forked,
        )

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
            inner = pending.add_object(TREE, trees.encode(channels))
            logs[layout.GRAPH.encode()] = Entry(DIRECTORY, inner)
        if logs:
            held[layout.LOG] = Entry(
                DIRECTORY, pending.add_object(TREE, trees.encode(logs))
            )


def _lists(held: dict[bytes, Entry], files: FilesState, pending: Pending) -> None:
    """Replaces the lists of what was not captured and of empty directories."""
    for path, data in (
        (layout.SKIPPED, manifests.encode_skipped(files.skipped)),
        (layout.EMPTY_DIRS, manifests.encode_empty_dirs(files.empty)),
    ):
        held.pop(path, None)
        if data:
            held[path] = Entry(FILE, pending.add_object(BLOB, data))
