"""Git tree objects: parse, encode, edit, compare. Names are bytes throughout.

The functions that look below the root take a `read`, which returns a parsed tree by
its oid (raw bytes) and may cache, so that this module stays free of input and
output. Nothing here changes a tree that `read` returned.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from gitcp.format.oid import SHA1

FILE = 0o100644
EXECUTABLE = 0o100755
LINK = 0o120000
GITLINK = 0o160000
DIRECTORY = 0o040000


class Entry(NamedTuple):
    """Mode and oid (raw bytes) of one name in a tree."""

    mode: int
    oid: bytes


Tree = Mapping[bytes, Entry]
ReadTree = Callable[[bytes], Tree]
WriteTree = Callable[[Tree], bytes]
Changes = Mapping[bytes, Entry | None]


def parse(raw: bytes, size: int = SHA1.size) -> dict[bytes, Entry]:
    """Returns the entries of a raw tree object, in its order; oids are `size` bytes.

    Raises:
        ValueError: the bytes are not a tree, or name something twice.
    """
    entries: dict[bytes, Entry] = {}
    at = 0
    end = len(raw)
    while at < end:
        space = raw.index(b" ", at, at + 8)
        zero = raw.index(b"\0", space)
        name = raw[space + 1 : zero]
        stop = zero + 1 + size
        if stop > end or name in entries:
            raise ValueError("truncated or ambiguous tree")
        entries[name] = Entry(int(raw[at:space], 8), raw[zero + 1 : stop])
        at = stop
    return entries


def encode(entries: Mapping[bytes, Entry]) -> bytes:
    """Returns the raw tree object, in git's order."""
    ordered = sorted(
        entries.items(),
        key=lambda item: item[0] + b"/" if item[1].mode == DIRECTORY else item[0],
    )
    return b"".join(
        b"%o %b\0%b" % (entry.mode, name, entry.oid) for name, entry in ordered
    )


def edit(
    base: bytes | None, changes: Changes, read: ReadTree, write: WriteTree
) -> bytes | None:
    """Returns the oid of `base` with `changes` applied, or None if nothing is left.

    `changes` maps paths to their new entry, or to None if they are to go. Only
    trees on the way to a change are read and written. A path may replace a
    directory and the other way round; where both `a` and `a/b` are set, the deeper
    one wins.
    """
    entries = dict(read(base)) if base is not None else {}
    below: dict[bytes, dict[bytes, Entry | None]] = {}
    for path, entry in changes.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            below.setdefault(name, {})[rest] = entry
        elif entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry
    for name, inner in below.items():
        old = entries.get(name)
        is_tree = old is not None and old.mode == DIRECTORY
        if not is_tree and all(entry is None for entry in inner.values()):
            continue
        oid = edit(old.oid if old and is_tree else None, inner, read, write)
        if oid is None:
            entries.pop(name, None)
        else:
            entries[name] = Entry(DIRECTORY, oid)
    if base is not None and entries == read(base):
        return base
    return write(entries) if entries else None


def lookup(root: bytes | None, path: bytes, read: ReadTree) -> Entry | None:
    """Returns the entry at a path, or None."""
    if root is None:
        return None
    if not path:
        return Entry(DIRECTORY, root)
    oid = root
    *parents, name = path.split(b"/")
    for parent in parents:
        entry = read(oid).get(parent)
        if entry is None or entry.mode != DIRECTORY:
            return None
        oid = entry.oid
    return read(oid).get(name)


def walk(
    root: bytes | None, read: ReadTree, prefix: bytes = b""
) -> Iterator[tuple[bytes, Entry]]:
    """Yields every path that is not a directory, with its entry."""
    if root is None:
        return
    for name, entry in read(root).items():
        path = prefix + name
        if entry.mode == DIRECTORY:
            yield from walk(entry.oid, read, path + b"/")
        else:
            yield path, entry


def below(root: bytes, read: ReadTree) -> set[bytes]:
    """Returns the oids of a tree and of all that it holds, other repositories excepted."""
    found, waiting = {root}, [root]
    while waiting:
        for entry in read(waiting.pop()).values():
            if entry.mode == DIRECTORY and entry.oid not in found:
                waiting.append(entry.oid)
            if entry.mode != GITLINK:
                found.add(entry.oid)
    return found


def count(root: bytes, read: ReadTree) -> int:
    """Returns how many paths a tree holds that are no directories."""
    found, waiting = 0, [root]
    while waiting:
        entries = read(waiting.pop()).values()
        below = [entry.oid for entry in entries if entry.mode == DIRECTORY]
        found += len(entries) - len(below)
        waiting += below
    return found


class Change(NamedTuple):
    """One path that differs between two trees; None if it is absent."""

    path: bytes
    old: Entry | None
    new: Entry | None

    @property
    def status(self) -> str:
        """`added`, `deleted` or `modified`."""
        if self.old is None:
            return "added"
        return "deleted" if self.new is None else "modified"


def diff(
    old: bytes | None, new: bytes | None, read: ReadTree, prefix: bytes = b""
) -> Iterator[Change]:
    """Yields the paths that differ, reading only the trees that do."""
    if old == new:
        return
    before: Tree = read(old) if old is not None else {}
    after: Tree = read(new) if new is not None else {}
    for name in sorted(before.keys() | after.keys()):
        one, two = before.get(name), after.get(name)
        if one == two:
            continue
        path = prefix + name
        one_tree = one.oid if one and one.mode == DIRECTORY else None
        two_tree = two.oid if two and two.mode == DIRECTORY else None
        one_leaf = one if one_tree is None else None
        two_leaf = two if two_tree is None else None
        if one_leaf or two_leaf:
            yield Change(path, one_leaf, two_leaf)
        if one_tree or two_tree:
            yield from diff(one_tree, two_tree, read, path + b"/")
