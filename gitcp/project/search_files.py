"""The location of the index of `gitcp search`, and its removal.

It is derived data: if it is lost, it is rebuilt. It contains words of the stored content, so
every operation that removes content from the store for good removes the index first.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import UnsupportedRepositoryError
from gitcp.git.repository import Repository

DIRECTORY = "search"
_INDEX = "index.db"
_LOCK = "lock"


def index_of(repository: Repository) -> Path:
    """Returns the file of the index; it may be missing."""
    return repository.store_dir / DIRECTORY / _INDEX


@contextmanager
def locked(repository: Repository, *, timeout: float) -> Iterator[Path]:
    """Holds the index exclusively, and yields its file, which may be missing.

    Raises:
        BusyError: another process kept the lock.
        StorageError: the disk refused.
        UnsupportedRepositoryError: a file in its directory is a symbolic link.
    """
    path = index_of(repository)
    with durable.storage("preparing the index of the search"):
        repository.make_directory(path.parent)
        _refuse_links(path.parent)
    with durable.locked(
        path.parent / _LOCK, what="the index of the search", timeout=timeout
    ):
        yield path


def _refuse_links(directory: Path) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                raise UnsupportedRepositoryError(
                    f"{entry.path} is a symbolic link, and would make gitcp write"
                    " elsewhere",
                    hint="remove the link",
                )


@contextmanager
def removed(repository: Repository, *, timeout: float) -> Iterator[None]:
    """Removes the index, and keeps other processes from building one inside.

    Raises:
        BusyError: another process kept the lock.
        StorageError: the disk refused.
    """
    with locked(repository, timeout=timeout) as path:
        unlink(path)
        yield


def remove_where_there(repository: Repository, *, timeout: float) -> None:
    """Removes the index, if there is one.

    Raises:
        BusyError: another process kept the lock.
        StorageError: the disk refused.
    """
    if index_of(repository).exists():
        with locked(repository, timeout=timeout) as path:
            unlink(path)


def unlink(path: Path) -> None:
    """Removes an index and SQLite's files beside it, while its lock is held.

    Raises:
        StorageError: the disk refused.
    """
    with durable.storage("removing the index of the search"):
        for file in sorted(path.parent.glob(f"{path.name}*")):
            with suppress(FileNotFoundError):
                file.unlink()
        durable.sync_directory(path.parent)
