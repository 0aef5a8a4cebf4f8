"""Folders without git that have a private store: which there are, making and removing one."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import GitcpError, NotARepositoryError, UsageError
from gitcp.format import layout
from gitcp.git import private_stores
from gitcp.git.discover import discover
from gitcp.git.folder import UNKNOWN
from gitcp.git.private_stores import HERE, PrivateStore
from gitcp.project.workspace import Workspace


class PrivateFolder(NamedTuple):
    """A folder with a private store.

    `folder` is its path when it was last seen, None where that cannot be read; `there`
    says that it is still there. `branches` is None where the store cannot be read.
    """

    store: str
    folder: Path | None
    there: bool
    branches: int | None
    git_dir: Path


def listed() -> Iterator[PrivateFolder]:
    """Yields the folders of this user that have a private store.

    Raises:
        UnsupportedRepositoryError: the directory of private stores is another user's.
        StorageError: it cannot be read.
    """
    yield from map(_folder, private_stores.every_store())


def named(store: str) -> PrivateFolder:
    """Returns the folder of a store, by the store's name or the beginning of it.

    Raises:
        NotFoundError: there is no such store, or more than one.
    """
    return _folder(private_stores.store_named(store))


def make(directory: str | os.PathLike[str]) -> PrivateFolder:
    """Makes a private store for a folder; one that is there by now is taken.

    Raises:
        UnsupportedRepositoryError: the folder cannot have one.
        GitFailedError, StorageError: it cannot be made.
    """
    return _folder(private_stores.make(directory).store)


def use(store: str, directory: str | os.PathLike[str]) -> PrivateFolder:
    """Takes a store for a folder from now on, whichever it was for.

    Raises:
        NotFoundError: there is no such store, or more than one.
        UsageError: the folder has a repository.
        UnsupportedRepositoryError: the folder cannot have one.
        StorageError: the disk refused.
    """
    with suppress(NotARepositoryError):
        repository = discover(directory)
        if not repository.private:
            raise UsageError(
                f"{repository.top} has a git repository, and keeps its checkpoints there",
                hint=f"to move those of the store into it: `gitcp adopt {store}`",
            )
    found = private_stores.store_named(store)
    return _folder(private_stores.use(found, directory).store)


def remove(store: str) -> None:
    """Removes a store with all checkpoints in it.

    Raises:
        NotFoundError: there is no such store, or more than one.
        StorageError: the disk refused.
    """
    private_stores.remove(private_stores.store_named(store))


def state_directory() -> Path:
    """Returns the directory in which private stores are kept."""
    return private_stores.state_directory()


def store_of(workspace: Workspace) -> str | None:
    """Returns the name of the private store that a workspace is in; None in a repository."""
    repository = workspace.repository
    return repository.git_dir.parent.name if repository.private else None


def left_behind(workspace: Workspace) -> str | None:
    """Returns the private store that a repository's folder had before `git init`.

    Only one that is surely this folder's is named; None is nearly always the answer.
    """
    repository = workspace.repository
    if repository.private or repository.top is None or not private_stores.any_there():
        return None
    found = private_stores.at(repository.top)
    return found.store.ident if found is not None and found.how == HERE else None


def _folder(store: PrivateStore) -> PrivateFolder:
    branches: int | None = None
    try:
        refs = private_stores.open_store(store, None).refs
        branches = len(refs.list(layout.SESSIONS))
    except GitcpError:
        # It is listed all the same: that is how it can be removed.
        branches = None
    place = None if store.folder == UNKNOWN else store.folder.place
    return PrivateFolder(
        store.ident, place, store.folder.is_there, branches, store.git_dir
    )
