"""Tells which records of a Claude Code transcript still count after a rewind.

Each record names the record before it. If a user goes back to an earlier prompt, a record
gets a second successor; the client continues from the newest, and the turns between stay in
the file. Tool calls that run at the same time branch in the same way, so gitcp leaves out
whole turns and never single records.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from gitcp.clients import records


class _Link(msgspec.Struct):
    """The fields that give a record its place in the chain; each may hold any JSON."""

    uuid: Any = None
    parentUuid: Any = msgspec.UNSET  # noqa: N815  the client's spelling
    logicalParentUuid: Any = None  # noqa: N815
    type: Any = None
    isMeta: Any = None  # noqa: N815
    isSidechain: Any = None  # noqa: N815
    isCompactSummary: Any = None  # noqa: N815
    message: msgspec.Raw = msgspec.Raw(b"null")


class _Node(NamedTuple):
    """A record on the chain: its id, the record before it, and whether it is a prompt.

    A record that `begins` follows nothing.
    """

    ident: str
    parent: str | None
    asks: bool
    begins: bool


_LINK = msgspec.json.Decoder(_Link)
_NOTHING = _Link()


def active(content: bytes) -> bytes:
    """Returns a transcript without the turns that the user rewound."""
    lines = list(records.lines(content))
    nodes = [_node(records.decode_or(_LINK, line, _NOTHING)) for line in lines]
    placed = [node for node in nodes if node is not None]
    standing = _standing(placed)
    owners = _owners(placed)
    gone = {
        node.ident
        for node in placed
        if (owner := owners[node.ident]) is not None and owner not in standing
    }
    if not gone:
        return content
    return b"".join(
        line + b"\n"
        for line, node in zip(lines, nodes, strict=True)
        if node is None or node.ident not in gone
    )


def _node(link: _Link) -> _Node | None:
    """Returns a record's place in the chain; None if it has none, or is a subagent's."""
    if not isinstance(link.uuid, str) or link.isSidechain is True:
        return None
    asks = (
        link.type == "user"
        and link.isMeta is not True
        and link.isCompactSummary is not True
        and b'"tool_use_id"' not in bytes(link.message)
    )
    parent = link.parentUuid
    if not isinstance(parent, str):
        # A compaction begins a new chain, and names the record that it replaces.
        parent = link.logicalParentUuid
    # Old or foreign transcripts name no parents at all: their records are a plain list.
    begins = asks and link.parentUuid is None
    return _Node(link.uuid, parent if isinstance(parent, str) else None, asks, begins)


def _standing(nodes: Sequence[_Node]) -> set[str]:
    """Returns the ids on the chain that ends with the newest record."""
    places = {node.ident: at for at, node in enumerate(nodes)}
    seen: set[str] = set()
    at = len(nodes) - 1
    while at >= 0 and nodes[at].ident not in seen:
        node = nodes[at]
        seen.add(node.ident)
        if node.begins:
            break
        known = places.get(node.parent) if node.parent is not None else None
        at = at - 1 if known is None else known
    return seen


def _owners(nodes: Sequence[_Node]) -> dict[str, str | None]:
    """Returns the prompt of each record's turn."""
    owners: dict[str, str | None] = {}
    last: str | None = None
    for node in nodes:
        if node.asks:
            last = node.ident
        elif node.parent is not None:
            last = owners.get(node.parent, last)
        owners[node.ident] = last
    return owners
