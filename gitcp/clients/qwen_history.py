"""Finds the chats that Qwen Code keeps of a project."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gitcp.clients import rows
from gitcp.clients.client import ClientPlaces
from gitcp.clients.history import Kept, Leave, files, head, is_within
from gitcp.clients.qwen_chats import CONVERSATIONS, runtime_folder


def find(places: ClientPlaces, roots: Sequence[Path], leave: Leave) -> Iterator[Kept]:
    """Yields the chats that began in a project; the file's name is the id."""
    folder = runtime_folder(rows.TABLE["qwen"].folder(places), places) / "projects"
    for path, status in files(folder, "*/chats/*.jsonl", leave):
        directory = CONVERSATIONS.directory(head(path))
        if directory is not None and is_within(directory, roots):
            yield Kept(path.stem, path, status.st_mtime, status.st_size)
