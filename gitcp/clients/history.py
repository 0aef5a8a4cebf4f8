"""Finds the conversations that clients keep on disk; imports each client's module on use."""

import hashlib
import importlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.clients import records, registry
from gitcp.clients.client import ClientPlaces, Source
from gitcp.errors import UsageError

# name -> module; each has a `find`. gitcp cannot read the conversations of other clients.
_MODULES = {
    "claude-code": "gitcp.clients.claude_code_history",
    "cline": "gitcp.clients.cline_history",
    "codex": "gitcp.clients.codex_history",
    "copilot": "gitcp.clients.copilot_history",
    "gemini": "gitcp.clients.gemini_history",
    "kilo": "gitcp.clients.kilo_history",
    "opencode": "gitcp.clients.opencode_history",
    "pi": "gitcp.clients.pi_history",
    "qwen": "gitcp.clients.qwen_history",
}
NAMES = tuple(sorted(_MODULES))
# So many bytes of a file are read to find its session and project.
_HEAD = 1 << 20
# Called for each file that is left out, with its name and the reason.
Leave = Callable[[str, str], None]


class Kept(NamedTuple):
    """A conversation that a client keeps: its id there, its file, and when the file changed.

    For a client with a database, `sources` replace the file, as the client's hook passes
    them.
    """

    session: str
    path: Path
    changed: float
    size: int
    sources: tuple[Source, ...] = ()


def find(
    name: str, places: ClientPlaces, roots: Sequence[Path], leave: Leave
) -> Iterator[Kept]:
    """Yields the conversations that a client keeps of the projects at `roots`.

    Raises:
        UsageError: there is no such client, or gitcp cannot read its conversations.
    """
    module = _MODULES.get(name)
    if module is None:
        title = registry.client(name).title
        raise UsageError(
            f"{title} keeps its conversations in no form that gitcp can read",
            hint=f"those of {', '.join(NAMES)} can be imported",
        )
    yield from importlib.import_module(module).find(places, roots, leave)


def files(
    folder: Path, pattern: str, leave: Leave
) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields the regular files of a folder that fit a pattern; leaves out all others.

    A link may lead to any of the user's files, and a device has no end.
    """
    with suppress(OSError):
        for path in sorted(folder.glob(pattern)):
            try:
                status = path.lstat()
            except OSError as exc:
                leave(str(path), f"cannot be read: {exc.strerror}")
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status
            elif not stat.S_ISDIR(status.st_mode):
                leave(str(path), "not a regular file")


def head(path: Path, size: int = _HEAD) -> bytes:
    """Returns the beginning of a regular file; empty if it cannot be read."""
    return records.beginning(path, size, follow=False)


def is_within(directory: str, roots: Sequence[Path]) -> bool:
    """Whether a directory belongs to a project, and not to a repository inside it."""
    real = Path(os.path.realpath(directory))
    for root in roots:
        if real.is_relative_to(root):
            inner = real.relative_to(root).parts
            below = (root.joinpath(*inner[:n]) for n in range(1, len(inner) + 1))
            return not any(os.path.lexists(one / ".git") for one in below)
    return False


def digest(root: Path) -> str:
    """Returns the digest by which some clients name a project."""
    return hashlib.sha256(os.fsencode(root)).hexdigest()
