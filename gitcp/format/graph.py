"""The trailer of a commit that holds an event of a LangGraph thread (docs/format.md, 15)."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from gitcp.format.commit import Commit, trailer

TRAILER = "Graph"
PUT = "put"
WRITES = "writes"
_FIELDS = 5


class GraphKey(NamedTuple):
    """A checkpoint of a graph within its thread."""

    namespace: str
    ident: str


class EventHeader(NamedTuple):
    """The graph trailer of a commit: enough to know where it belongs."""

    kind: str
    key: GraphKey
    parent: str | None
    run: str | None

    def fits(self, event: Mapping[str, object]) -> bool:
        """Whether an event, the content of graph.json, is the one that this announces."""
        said = (self.kind, *self.key, self.parent)
        names = ("kind", "namespace", "checkpoint_id", "parent")
        return said == tuple(event.get(name) for name in names)


def encode_header(header: EventHeader) -> tuple[str, str]:
    """Returns the trailer of a commit."""
    words = (
        header.kind,
        header.key.namespace,
        header.key.ident,
        header.parent or "",
        header.run or "",
    )
    return TRAILER, ",".join(quote(word, safe="") for word in words)


def decode_header(commit: Commit) -> EventHeader | None:
    """Returns what a commit says, or None if it is not an event of a graph."""
    text = trailer(commit, TRAILER)
    if text is None:
        return None
    words = [unquote(word) for word in text.split(",")]
    if len(words) < _FIELDS or words[0] not in {PUT, WRITES}:
        return None
    kind, namespace, ident, parent, run = words[:_FIELDS]
    return EventHeader(kind, GraphKey(namespace, ident), parent or None, run or None)
