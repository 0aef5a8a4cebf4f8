"""Finds the sessions that Pi keeps of a project."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gitcp.clients import rows
from gitcp.clients.client import ClientPlaces
from gitcp.clients.history import Kept, Leave, files, head, is_within
from gitcp.clients.pi_sessions import CONVERSATIONS, session_of


def find(places: ClientPlaces, roots: Sequence[Path], leave: Leave) -> Iterator[Kept]:
    """Yields the sessions that began in a project; their first record has the id."""
    folder = rows.TABLE["pi"].folder(places) / "sessions"
    for path, status in files(folder, "*/*.jsonl", leave):
        beginning = head(path)
        directory, session = CONVERSATIONS.directory(beginning), session_of(beginning)
        if session and directory is not None and is_within(directory, roots):
            yield Kept(session, path, status.st_mtime, status.st_size)
