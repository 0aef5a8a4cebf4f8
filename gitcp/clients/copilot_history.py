"""Finds the sessions that Copilot CLI keeps of a project."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gitcp.clients import rows
from gitcp.clients.client import ClientPlaces
from gitcp.clients.copilot_events import CONVERSATIONS
from gitcp.clients.history import Kept, Leave, files, head, is_within


def find(places: ClientPlaces, roots: Sequence[Path], leave: Leave) -> Iterator[Kept]:
    """Yields the sessions that began in a project; the folder's name is the id."""
    folder = rows.TABLE["copilot"].folder(places) / "session-state"
    for path, status in files(folder, "*/events.jsonl", leave):
        directory = CONVERSATIONS.directory(head(path))
        if directory is not None and is_within(directory, roots):
            yield Kept(path.parent.name, path, status.st_mtime, status.st_size)
