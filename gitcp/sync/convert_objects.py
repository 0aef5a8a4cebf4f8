"""Converts blobs, trees and commits to ids of another form (docs/format.md, 26)."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import msgspec

from gitcp.encryption.quarantine import QuarantineLimits, too_much
from gitcp.errors import CorruptError, UnsafePathError
from gitcp.format import checkpoint as manifests
from gitcp.format import chunked, converted, layout, safety
from gitcp.format import tree as trees
from gitcp.format.checkpoint import Skipped
from gitcp.format.chunked import ChunkedName
from gitcp.format.commit import Commit
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import DIRECTORY, FILE, GITLINK, Entry
from gitcp.git.objects import BLOB, COMMIT, IN_MEMORY, TREE, Objects

_TREE_LIMIT = 16 * 1024 * 1024
_COMMIT_LIMIT = 32 * 1024 * 1024
_HINT = "nothing of it was adopted; do not use it"
# A few trees may hold a great many gitlinks, and each one left out is listed by its path.
_GITLINKS = 10_000
# The reason to list for a gitlink that is not in the converted tree.
_LEFT_OUT = "submodule"


class ObjectWriter(Protocol):
    """Takes objects, and returns their ids."""

    def add(self, kind: str, data: bytes) -> bytes:
        """Adds an object that is in memory."""

    def add_stream(self, size: int, chunks: Iterator[bytes]) -> bytes | None:
        """Adds a blob of any size; None if the chunks had another size."""


class Hasher:
    """An `ObjectWriter` that stores nothing: it only returns the ids."""

    def __init__(self, form: ObjectFormat) -> None:
        self._form = form

    def add(self, kind: str, data: bytes) -> bytes:
        """Returns the id of an object."""
        return self._form.oid(kind, data)

    def add_stream(self, size: int, chunks: Iterator[bytes]) -> bytes | None:
        """Returns the id of a blob."""
        digest = self._form.hasher(BLOB, size)
        for chunk in chunks:
            digest.update(chunk)
        return digest.digest()


class _Made(NamedTuple):
    """A converted tree, None if it is empty, and how many gitlinks it leaves out."""

    oid: bytes | None
    gitlinks: int


class ObjectConverter:
    """Converts objects of one repository to another form; each object once.

    `named` returns the converted id of a commit, or None if that was not converted.
    """

    def __init__(
        self,
        source: Objects,
        target: ObjectWriter,
        form: ObjectFormat,
        named: Callable[[bytes], bytes | None],
        bounds: QuarantineLimits | None = None,
    ) -> None:
        """`bounds` limits how much is read from `source`; None if it is our repository."""
        self._source = source
        self._target = target
        self._form = form
        self._named = named
        self._bounds = bounds
        self._blobs: dict[bytes, bytes] = {}
        self._trees: dict[bytes, _Made] = {}
        # The new names of chunked files, by their old ones.
        self._chunked: dict[bytes, bytes] = {}
        self._objects = 0
        self._size = 0

    def checkpoint(self, oid: bytes, commit: Commit) -> bytes:
        """Converts a checkpoint, and returns the raw commit.

        A parent that `named` does not know is the user's commit, and is left out.

        Raises:
            CorruptError, UnsafePathError: the checkpoint is damaged, or a tree is not valid.
            TransferError: the objects exceed the size limit.
        """
        try:
            root = self._root(oid, commit)
            parents = [
                image
                for parent in commit.parents
                if (image := self._named(parent)) is not None
            ]
            return converted.commit(
                self._read(oid, COMMIT, _COMMIT_LIMIT),
                tree=root,
                parents=parents,
                was=oid,
                message=commit.message,
            )
        except RecursionError:
            raise UnsafePathError("a directory is too deep", hint=_HINT) from None
        except (ValueError, KeyError, TypeError, msgspec.MsgspecError) as exc:
            raise CorruptError(
                f"the checkpoint in {oid.hex()} is damaged: {exc}", hint=_HINT
            ) from exc

    def page(self, oid: bytes, commit: Commit) -> bytes:
        """Converts a ledger commit, and returns the raw commit.

        Raises:
            CorruptError: the ledger commit is damaged.
            TransferError: the objects exceed the size limit.
        """
        try:
            return converted.commit(
                self._read(oid, COMMIT, _COMMIT_LIMIT),
                tree=self._tree(commit.tree) or self._target.add(TREE, b""),
                parents=[self._known(parent) for parent in commit.parents],
                was=oid,
                message=converted.page(commit.message, self._name),
            )
        except (ValueError, KeyError, RecursionError, msgspec.MsgspecError) as exc:
            raise CorruptError(
                f"the ledger's commit {oid.hex()} is damaged: {exc}", hint=_HINT
            ) from exc

    def _name(self, commit: str) -> str:
        image = self._named(bytes.fromhex(commit))
        return image.hex() if image is not None else commit

    def _known(self, commit: bytes) -> bytes:
        image = self._named(commit)
        if image is None:
            raise ValueError(f"{commit.hex()} is not the ledger's")
        return image

    # --- checkpoints -----------------------------------------------------------------

    def _root(self, oid: bytes, commit: Commit) -> bytes:
        """Returns the converted root tree of a checkpoint."""
        entries = self._read_tree(commit.tree)
        own = self._read_tree(entries.pop(layout.RESERVED).oid)
        # First, because it converts the pointers in the files.
        chunks = self._chunks(own.pop(layout.CHUNKS, None))
        files, gitlinks = self._entries(entries, 0)
        inner, _ = self._entries(own, 0, without=layout.CHECKPOINT)
        news = self._left_out(oid, entries, own, gitlinks)
        if news:
            listed = manifests.encode_skipped([*self._skipped(oid, own), *news])
            inner[layout.SKIPPED] = Entry(FILE, self._target.add(BLOB, listed))
        # No commit holds the tree of the files, so only its id is needed.
        tree = self._form.oid(TREE, trees.encode(files)) if files else None
        manifest = converted.manifest(
            self._read(own[layout.CHECKPOINT].oid, BLOB, _TREE_LIMIT),
            files=tree,
            skipped=len(news),
            of=self._source.form,
            named=self._name,
        )
        inner[layout.CHECKPOINT] = Entry(FILE, self._target.add(BLOB, manifest))
        if chunks is not None:
            inner[layout.CHUNKS] = chunks
        top = self._target.add(TREE, trees.encode(inner))
        root = {**files, layout.RESERVED: Entry(DIRECTORY, top)}
        return self._target.add(TREE, trees.encode(root))

    def _chunks(self, lists: Entry | None) -> Entry | None:
        """Converts the lists of chunked files; their names are ids of whole contents."""
        if lists is None:
            return None
        made = {}
        for path, entry in self._read_tree(lists.oid).items():
            name = ChunkedName.parse(path)
            if name is None or entry.mode != DIRECTORY:
                raise ValueError("a list of chunks without a name")
            if path not in self._chunked:
                self._chunked[path] = self._renamed(name, entry.oid)
            below = self._tree(entry.oid)
            if below is None:
                raise ValueError("an empty list of chunks")
            made[self._chunked[path]] = Entry(DIRECTORY, below)
        return Entry(DIRECTORY, self._target.add(TREE, trees.encode(made)))

    def _renamed(self, name: ChunkedName, root: bytes) -> bytes:
        """Returns the name of a chunked file in the other form, and converts its pointer."""
        before = self._source.form.hasher(BLOB, name.size)
        after = self._form.hasher(BLOB, name.size)
        left = name.size

        def read(oid: bytes) -> trees.Tree:
            raw = self._again(oid, TREE, _TREE_LIMIT)
            return trees.parse(raw, self._source.form.size)

        for chunk in chunked.read_list(root, read):
            for piece in self._source.stream(chunk):
                left -= len(piece)
                if left < 0:
                    raise ValueError("the chunks of a file are more than its size")
                before.update(piece)
                after.update(piece)
        if left or before.digest() != name.content:
            raise ValueError("the chunks of a file are not what its name says")
        new = ChunkedName(after.digest(), name.size)
        pointer = self._source.form.oid(BLOB, name.pointer)
        self._blobs[pointer] = self._target.add(BLOB, new.pointer)
        return new.path

    def _left_out(
        self, oid: bytes, entries: trees.Tree, own: trees.Tree, gitlinks: int
    ) -> list[Skipped]:
        """Returns the nested repositories that `skipped.jsonl` does not list yet.

        They are left out, because the ids of their commits in the other form are unknown.
        """
        if gitlinks > _GITLINKS:
            raise ValueError(f"it holds {gitlinks:,} nested repositories")
        if not gitlinks:
            return []
        listed = {path for path, _ in self._skipped(oid, own)}
        return [
            Skipped(path, _LEFT_OUT)
            for path in self._gitlinks(entries, b"")
            if path not in listed
        ]

    def _skipped(self, oid: bytes, own: trees.Tree) -> list[Skipped]:
        entry = own.get(layout.SKIPPED)
        if entry is None:
            return []
        raw = self._again(entry.oid, BLOB, _TREE_LIMIT)
        return list(manifests.decode_skipped(raw, f"the checkpoint in {oid.hex()}"))

    def _gitlinks(self, entries: trees.Tree, prefix: bytes) -> Iterator[bytes]:
        for name, entry in entries.items():
            if entry.mode == GITLINK:
                yield prefix + name
            elif entry.mode == DIRECTORY and self._trees[entry.oid].gitlinks:
                raw = self._again(entry.oid, TREE, _TREE_LIMIT)
                below = trees.parse(raw, self._source.form.size)
                yield from self._gitlinks(below, prefix + name + b"/")

    # --- trees and blobs -------------------------------------------------------------

    def _entries(
        self, entries: trees.Tree, depth: int, without: bytes | None = None
    ) -> tuple[dict[bytes, Entry], int]:
        made: dict[bytes, Entry] = {}
        gitlinks = 0
        for name, entry in entries.items():
            if entry.mode == GITLINK:
                gitlinks += 1
            elif entry.mode == DIRECTORY:
                if entry.oid not in self._trees:
                    inner = self._read_tree(entry.oid, depth + 1)
                    self._keep(entry.oid, *self._entries(inner, depth + 1))
                below = self._trees[entry.oid]
                gitlinks += below.gitlinks
                if below.oid is not None:
                    made[name] = Entry(DIRECTORY, below.oid)
            elif name != without:
                made[name] = Entry(entry.mode, self._blob(entry.oid))
        return made, gitlinks

    def _keep(self, oid: bytes, entries: trees.Tree, gitlinks: int) -> None:
        made = self._target.add(TREE, trees.encode(entries)) if entries else None
        self._trees[oid] = _Made(made, gitlinks)

    def _tree(self, oid: bytes) -> bytes | None:
        """Returns the converted tree, or None if nothing is left of it."""
        if oid not in self._trees:
            self._keep(oid, *self._entries(self._read_tree(oid), 0))
        return self._trees[oid].oid

    def _blob(self, oid: bytes) -> bytes:
        if oid not in self._blobs:
            _, size = self._source.header(oid)
            self._count(size)
            if size <= IN_MEMORY:
                made = self._target.add(BLOB, self._source.blob(oid))
            else:
                streamed = self._target.add_stream(size, self._source.stream(oid))
                if streamed is None:
                    raise ValueError(f"the file {oid.hex()} is not whole")
                made = streamed
            self._blobs[oid] = made
        return self._blobs[oid]

    def _read_tree(self, oid: bytes, depth: int = 0) -> dict[bytes, Entry]:
        if depth > safety.DEPTH_LIMIT:
            raise UnsafePathError("a directory is too deep", hint=_HINT)
        return trees.parse(self._read(oid, TREE, _TREE_LIMIT), self._source.form.size)

    def _read(self, oid: bytes, kind: str, limit: int) -> bytes:
        self._count(self._source.header(oid)[1])
        return self._again(oid, kind, limit)

    def _again(self, oid: bytes, kind: str, limit: int) -> bytes:
        """Reads an object that was counted before."""
        _, size = self._source.header(oid)
        if size > limit and self._bounds is not None:
            raise ValueError(f"the {kind} {oid.hex()} has {size:,} bytes")
        return self._source.read(oid, kind)

    def _count(self, size: int) -> None:
        """Counts an object that is about to be read.

        Raises:
            TransferError: the objects exceed the size limit.
        """
        self._objects += 1
        self._size += size
        if self._bounds is None:
            return
        if size > self._bounds.file:
            raise too_much(f"a file of {size:,} bytes", "pullMaxFile")
        if self._objects > self._bounds.objects:
            raise too_much(f"{self._objects:,} objects", "pullMaxObjects")
        if self._size > self._bounds.size:
            raise too_much(f"{self._size:,} bytes", "pullMaxSize")
