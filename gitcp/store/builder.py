"""Makes the objects of a checkpoint: `.gitcp`, the root tree, the commit (docs/format.md, 3 to 5).

No other code does, for a save, a fork, an import, a purge or LangGraph. A sink decides
where the objects go.
"""

import os
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import msgspec

from gitcp.format import checkpoint as manifests
from gitcp.format import layout
from gitcp.format.checkpoint import (
    NULL,
    Base,
    Conversation,
    Files,
    LogTotals,
    Manifest,
    timestamp,
)
from gitcp.format.commit import Trailers, encode_commit
from gitcp.format.tree import DIRECTORY, FILE, Entry, Tree
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import FORK, Draft, fork_note
from gitcp.store.origin import Origin, Seals
from gitcp.store.summary import summary

Extra = tuple[tuple[str, str], ...]


class ObjectSink(Protocol):
    """Takes new objects: a transaction, or a record of the write-ahead log."""

    @property
    def scratch(self) -> Path | None:
        """A directory for temporary files, if there is one."""

    def add_blob(self, data: bytes) -> bytes:
        """Adds a blob and returns its oid."""

    def add_tree(self, tree: Tree) -> bytes:
        """Adds a tree and returns its oid; it may be stored only by `complete`."""

    def add_commit(self, raw: bytes) -> bytes:
        """Adds a commit and returns its oid."""

    def complete(self, root: bytes, bases: tuple[bytes | None, ...]) -> None:
        """Stores what a root tree needs and no base holds at the same path."""


class BranchSlot(NamedTuple):
    """A position on a branch: the number there, and the commit before it.

    `forked_from` is the id of the checkpoint that a new branch begins at.
    """

    session: str
    branch: str
    seq: int
    parent: bytes | None
    forked_from: str | None = None


class Circumstances(NamedTuple):
    """When a checkpoint is made, on which commit of the user's, and by whom.

    `effects` and `ledger` say how far the session's ledger has come.
    """

    now: float
    base: Base | None
    author: str | None = None
    effects: int = 0
    ledger: str = ""


class Carried(NamedTuple):
    """A checkpoint's properties of its logs, mostly those of the checkpoint before it."""

    conversation: Conversation | None = None
    decisions: LogTotals | None = None
    steps: LogTotals | None = None
    task: str | None = None
    position: msgspec.Raw = NULL
    metadata: msgspec.Raw = NULL

    @classmethod
    def of(cls, manifest: Manifest | None) -> Self:
        """Returns the properties in a manifest; None stands for no logs at all."""
        if manifest is None:
            return cls()
        return cls(*(getattr(manifest, name) for name in cls._fields))


class TreeContent(NamedTuple):
    """What the tree of a checkpoint holds, besides what the builder writes.

    `files` are the entries of the root without `.gitcp`, `own` those of `.gitcp`. `bases`
    are root trees that hold most of it. `counts.tree` is the id of `files`.
    """

    files: Tree
    own: Tree
    counts: Files
    skipped: int
    origin: Origin
    bases: tuple[bytes, ...] = ()

    @property
    def format(self) -> int:
        """The version of the format that it takes to read it."""
        chunked = layout.CHUNKS in self.own
        return layout.FORMAT_WITH_CHUNKS if chunked else layout.FORMAT

    @property
    def log_tree(self) -> bytes | None:
        """The oid of the tree that holds the logs."""
        entry = self.own.get(layout.LOG)
        return entry.oid if entry is not None else None


class Built(NamedTuple):
    """A commit that was made: its id, its bytes, and the content of checkpoint.json."""

    oid: bytes
    raw: bytes
    manifest: Manifest


class CheckpointBuilder:
    """Makes checkpoints of one repository; their objects go to a sink."""

    def __init__(self, sink: ObjectSink, seals: Seals) -> None:
        self._sink = sink
        self._seals = seals

    def build(
        self,
        draft: Draft,
        slot: BranchSlot,
        content: TreeContent,
        carried: Carried,
        at: Circumstances,
        *,
        with_summary: bool = True,
        extra: Extra = (),
    ) -> Built:
        """Makes the checkpoint of a draft; `extra` are trailers beside the usual ones.

        It ignores those parts of the draft that `content` and `carried` reflect
        already.
        """
        manifest = Manifest(
            format=content.format,
            id=draft.id or os.urandom(6).hex(),
            session=slot.session,
            branch=slot.branch,
            seq=slot.seq,
            created=timestamp(at.now),
            trigger=draft.trigger,
            note=draft.note,
            label=draft.label,
            author=at.author,
            base=at.base,
            position=draft.position or carried.position,
            metadata=draft.metadata or carried.metadata,
            files=content.counts,
            conversation=carried.conversation,
            decisions=carried.decisions,
            steps=carried.steps,
            task=carried.task,
            skipped=content.skipped,
            restored_from=draft.restored_from,
            replaced=draft.replaced,
            forked_from=slot.forked_from,
            effects=at.effects,
            ledger=at.ledger,
        )
        own = dict(content.own)
        if with_summary:
            page = self._sink.add_blob(summary(manifest, draft.decisions))
            own[layout.SUMMARY] = Entry(FILE, page)
        root, manifest = self.tree(
            manifest, content.files, own, content.bases, content.origin
        )
        return self.commit(manifest, root, slot.parent, int(at.now), extra)

    def tree(
        self,
        manifest: Manifest,
        files: Tree,
        own: Tree,
        bases: tuple[bytes, ...],
        origin: Origin,
    ) -> tuple[bytes, Manifest]:
        """Makes the root tree of a checkpoint, and stores what it needs.

        Returns its manifest, too. It is sealed, unless its `origin` is not here: to change
        what was made elsewhere does not seal it.
        """
        own = {name: one for name, one in own.items() if name != layout.CHECKPOINT}
        if origin.here:
            seal = self._seals.make(manifest, own, origin, self._sink.scratch)
            manifest = msgspec.structs.replace(manifest, origin=seal)
        blob = self._sink.add_blob(manifests.encode_manifest(manifest))
        inner = {**own, layout.CHECKPOINT: Entry(FILE, blob)}
        reserved = Entry(DIRECTORY, self._sink.add_tree(inner))
        root = self._sink.add_tree({**files, layout.RESERVED: reserved})
        self._sink.complete(root, bases)
        return root, manifest

    def commit(
        self,
        manifest: Manifest,
        root: bytes,
        parent: bytes | None,
        epoch: int,
        extra: Extra = (),
    ) -> Built:
        """Makes the commit of a root tree; its message repeats the manifest."""
        trailers = Trailers(
            manifest.id,
            encode(manifest.session),
            encode(manifest.branch),
            manifest.seq,
            manifest.trigger,
            manifest.base.commit if manifest.base else None,
            manifest.label,
        )
        raw = encode_commit(root, parent, epoch, trailers, extra)
        return Built(self._sink.add_commit(raw), raw, manifest)

    def recreate(
        self,
        source: Checkpoint,
        slot: BranchSlot,
        *,
        metadata: msgspec.Raw | None = None,
        extra: Extra = (),
        sealed: bool = True,
    ) -> bytes:
        """Makes a checkpoint again with another parent, and returns its commit.

        With `slot.forked_from` it is another checkpoint, with an id of its own.
        `metadata` replaces the checkpoint's. If not `sealed`, it will count as made elsewhere:
        a seal of this repository does not stay, because one of 0.1.0 would still fit.
        """
        manifest = msgspec.structs.replace(
            source.manifest, session=slot.session, branch=slot.branch, seq=slot.seq
        )
        origin = source.origin
        if slot.forked_from is not None:
            manifest = _forked(manifest, source)
            # It is made here, and its content has the origin that it had.
            origin = origin._replace(here=True)
        if not sealed:
            manifest, origin = without_seal(manifest, origin)
        if metadata is not None:
            manifest = msgspec.structs.replace(manifest, metadata=metadata)
        files = dict(source.objects.tree(source.raw.tree))
        own = source.objects.tree(files.pop(layout.RESERVED).oid)
        root, manifest = self.tree(manifest, files, own, (source.raw.tree,), origin)
        return self.commit(manifest, root, slot.parent, source.raw.epoch, extra).oid


def without_seal(manifest: Manifest, origin: Origin) -> tuple[Manifest, Origin]:
    """Returns a manifest and an origin for a checkpoint that is to count as made elsewhere.

    The seal of another repository stays: it is valid there.
    """
    if origin.here:
        manifest = msgspec.structs.replace(manifest, origin=None)
    return manifest, origin._replace(here=False)


def _forked(manifest: Manifest, source: Checkpoint) -> Manifest:
    return msgspec.structs.replace(
        manifest,
        id=os.urandom(6).hex(),
        trigger=FORK,
        note=fork_note(source),
        label=None,
        forked_from=source.id,
        converted=(),
    )
