"""Measures how much a tree holds, without walking it.

A tree may name another one many times, and that one a third: a few of them stand for
more paths than can be listed. Each is read once here, however often it occurs.
"""

from collections.abc import Callable
from typing import NamedTuple

from gitcp.format import safety
from gitcp.format.tree import DIRECTORY, GITLINK, Entry, ReadTree, Tree

# Returns the size of a blob in bytes.
SizeOf = Callable[[bytes], int]


class Extent(NamedTuple):
    """Paths, directories among them, and the bytes of all files."""

    paths: int = 0
    size: int = 0

    def within(self, limit: "Extent") -> bool:
        """Whether it is no more than a limit, in both."""
        return self.paths <= limit.paths and self.size <= limit.size

    def plus(self, other: "Extent") -> "Extent":
        """Returns both together."""
        return Extent(self.paths + other.paths, self.size + other.size)


class Extents:
    """Adds up trees, and remembers what each came to."""

    def __init__(self, read: ReadTree, size_of: SizeOf) -> None:
        self._read = read
        self._size_of = size_of
        self._known: dict[bytes, Extent] = {}

    def of(self, root: bytes | None, depth: int = 0) -> Extent:
        """Returns what a tree holds.

        Raises:
            ValueError: the tree is deeper than any tree may be.
        """
        if root is None:
            return Extent()
        extent = self._known.get(root)
        if extent is None:
            extent = Extent()
            for entry in self._entries(root, depth).values():
                extent = extent.plus(self._alone(entry))
                if entry.mode == DIRECTORY:
                    extent = extent.plus(self.of(entry.oid, depth + 1))
            self._known[root] = extent
        return extent

    def beyond(self, root: bytes | None, base: bytes | None, depth: int = 0) -> Extent:
        """Returns what a tree holds that another does not hold at the same place.

        What both have is not read. `base` is walked without limits, so it has to be made here.

        Raises:
            ValueError: the tree is deeper than any tree may be.
        """
        if root is None or root == base:
            return Extent()
        if base is None:
            return self.of(root, depth)
        before = self._read(base)
        extent = Extent()
        for name, entry in self._entries(root, depth).items():
            old = before.get(name)
            if entry == old:
                continue
            extent = extent.plus(self._alone(entry))
            if entry.mode == DIRECTORY:
                held = old.oid if old and old.mode == DIRECTORY else None
                extent = extent.plus(self.beyond(entry.oid, held, depth + 1))
        return extent

    def _entries(self, oid: bytes, depth: int) -> Tree:
        if depth > safety.DEPTH_LIMIT:
            raise ValueError(f"a directory is deeper than {safety.DEPTH_LIMIT}")
        return self._read(oid)

    def _alone(self, entry: Entry) -> Extent:
        is_file = entry.mode not in {DIRECTORY, GITLINK}
        return Extent(1, self._size_of(entry.oid) if is_file else 0)


def held(extent: Extent, limit: Extent) -> str:
    """Returns what is too much about an extent, and the setting that limits it."""
    if extent.paths > limit.paths:
        return (
            f"holds {_number(extent.paths)} paths that HEAD does not, more than"
            f" gitcp.pullMaxObjects ({limit.paths:,}) allows"
        )
    return (
        f"holds {_number(extent.size)} bytes that HEAD does not, more than"
        f" gitcp.pullMaxSize ({limit.size:,}) allows"
    )


def _number(value: int) -> str:
    # A tree of many levels comes to a number that fills the screen.
    return f"{value:,}" if value < 10**18 else "over 10^18"
