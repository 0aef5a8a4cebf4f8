"""The order in which git looks for deltas between chunks."""

from __future__ import annotations

from gitcp.format.chunked import ChunkedName, write_list
from gitcp.format.tree import DIRECTORY, Entry, Tree
from gitcp.git.delta_order import named


class _Commit:
    def __init__(self, tree: bytes) -> None:
        self.tree = tree


class Stored:
    """Commits and trees by made-up ids, as `Objects` reads them."""

    def __init__(self) -> None:
        self._trees: dict[bytes, Tree] = {}
        self._roots: dict[bytes, bytes] = {}
        self.lines: list[bytes] = []

    def write(self, tree: Tree) -> bytes:
        oid = b"t%019d" % len(self._trees)
        self._trees[oid] = dict(tree)
        return oid

    def add(self, *chunks: str) -> None:
        """Adds a commit with one chunked file, newest first as git lists them."""
        oids = [chunk.encode().ljust(20, b"-") for chunk in chunks]
        name = ChunkedName(b"c%019d" % len(self._roots), len(chunks))
        root = self.write({})
        for path in (name.path, b"chunks", b".gitcp"):
            inner = write_list(oids, self.write) if path == name.path else root
            root = self.write({path: Entry(DIRECTORY, inner)})
        commit = b"k%019d" % len(self._roots)
        self._roots[commit] = root
        added = [b"%b %b\n" % (oid.hex().encode(), b"some/path") for oid in oids]
        self.lines = [commit.hex().encode() + b"\n", *added, *self.lines]

    def tree(self, oid: bytes) -> Tree:
        return self._trees[oid]

    def commit(self, oid: bytes) -> _Commit:
        return _Commit(self._roots[oid])


def git_hash(path: bytes) -> int:
    """git's `pack_name_hash`."""
    found = 0
    for char in path:
        found = ((found >> 2) + (char << 24)) & 0xFFFFFFFF
    return found


def order(stored: Stored) -> list[str]:
    """The chunks in the order in which git compares them."""
    paths = {}
    for line in named(stored, stored.lines):  # type: ignore[arg-type]
        oid, _, path = line.rstrip(b"\n").partition(b" ")
        if path:
            chunk = bytes.fromhex(oid.decode()).rstrip(b"-").decode()
            paths[chunk] = git_hash(path)
    assert len(set(paths.values())) == len(paths)
    return sorted(paths, key=paths.__getitem__)


def test_a_changed_chunk_stands_beside_what_it_was():
    stored = Stored()
    stored.add("a", "b", "c", "d")
    stored.add("a", "B", "c", "d")
    stored.add("a", "B", "c", "D")
    found = order(stored)
    assert {found.index("b"), found.index("B")} == {1, 2}
    assert {found.index("d"), found.index("D")} == {4, 5}


def test_what_is_put_in_moves_nothing_away_from_its_likes():
    stored = Stored()
    stored.add("a", "b", "c", "d")
    stored.add("a", "1", "2", "3", "b", "c", "e", "d")
    stored.add("a", "1", "2", "3", "b", "C", "E", "d", "f")
    found = order(stored)
    assert found.index("a") < found.index("2") < found.index("b") < found.index("c")
    assert abs(found.index("c") - found.index("C")) <= 2
    assert found.index("f") > found.index("d")


def test_many_chunks_keep_their_order():
    stored = Stored()
    stored.add(*(f"n{number}" for number in range(2_000)))
    assert order(stored) == [f"n{number}" for number in range(2_000)]


def test_another_file_stands_apart():
    stored = Stored()
    stored.add("a", "b")
    stored.add("x", "y")
    assert order(stored) == ["a", "b", "x", "y"]
