"""Readers hold a shared lock; `gc` waits for readers that started before it.

A reader walks from a ref to objects that a concurrent prune may make unreachable, so it
holds a shared lock on a file. A process that is about to remove objects renames that
file and waits until every reader has released it. Later readers make a new file, and read
the refs later too. A steady stream of new readers therefore cannot starve `gc`.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gitcp import at_fork, durable
from gitcp.errors import StorageError
from gitcp.git.repository import Repository

READERS = "readers.lock"


@contextmanager
def reading(repository: Repository) -> Iterator[None]:
    """Keeps everything that refs reach now until the end, whatever is pruned meanwhile.

    If there is no store yet, or nothing can be written, there is nothing to hold.
    """
    held = _join(repository)
    process = os.getpid()
    try:
        yield
    finally:
        if held is not None:
            durable.unlock(held, process=process)


def _join(repository: Repository) -> int | None:
    path = repository.store_dir / READERS
    while True:
        try:
            with at_fork.opening():
                held = durable.open_own(path, os.O_RDWR)
                at_fork.withhold(held)
        except OSError:
            return None
        try:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if durable.names(path, held):
                return held
        except (BlockingIOError, FileNotFoundError):
            # `gc` has just taken this file's name away.
            pass
        except OSError:
            # Some network file systems have no locks; neither has a transaction there.
            durable.close(held)
            return None
        except StorageError:
            # On this disk locks cannot be identified: `gc` refuses it.
            durable.close(held)
            return None
        durable.close(held)


class Readers:
    """The readers at the time this was made, and those that an earlier wait gave up on."""

    def __init__(self, repository: Repository) -> None:
        directory = repository.store_dir
        with suppress(FileNotFoundError):
            (directory / READERS).rename(
                directory / f"readers-{os.urandom(4).hex()}.lock"
            )
        self._waited = list(directory.glob("readers-*.lock"))

    def gone(self) -> bool:
        """Whether all of them have ended."""
        while self._waited:
            path = self._waited[-1]
            try:
                held = durable.try_lock(path, create=False)
            except FileNotFoundError:
                held = None
            if held is None and path.exists():
                return False
            if held is not None:
                path.unlink(missing_ok=True)
                durable.unlock(held)
            self._waited.pop()
        return True

    @property
    def waited(self) -> list[Path]:
        """The files of those who have not."""
        return self._waited
