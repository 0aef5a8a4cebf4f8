"""A per-step lease: at most one process runs a step at a time."""

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import BusyError
from gitcp.git.repository import Repository
from gitcp.ledger.call import StepSlot
from gitcp.names import encode

_DIRECTORY = "fx"
# Seconds between two heartbeats.
BEAT = 0.5


def _place(repository: Repository, session: str, branch: str, slot: StepSlot) -> Path:
    name = "\0".join([branch, *slot]).encode("utf-8", "surrogatepass")
    directory = repository.store_dir / _DIRECTORY / encode(session)
    return directory / f"{hashlib.sha256(name).hexdigest()[:32]}.lock"


class Lease:
    """The lease of a step. A program that inherits the descriptor holds it, too.

    So does a process that the step's own function forks, because it does the step's work.
    But only `process`, which began the step, may record its result.

    `died` is the time of the last heartbeat of an interrupted run before this one.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.process = os.getpid()
        status = os.fstat(fd)
        self.died = status.st_mtime if status.st_size else None
        self._end = threading.Event()
        self._beating: threading.Thread | None = None

    def beat(self) -> None:
        """Sends heartbeats from now on, for a process that may have to clean up."""
        if self._beating is None:
            self._sign()
            self._beating = threading.Thread(target=self._beat, daemon=True)
            self._beating.start()

    def _beat(self) -> None:
        while not self._end.wait(BEAT):
            self._sign()

    def _sign(self) -> None:
        # Without heartbeats, the files of an interrupted run are reported, not put back.
        with suppress(OSError):
            os.pwrite(self.fd, b"1", 0)

    def close(self) -> None:
        """Releases the lease."""
        self._end.set()
        if self._beating is not None:
            self._beating.join()
        durable.close(self.fd)


@contextmanager
def held(
    repository: Repository, session: str, branch: str, slot: StepSlot, *, timeout: float
) -> Iterator[Lease]:
    """Holds a step for this process; the kernel releases it when the process ends.

    Raises:
        BusyError: another process is running it, and does not end within `timeout`.
    """
    path = _place(repository, session, branch, slot)
    with durable.storage("preparing the step"):
        repository.make_directory(path.parent)
        fd = durable.until(lambda: durable.try_lock(path), timeout=timeout)
    if fd is None:
        raise BusyError(
            f"the step {slot.name!a} is being run by another process",
            hint="wait for it to end; `gitcp steps` shows its state",
        )
    lease = Lease(fd)
    try:
        yield lease
    finally:
        if lease.process == os.getpid():
            # A process that waits for the lease opens the path again.
            with suppress(OSError):
                path.unlink()
        lease.close()


def is_running(
    repository: Repository, session: str, branch: str, slot: StepSlot
) -> bool:
    """Whether a living process holds the step."""
    path = _place(repository, session, branch, slot)
    try:
        fd = durable.try_lock(path, create=False)
    except OSError:
        return False
    if fd is None:
        return path.exists()
    durable.unlock(fd)
    return False
