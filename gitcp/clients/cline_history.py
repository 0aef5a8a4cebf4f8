"""Finds the sessions that Cline CLI keeps of a project."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gitcp.clients import known, rows
from gitcp.clients.client import ClientPlaces, Event
from gitcp.clients.cline_sessions import CONVERSATIONS, sessions
from gitcp.clients.history import Kept, Leave, files, head, is_within


def find(places: ClientPlaces, roots: Sequence[Path], leave: Leave) -> Iterator[Kept]:
    """Yields the sessions of a project; the folder's name is the id."""
    folder = sessions(rows.TABLE["cline"].folder(places), places.environment)
    for path, status in files(folder, "*/*.messages.json", leave):
        session = path.parent.name
        # The files of a session's subagents lie beside it.
        if path.name != f"{session}.messages.json":
            continue
        about: dict[str, Any] = known.one(head(path.with_name(f"{session}.json"))) or {}
        directory = about.get("cwd")
        if not isinstance(directory, str) or not is_within(directory, roots):
            continue
        event = Event("import", session, directory, transcript=path)
        sources = tuple(CONVERSATIONS.sources(event))
        if not sources:
            leave(str(path), "it has no messages")
            continue
        size = len(sources[0].content or b"")
        yield Kept(session, path, status.st_mtime, size, sources)
