"""The index of a thread's events, built from its commits alone (docs/format.md, 15)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from gitcp.format.commit import Commit, trailers_of
from gitcp.format.graph import PUT, EventHeader, GraphKey, decode_header

ROOT = ""


@dataclass(slots=True)
class IndexedBranch:
    """A branch: its tip, and the root checkpoint that its next one follows."""

    branch: str
    tip: bytes
    seq: int
    head: str | None


@dataclass(frozen=True, slots=True)
class IndexedCheckpoint:
    """A checkpoint of the graph: the commit that holds it, and its branch."""

    oid: bytes
    parent: str | None
    run: str | None
    branch: str


class IndexedCommit(NamedTuple):
    """The input for indexing one commit; `own` is the branch that it was made for."""

    oid: bytes
    parent: bytes | None
    branch: str
    own: str
    seq: int
    header: EventHeader | None


_VERSION = 1
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[int, list[IndexedCommit]])


@dataclass(slots=True)
class Index:
    """Checkpoints, writes and lines of one thread. Branches are ref components."""

    lines: dict[str, IndexedBranch] = field(default_factory=dict)
    nodes: dict[GraphKey, IndexedCheckpoint] = field(default_factory=dict)
    writes: dict[GraphKey, list[bytes]] = field(default_factory=dict)
    # Where a fork of a root checkpoint begins: its commit, or its last writes.
    starts: dict[str, bytes] = field(default_factory=dict)
    # The branch that writes were made for, and their number there.
    _places: dict[bytes, tuple[str, int]] = field(default_factory=dict)
    last: str | None = None
    _latest: dict[str, str] = field(default_factory=dict)
    # The root checkpoint that was the newest one at each commit.
    _heads: dict[bytes, str | None] = field(default_factory=dict)
    _applied: "list[IndexedCommit]" = field(default_factory=list)

    def __contains__(self, oid: bytes) -> bool:
        return oid in self._heads

    def apply(self, oid: bytes, commit: Commit, branch: str | None = None) -> None:
        """Indexes a commit whose parent is indexed.

        `branch` is the ref component of the line it extends; the commit's own where
        None.
        """
        trailers = trailers_of(commit)
        assert trailers is not None
        parent = commit.parents[0] if commit.parents else None
        header = decode_header(commit)
        own = trailers.branch
        self._apply(
            IndexedCommit(oid, parent, branch or own, own, trailers.seq, header)
        )

    def _apply(self, entry: "IndexedCommit") -> None:
        head = self._heads.get(entry.parent) if entry.parent is not None else None
        if entry.header is not None:
            head = self._take(entry, entry.header, head)
        self._heads[entry.oid] = head
        self.lines[entry.branch] = IndexedBranch(
            entry.branch, entry.oid, entry.seq, head
        )
        self.last = entry.branch
        self._applied.append(entry)

    # --- kept between processes -----------------------------------------------------

    def __len__(self) -> int:
        return len(self._applied)

    def dump(self) -> bytes:
        """Returns the index as bytes, for `load`."""
        return _ENCODER.encode((_VERSION, self._applied))

    @classmethod
    def load(cls, raw: bytes) -> "Index | None":
        """Returns an index that `dump` wrote; None if `data` is not an index."""
        index = cls()
        try:
            version, applied = _DECODER.decode(raw)
        except (msgspec.MsgspecError, UnicodeError):
            return None
        if version != _VERSION:
            return None
        for entry in applied:
            index._apply(entry)
        return index

    def place(self, name: str, tip: bytes, commit: Commit) -> None:
        """Notes a branch whose tip has been taken in with another one."""
        trailers = trailers_of(commit)
        assert trailers is not None
        self.lines[name] = IndexedBranch(name, tip, trailers.seq, self._heads[tip])

    def _take(
        self, entry: "IndexedCommit", header: EventHeader, head: str | None
    ) -> str | None:
        key = header.key
        if header.kind == PUT:
            self.nodes[key] = IndexedCheckpoint(
                entry.oid, header.parent, header.run, entry.own
            )
            newest = self._latest.get(key.namespace)
            if newest is None or key.ident > newest:
                self._latest[key.namespace] = key.ident
            if key.namespace == ROOT:
                head = key.ident
        else:
            self._add_writes(key, entry)
        if key.namespace == ROOT and key.ident == head:
            self.starts[head] = entry.oid
        return head

    def _add_writes(self, key: GraphKey, entry: "IndexedCommit") -> None:
        """Adds writes after those that were before them on their branch.

        Old ones that come again, below another commit, must not replace newer ones.
        """
        known = self.writes.setdefault(key, [])
        at = len(known)
        while at:
            branch, seq = self._places[known[at - 1]]
            if branch != entry.own or seq <= entry.seq:
                break
            at -= 1
        known.insert(at, entry.oid)
        self._places[entry.oid] = entry.own, entry.seq

    def latest(self, namespace: str) -> GraphKey | None:
        """Returns the checkpoint with the greatest id of a namespace."""
        ident = self._latest.get(namespace)
        return GraphKey(namespace, ident) if ident is not None else None

    def keys(self, namespace: str | None) -> Iterator[GraphKey]:
        """Yields the checkpoints of a namespace, or of all, greatest id first."""
        keys = (
            key for key in self.nodes if namespace is None or key.namespace == namespace
        )
        yield from sorted(keys, key=lambda key: key.ident, reverse=True)

    def parent_of(self, key: GraphKey) -> str | None:
        """Returns the checkpoint before one; None if it begins, or parents go round.

        Parents are what the caller of `put`, or a stranger, wrote. A circle of them has
        a checkpoint whose parent is not older by its id: it is cut there.
        """
        node = self.nodes[key]
        if node.parent is None or node.parent < key.ident:
            return node.parent
        seen = set[str]()
        at: str | None = node.parent
        while at is not None and at not in seen:
            if at == key.ident:
                return None
            seen.add(at)
            above = self.nodes.get(GraphKey(key.namespace, at))
            at = above.parent if above is not None else None
        return node.parent

    # --- where an event goes ---------------------------------------------------------

    def line_of_put(
        self, header: EventHeader, root: str | None
    ) -> tuple[str | None, bytes | None]:
        """Returns the line a checkpoint extends; None, and the fork's start, if none.

        `root` is the root checkpoint that one of a subgraph belongs to.
        """
        if not self.lines:
            return None, None
        known = self.nodes.get(header.key)
        if known is not None and known.branch in self.lines:
            return known.branch, None
        if header.key.namespace != ROOT:
            return self._with_head(root) or self._recent(), None
        line = self._with_head(header.parent)
        if line is not None:
            return line, None
        if header.parent is not None:
            return None, self.starts.get(header.parent)
        return None, None

    def line_of_writes(self, key: GraphKey) -> str | None:
        """Returns the line that pending writes extend."""
        if not self.lines:
            return None
        if key.namespace == ROOT and (name := self._with_head(key.ident)):
            return name
        known = self.nodes.get(key)
        if known is not None and known.branch in self.lines:
            return known.branch
        return self._recent()

    def _with_head(self, head: str | None) -> str | None:
        names = [name for name, line in self.lines.items() if line.head == head]
        return min(names, key=lambda name: (name != "main", name)) if names else None

    def _recent(self) -> str:
        if self.last in self.lines:
            return self.last
        return min(self.lines, key=lambda name: (name != "main", name))
