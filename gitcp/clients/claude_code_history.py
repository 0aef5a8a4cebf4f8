"""Finds the transcripts that Claude Code keeps of a project."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gitcp.clients import claude_code
from gitcp.clients.claude_code import CLIENT
from gitcp.clients.client import ClientPlaces
from gitcp.clients.history import Kept, Leave, files, head, is_within

_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def find(places: ClientPlaces, roots: Sequence[Path], leave: Leave) -> Iterator[Kept]:
    """Yields the transcripts of conversations that began in a project, or below it.

    The folders of `/a/b-c` and `/a/b/c` have the same name, so the directory that the
    records name decides.
    """
    projects = claude_code.config_directory(places) / "projects"
    slugs = {claude_code.slug(str(root)) for root in roots}
    try:
        folders = sorted(one for one in projects.iterdir() if one.is_dir())
    except OSError:
        return
    for folder in folders:
        if not any(_may_be(folder.name, slug) for slug in slugs):
            continue
        for path, status in files(folder, "*.jsonl", leave):
            if not _SESSION.fullmatch(path.stem):
                continue
            directory = CLIENT.directory(head(path))
            own = folder.name in slugs if directory is None else None
            if own or (directory is not None and is_within(directory, roots)):
                yield Kept(path.stem, path, status.st_mtime, status.st_size)


def _may_be(name: str, slug: str) -> bool:
    return name == slug or name.startswith(f"{slug}-")
