"""That a step runs once at a time."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from gitcp import durable
from gitcp.errors import BusyError
from gitcp.git.repository import Repository
from gitcp.names import encode
from gitcp.ops.book import Slot
from gitcp.store.own import DIRECTORY

# What holds the step that this thread is running.
holding: ContextVar[int | None] = ContextVar("gitcp_lease", default=None)


def _place(repository: Repository, session: str, branch: str, slot: Slot) -> Path:
    name = "\0".join([branch, *slot]).encode("utf-8", "surrogatepass")
    directory = repository.store_dir / DIRECTORY / encode(session)
    return directory / f"{hashlib.sha256(name).hexdigest()[:32]}.lock"


@contextmanager
def held(
    repository: Repository, session: str, branch: str, slot: Slot, *, timeout: float
) -> Iterator[int]:
    """Holds a step for this process; the kernel lets go of it when the process ends.

    Yields the descriptor that holds it. A process that inherits it holds it too.

    Raises:
        BusyError: another process is running it, and does not end within `timeout`.
    """
    path = _place(repository, session, branch, slot)
    with durable.storage("preparing the step"):
        durable.make_directories(path.parent, private=True)
        fd = durable.until(lambda: durable.try_lock(path), timeout=timeout)
    if fd is None:
        raise BusyError(
            f"the step {slot.name!a} is being run by another process",
            hint="wait for it to end; `gitcp steps` shows how it stands",
        )
    try:
        yield fd
    finally:
        # Whoever waits for it opens the path again.
        with suppress(OSError):
            path.unlink()
        os.close(fd)


def is_running(repository: Repository, session: str, branch: str, slot: Slot) -> bool:
    """Whether a living process holds the step."""
    path = _place(repository, session, branch, slot)
    try:
        fd = durable.try_lock(path, create=False)
    except OSError:
        return False
    if fd is None:
        return path.exists()
    os.close(fd)
    return False
