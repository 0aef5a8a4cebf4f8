"""Stores the objects that a root tree needs and that no reliable tree holds (I4)."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from gitcp.errors import CorruptError
from gitcp.format import layout
from gitcp.format import tree as trees
from gitcp.format.tree import ReadTree
from gitcp.git.objects import BLOB, IN_MEMORY, TREE, Objects
from gitcp.git.pack import PackWriter

_CHUNKS = layout.RESERVED + b"/" + layout.CHUNKS


class Stored(Protocol):
    """The objects that a transaction has stored already."""

    def __contains__(self, oid: bytes, /) -> bool: ...


class Completion:
    """Adds missing objects to a pack; `stored` are those that the transaction has already."""

    def __init__(
        self,
        tree: ReadTree,
        objects: Objects,
        pack: PackWriter,
        stored: Stored,
    ) -> None:
        self._tree = tree
        self._objects = objects
        self._pack = pack
        self._stored = stored
        # The tree of the lists of chunked files, which is done by itself.
        self._lists: bytes | None = None

    def add(self, root: bytes, bases: Iterable[bytes | None]) -> None:
        """Adds what `root` needs and no base holds at the same path.

        Raises:
            CorruptError: something that `root` needs is nowhere.
        """
        there = [base for base in bases if base is not None]
        self._complete_chunks(root, there)
        self._complete(root, self._readable(there))

    def _readable(self, oids: Iterable[bytes]) -> list[trees.Tree]:
        found = []
        for oid in oids:
            with suppress(CorruptError):
                found.append(self._objects.tree(oid))
        return found

    def _complete(self, root: bytes, bases: list[trees.Tree]) -> None:
        tree = self._tree(root)
        if root not in self._stored:
            self._pack.add(TREE, trees.encode(tree), root)
        for name, entry in tree.items():
            others = [base.get(name) for base in bases]
            if entry in others or entry.mode == trees.GITLINK:
                continue
            if entry.mode == trees.DIRECTORY:
                if entry.oid == self._lists:
                    continue
                below = self._readable(
                    other.oid
                    for other in others
                    if other and other.mode == trees.DIRECTORY
                )
                self._complete(entry.oid, below)
            elif entry.oid not in self._stored and not any(
                other and other.oid == entry.oid for other in others
            ):
                self._copy(entry.oid)

    def _complete_chunks(self, root: bytes, bases: Iterable[bytes]) -> None:
        """Completes the lists of chunked files.

        Inserting into a file moves all later chunks to other paths. So a chunk counts
        as stored if a base holds it anywhere in its lists.
        """
        lists = trees.lookup(root, _CHUNKS, self._tree)
        if lists is None:
            return
        self._lists = lists.oid
        held: set[bytes] = set()
        for base in bases:
            with suppress(CorruptError):
                other = trees.lookup(base, _CHUNKS, self._objects.tree)
                if other is not None:
                    self._reach(other.oid, held)
        if lists.oid not in held:
            self._add_lists(lists.oid, held)

    def _reach(self, oid: bytes, held: set[bytes]) -> None:
        held.add(oid)
        for entry in self._objects.tree(oid).values():
            if entry.oid not in held:
                if entry.mode == trees.DIRECTORY:
                    self._reach(entry.oid, held)
                held.add(entry.oid)

    def _add_lists(self, oid: bytes, held: set[bytes]) -> None:
        tree = self._tree(oid)
        if oid not in self._stored:
            self._pack.add(TREE, trees.encode(tree), oid)
        for entry in tree.values():
            if entry.oid in held:
                continue
            if entry.mode == trees.DIRECTORY:
                self._add_lists(entry.oid, held)
            elif entry.oid not in self._stored:
                self._copy(entry.oid)

    def _copy(self, oid: bytes) -> None:
        _, size = self._objects.header(oid)
        if size <= IN_MEMORY:
            self._pack.add(BLOB, self._objects.blob(oid), oid)
        else:
            self._pack.add_stream(size, self._objects.stream(oid))
