"""Lists, creates and removes the private stores of folders without git."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import (
    GitcpError,
    NoGitHereError,
    NotARepositoryError,
    UsageError,
)
from gitcp.format import layout
from gitcp.git import private_stores
from gitcp.git.discover import discover
from gitcp.git.folder import UNKNOWN
from gitcp.git.private_stores import REPLACED, PrivateStore
from gitcp.names import quoted
from gitcp.project.workspace import Workspace


class PrivateFolder(NamedTuple):
    """A folder with a private store.

    `folder` is its path when last seen, None if that cannot be read; `there` says that the
    folder is still there. `branches` is None if the store cannot be read.
    """

    store: str
    folder: Path | None
    there: bool
    branches: int | None
    git_dir: Path

    @property
    def has_repository(self) -> bool:
        """Whether the folder has become a git repository, so `gitcp adopt` is due."""
        return (
            self.there and self.folder is not None and (self.folder / ".git").exists()
        )


def listed() -> Iterator[PrivateFolder]:
    """Yields the folders of this user that have a private store.

    Raises:
        UnsupportedRepositoryError: another user owns the directory of private stores.
        StorageError: the directory of the stores cannot be read.
    """
    yield from map(_folder, private_stores.every_store())


def named(store: str) -> PrivateFolder:
    """Returns the folder of a store, by the store's name or the beginning of that name.

    Raises:
        NotFoundError: there is no such store, or more than one.
    """
    return _folder(private_stores.store_named(store))


def of_folder(top: Path) -> PrivateFolder | None:
    """Returns the folder at a path, if it has a private store; it may have been moved."""
    found = private_stores.at(top)
    return _folder(found.store) if found is not None else None


def stored(store: str) -> PrivateStore:
    """Returns the store itself, by its name.

    Raises:
        NotFoundError: there is no such store.
    """
    return private_stores.store_named(store)


def make(directory: str | os.PathLike[str]) -> PrivateFolder:
    """Makes a private store for a folder, or returns the one that exists by now.

    Raises:
        UnsupportedRepositoryError: the folder cannot have one.
        GitFailedError, StorageError: the store cannot be made.
    """
    return _folder(private_stores.make(directory).store)


def make_if_needed(directory: str | os.PathLike[str]) -> None:
    """Makes a private store for a folder that is in no repository and has none.

    Raises:
        NotARepositoryError: git has found something that it cannot open, or a store may
            belong to another folder: the user has to decide.
        UnsupportedRepositoryError: the folder cannot have one.
        GitFailedError, StorageError: the store cannot be made.
    """
    try:
        discover(directory)
    except NoGitHereError:
        make(directory)


def use(store: str, directory: str | os.PathLike[str]) -> PrivateFolder:
    """Assigns a store to a folder, even if it belonged to another folder.

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
                hint=f"to move those of the store into it: `gitcp adopt {quoted(store)}`",
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


def left_behind(
    workspace: Workspace, directory: str | os.PathLike[str]
) -> PrivateFolder | None:
    """Returns the folder that had a private store before it became part of a repository.

    It is the top of the work tree, or a folder between that and `directory`.
    """
    top = workspace.repository.top
    found = private_stores.find(directory)
    if found is None or top is None or found.how == REPLACED:
        return None
    if not found.top.is_relative_to(os.path.realpath(top)):
        return None
    # The folder may have been moved since.
    return _folder(found.store)._replace(folder=found.top)


def _folder(store: PrivateStore) -> PrivateFolder:
    branches: int | None = None
    try:
        refs = private_stores.open_store(store, None).refs
        branches = len(refs.list(layout.SESSIONS))
    except GitcpError:
        # List it all the same, so that the user can remove it.
        branches = None
    place = None if store.folder == UNKNOWN else store.folder.place
    return PrivateFolder(
        store.ident, place, store.folder.is_there, branches, store.git_dir
    )
