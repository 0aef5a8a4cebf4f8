"""Finds and removes the files that gitcp wrote into clients' folders, as it is uninstalled."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.agents import bindings
from gitcp.clients.client import ClientPlaces
from gitcp.user_state import state_directory

# Ids of conversations, as clients make them. They cannot be guessed.
_ID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|ses_[0-9A-Za-z]{20,}", re.ASCII
)
_SHORT = 8


class Restored(NamedTuple):
    """Conversations that restores have written for clients.

    `unused` are files and directories as gitcp wrote them. `continued` are those that the
    client has written to since, or may need for other conversations: they now belong to
    the user.
    """

    unused: tuple[Path, ...]
    continued: tuple[Path, ...]


def restored(states: Iterable[Path], places: ClientPlaces, *, shared: bool) -> Restored:
    """Returns the conversations that the states of work trees list.

    They include transcripts that gitcp wrote for a client without its own. In a `shared`
    repository nothing counts as unused: other users can write the states, and gitcp must
    not remove a file because another user listed it.
    """
    own = state_directory(places.environment, places.home)
    unused: list[Path] = []
    continued: list[Path] = []
    for state in states:
        for binding in bindings.kept_in(state):
            noted = Path(binding.transcript or "/")
            # Each client has a folder of its own; records of installations lie beside them.
            spooled = noted.parent == own / binding.agent and noted.suffix == ".jsonl"
            if spooled and noted.is_file():
                unused.append(noted)
            there = {path: _digest(Path(path)) for path in binding.written}
            files = [Path(path) for path, now in there.items() if now is not None]
            folders = [path for path in map(Path, binding.copied) if path.is_dir()]
            changed = [
                Path(path)
                for path, now in there.items()
                if now not in {None, binding.written[path]}
            ]
            if changed:
                continued += changed
                continue
            # The state in a copied repository may name any path.
            ident = binding.agent_session
            for path in (*files, *folders):
                named = path.name == ident if path in folders else _names(path, ident)
                (unused if named and _ID.fullmatch(ident) else continued).append(path)
    if shared:
        return Restored((), (*continued, *unused))
    return Restored(tuple(unused), tuple(continued))


def _names(path: Path, ident: str) -> bool:
    """Whether a file, or a folder that it lies in, is named after a conversation's id."""
    return any(ident in part or ident[:_SHORT] in part for part in path.parts)


def remove(paths: Iterable[Path]) -> None:
    """Removes files and directories, and then folders that are empty.

    Raises:
        StorageError: the disk refused.
    """
    with durable.storage("removing restored conversations"):
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                durable.remove(path)
            with suppress(OSError):
                path.parent.rmdir()


def remove_empty(places: ClientPlaces) -> None:
    """Removes the user's folders for gitcp's own files, if they are empty."""
    directory = state_directory(places.environment, places.home)
    for one in (*directory.glob("*"), directory):
        with suppress(OSError):
            one.rmdir()


def _digest(path: Path) -> str | None:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return None
