"""Keeps the clones that a pusher asks open: opening one starts git twice."""

import os
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import GitcpError
from gitcp.project.following import Following
from gitcp.project.workspace import Workspace, open_workspace


class _Kept(NamedTuple):
    workspace: Workspace
    following: Following
    place: tuple[tuple[int, int], ...]


class KeptClones:
    """Opens clones, from the second time on without git. For one thread."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def open(self, directory: str) -> Workspace:
        """Returns the workspace of a clone, with its settings as they are now.

        Raises:
            NotARepositoryError: the clone is gone.
            GitcpError: as `open_workspace`.
        """
        kept = self._kept.pop(directory, None)
        if kept is None or _place(kept.workspace) != kept.place:
            workspace = open_workspace(directory, bare=True)
            kept = _Kept(workspace, Following(workspace.repository), _place(workspace))
        settings = kept.following.now()
        self._kept[directory] = kept
        # Without the cached trees and open packs, because there may be hundreds of clones.
        repository = kept.workspace.repository.with_lock_timeout(settings.lock_timeout)
        fresh = Workspace(repository, settings)
        fresh.store.allowance.limit = settings.sharing.extent
        return fresh

    def is_there(self, directory: str) -> bool:
        """Whether a clone can be asked."""
        try:
            self.open(directory)
        except GitcpError:
            return False
        return True


def _place(workspace: Workspace) -> tuple[tuple[int, int], ...]:
    """Returns the identities of its directories: a new clone may have the old one's path."""
    repository = workspace.repository
    places = [repository.git_dir, repository.common_dir]
    if repository.top is not None:
        places.append(repository.top)
    return tuple(map(_identity, places))


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)
