"""Pairs a branch's checkpoints with their encrypted commits."""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from gitcp.format import encrypted, layout, tree
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.git.objects import TREE, Objects

_KEPT = 2000

Add = Callable[[str, bytes], bytes]


class Trees:
    """Writes trees, and reads them again for the next checkpoint of a line.

    `add` adds an object, `flush` makes added objects readable in `objects`.
    """

    def __init__(self, objects: Objects, add: Add, flush: Callable[[], None]) -> None:
        self._objects = objects
        self._add = add
        self._flush = flush
        self._recent: OrderedDict[bytes, tree.Tree] = OrderedDict()
        self._written: set[bytes] = set()

    def write(self, entries: tree.Tree) -> bytes:
        """Adds a tree and returns its oid."""
        oid = self._add(TREE, tree.encode(entries))
        self._written.add(oid)
        self._recent[oid] = entries
        if len(self._recent) > _KEPT:
            self._recent.popitem(last=False)
        return oid

    def read(self, oid: bytes) -> tree.Tree:
        """Returns a tree, of this transaction or of the repository.

        Raises:
            CorruptError: no repository holds the tree.
        """
        found = self._recent.get(oid)
        if found is not None:
            self._recent.move_to_end(oid)
            return found
        if oid in self._written:
            self._flush()
            self._written.clear()
        return self._objects.tree(oid)


class Held(NamedTuple):
    """A file of `.gitcp`: its path, its blob, and the blob of its record."""

    path: bytes
    blob: bytes
    record: bytes


class Pair:
    """A checkpoint and its encrypted commit, the base of the next pair.

    `records` are the files with a record of their own, by the name of the record; `inline`
    those in the head, by path. Both change along the line.
    """

    def __init__(self, session: str) -> None:
        self.session = session
        self.own: bytes | None = None
        self.form: bytes | None = None
        self.records: dict[bytes, Held] = {}
        self.inline: dict[bytes, bytes] = {}

    @classmethod
    def of(cls, session: str, plain: bytes, form: bytes, trees: Trees) -> "Pair":
        """Returns the pair of two root trees."""
        pair = cls(session)
        pair.own = below(plain, b"", trees.read)
        pair.form = below(form, encrypted.DIRECTORY, trees.read)
        there = dict(tree.walk(pair.form, trees.read))
        for path, entry in tree.walk(pair.own, trees.read):
            name = encrypted.record_name(path)
            record = there.get(name)
            if record is None:
                pair.inline[path] = entry.oid
            else:
                pair.records[name] = Held(path, entry.oid, record.oid)
        return pair


def below(root: bytes, path: bytes, read: tree.ReadTree) -> bytes | None:
    """Returns the tree at a path below `.gitcp` of a root tree, or None."""
    whole = layout.RESERVED + b"/" + path if path else layout.RESERVED
    entry = tree.lookup(root, whole, read)
    return entry.oid if entry is not None and entry.mode == DIRECTORY else None


def with_own(root: tree.Tree, own: bytes | None) -> dict[bytes, Entry]:
    """Returns the entries of a root tree with another `.gitcp`."""
    entries = {name: one for name, one in root.items() if name != layout.RESERVED}
    if own is not None:
        entries[layout.RESERVED] = Entry(DIRECTORY, own)
    return entries


def would_be(
    base: bytes | None,
    changes: tree.Changes,
    read: tree.ReadTree,
    form: ObjectFormat,
) -> bytes | None:
    """Returns the oid that a tree would have with changes; writes nothing."""
    return tree.edit(
        base, changes, read, lambda entries: form.oid(TREE, tree.encode(entries))
    )


def file(oid: bytes) -> Entry:
    """Returns the entry of a plain file."""
    return Entry(FILE, oid)
