"""Checks that parents in a LangGraph thread do not form a cycle."""

from collections.abc import Iterator
from typing import NamedTuple

from gitcp.format.graph import PUT, GraphKey, decode_header
from gitcp.store.checkpoint import Checkpoint


class _Held(NamedTuple):
    checkpoint: str
    parent: str | None


class Parents:
    """The parents that the checkpoints of all threads name, by session."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[GraphKey, _Held]] = {}

    def note(self, found: Checkpoint) -> None:
        """Adds a commit, if it is a checkpoint of a graph."""
        said = decode_header(found.raw)
        if said is not None and said.kind == PUT:
            thread = self._sessions.setdefault(found.trailers.session, {})
            thread[said.key] = _Held(found.id, said.parent)

    def circles(self) -> Iterator[tuple[str, str]]:
        """Yields, for each cycle of parents, a checkpoint in it and what is wrong."""
        for thread in self._sessions.values():
            ended: set[GraphKey] = set()
            for start in thread:
                way: dict[GraphKey, None] = {}
                at: GraphKey | None = start
                while at is not None and at in thread and at not in ended:
                    if at in way:
                        what = f"the parents of {at.ident} lead back to it"
                        yield thread[at].checkpoint, f"{what}; readers stop there"
                        break
                    way[at] = None
                    parent = thread[at].parent
                    at = GraphKey(at.namespace, parent) if parent is not None else None
                ended |= way.keys()
