"""Finds the chats that Gemini CLI keeps of a project."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gitcp.clients import records
from gitcp.clients.client import ClientPlaces
from gitcp.clients.history import Kept, Leave, digest, files, head


class _Header(msgspec.Struct):
    sessionId: Any = None  # noqa: N815  the client's spelling
    projectHash: Any = None  # noqa: N815
    kind: Any = None


_HEADER = msgspec.json.Decoder(_Header)


def find(places: ClientPlaces, roots: Sequence[Path], leave: Leave) -> Iterator[Kept]:
    """Yields the newest file of each chat: a client that resumes a chat writes a new file."""
    projects = {digest(root) for root in roots}
    newest: dict[str, Kept] = {}
    folder = places.home / ".gemini" / "tmp"
    for path, status in files(folder, "*/chats/session-*.jsonl", leave):
        first = next(records.lines(head(path)), b"")
        header = records.decode_or(_HEADER, first, _Header())
        if header.projectHash not in projects or header.kind == "subagent":
            continue
        if isinstance(header.sessionId, str) and header.sessionId:
            kept = Kept(header.sessionId, path, status.st_mtime, status.st_size)
            other = newest.get(kept.session)
            if other is None or other.changed <= kept.changed:
                newest[kept.session] = kept
    yield from newest.values()
