"""Opens the repository of an adapter's store, creates a bare one, and writes to it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from gitcp import durable
from gitcp.errors import NoGitHereError, NotARepositoryError
from gitcp.git.consolidate import consolidate
from gitcp.git.discover import discover
from gitcp.git.new_bare import is_unfinished, make_bare_store
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction
from gitcp.ledger.ledgers import Ledgers
from gitcp.project.settings import Settings
from gitcp.store.store import Store


def store_at(path: str | os.PathLike[str]) -> Store:
    """Returns the store in a repository; if there is none, makes a bare one.

    `path` is any directory of a git repository, or of a folder without git that has a
    private store. Or it is empty, or does not exist but its parent does: then the bare
    repository is made there. No work tree is needed.

    Raises:
        NotARepositoryError: the directory holds something else.
        UnsupportedRepositoryError: gitcp cannot serve the repository.
        StorageError, GitFailedError: the repository cannot be made.
    """
    where = Path(path)
    with durable.storage(f"opening {where}"):
        if _to_be_made(where):
            where.mkdir(exist_ok=True)
            with _alone(where):
                if _to_be_made(where):
                    # We hold the lock, so a process that left files here was killed.
                    make_bare_store(where)
    repository = _open(where)
    repository = repository.with_lock_timeout(Settings.of(repository).lock_timeout)
    return Store(repository, ledger_position=Ledgers(repository).position)


def write(store: Store) -> AbstractContextManager[Transaction]:
    """Opens a transaction: new objects, and the refs that need them."""
    return transaction(store.repository)


def merge_packs(store: Store) -> None:
    """Merges packs, if there are too many.

    Raises:
        StorageError: the disk refused; nothing is lost.
    """
    consolidate(store.repository)


def _open(where: Path) -> Repository:
    try:
        return discover(where, worktree=False)
    except NotARepositoryError as exc:
        from gitcp.git.private_stores import repository_around  # noqa: PLC0415  rarely

        found = repository_around(where) if isinstance(exc, NoGitHereError) else None
        if found is not None:
            return found
        raise NotARepositoryError(
            f"{where} is neither a git repository nor empty",
            hint="name a repository, or a new directory: a bare one is made there",
        ) from exc


def _to_be_made(where: Path) -> bool:
    if not os.path.lexists(where):
        return True
    if not where.is_dir():
        return False
    return is_unfinished(where)


@contextmanager
def _alone(where: Path) -> Iterator[None]:
    """Lets one process at a time make the repository."""
    fd = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        # A process forked meanwhile has a copy of the descriptor.
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)
