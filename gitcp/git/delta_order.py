"""Puts chunks of large files into the order in which git finds deltas between them.

git looks for a delta among objects with similar paths. A chunk's path is its number in its
list, and an inserted chunk changes the numbers of all later ones: similar chunks get
different paths, and git misses nearly all of them. So gitcp gives `pack-objects` an
invented path for each chunk. These paths sort like the positions in the file, and a new
chunk sorts between its neighbours' positions in earlier versions.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from gitcp.errors import CorruptError
from gitcp.format import layout
from gitcp.format.chunked import ChunkedName
from gitcp.format.tree import DIRECTORY, lookup
from gitcp.git.objects import Objects

_LISTS = layout.RESERVED + b"/" + layout.CHUNKS
# git sorts paths by a hash that adds a character's code times 2**24, and a quarter of that for
# each character behind it. Of 13 digits to the base of 4, the last the highest, it is the number.
_DIGITS = 13
_BASE = 4
# Chunks of unrelated files get distant positions.
_APART = 1000.0


class _Group(NamedTuple):
    """The positions of the first and the last chunk of a group."""

    first: float
    last: float


class _Places:
    """The position of each chunk among those of all versions of a file."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._groups: dict[bytes, _Group] = {}
        self._end = 0.0
        self.of: dict[bytes, float] = {}

    def add(self, chunks: bytes) -> None:
        """Adds the chunks in one list, whose tree is given."""
        groups = self._objects.tree(chunks)
        oids = [entry.oid for _, entry in sorted(groups.items())]
        if self._is_new(oids):
            self._end += _APART
        waiting: list[bytes] = []
        before: float | None = None
        parts: dict[bytes, list[bytes]] = {}
        for group in oids:
            known = self._groups.get(group)
            if known is not None:
                self._between(before, known.first, waiting)
                waiting, before = [], known.last
                continue
            parts[group] = list(self._chunks(group))
            for oid in parts[group]:
                place = self.of.get(oid)
                if place is None:
                    waiting.append(oid)
                else:
                    self._between(before, place, waiting)
                    waiting, before = [], place
        self._between(before, None, waiting)
        for group, members in parts.items():
            if members:
                first, last = self.of[members[0]], self.of[members[-1]]
                self._groups[group] = _Group(first, last)

    def _is_new(self, groups: Sequence[bytes]) -> bool:
        if not self._groups.keys().isdisjoint(groups):
            return False
        return all(
            oid not in self.of for group in groups for oid in self._chunks(group)
        )

    def _chunks(self, group: bytes) -> Iterator[bytes]:
        for _, entry in sorted(self._objects.tree(group).items()):
            yield entry.oid

    def _between(
        self, before: float | None, after: float | None, new: Sequence[bytes]
    ) -> None:
        """Gives chunks positions between two others, or beyond the first or last one."""
        count = len(new) + 1
        if after is not None and before is None:
            before = after - count
        elif before is None:
            before = self._end
        # A chunk that was moved stands where it was: what follows it goes behind.
        room = count if after is None or after <= before else after - before
        for number, oid in enumerate(new, 1):
            place = before + room * number / count
            self.of.setdefault(oid, place)
            self._end = max(self._end, place)


def named(objects: Objects, lines: Sequence[bytes]) -> list[bytes]:
    """Returns lines for `pack-objects`, with paths by which it finds deltas of chunks.

    `lines` are those of `git rev-list --objects`, newest commits first. Without chunked
    files they stay as they are.
    """
    places = _Places(objects)
    seen: set[bytes] = set()
    # Of what rev-list prints, commits alone have no path, not even an empty one.
    for line in reversed([one for one in lines if b" " not in one]):
        # Missing or damaged objects cost only space.
        with suppress(CorruptError):
            root = objects.commit(bytes.fromhex(line.decode("ascii"))).tree
            entry = lookup(root, _LISTS, objects.tree)
            if entry is None or entry.mode != DIRECTORY or entry.oid in seen:
                continue
            seen.add(entry.oid)
            for name, inner in objects.tree(entry.oid).items():
                if ChunkedName.parse(name) is not None and inner.oid not in seen:
                    seen.add(inner.oid)
                    places.add(inner.oid)
    if not places.of:
        return list(lines)
    ordered = sorted(places.of, key=places.of.__getitem__)
    ranks = {oid.hex().encode(): _path(rank) for rank, oid in enumerate(ordered)}
    found = []
    for line in lines:
        oid = line.split(maxsplit=1)[0]
        path = ranks.get(oid)
        found.append(line if path is None else oid + b" " + path + b"\n")
    return found


def _path(rank: int) -> bytes:
    digits = bytearray()
    for _ in range(_DIGITS):
        rank, digit = divmod(rank, _BASE)
        digits += b"%d" % digit
    return bytes(digits)
