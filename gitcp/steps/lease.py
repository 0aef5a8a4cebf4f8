"""That a step runs once at a time, and which undos this repository wrote itself."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from gitcp import durable
from gitcp.errors import BusyError
from gitcp.format.ledger import Record, undo_text
from gitcp.git.repository import Repository
from gitcp.names import encode
from gitcp.ops.effects import Slot

# What holds the step that this thread is running.
holding: ContextVar[int | None] = ContextVar("gitcp_lease", default=None)
_DIRECTORY = "fx"
_SEAL = "seal"


def _place(repository: Repository, session: str, branch: str, slot: Slot) -> Path:
    name = "\0".join([branch, *slot]).encode("utf-8", "surrogatepass")
    directory = repository.store_dir / _DIRECTORY / encode(session)
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


def seal(repository: Repository, record: Record, *, create: bool = False) -> str:
    """Returns the seal of an undo; empty where this repository has none to give.

    What a pull brought was sealed elsewhere, or not at all: its commands are not ours.
    """
    path = repository.store_dir / _DIRECTORY / _SEAL
    secret = _secret(path, create=create)
    if secret is None:
        return ""
    return hmac.new(secret, undo_text(record), hashlib.sha256).hexdigest()


def is_ours(repository: Repository, record: Record) -> bool:
    """Whether an undo was recorded in this repository, and not changed since."""
    expected = seal(repository, record)
    given = record.undo.seal if record.undo is not None else ""
    return bool(expected) and hmac.compare_digest(expected, given)


def _secret(path: Path, *, create: bool) -> bytes | None:
    with durable.storage("reading the seal"):
        try:
            return path.read_bytes() or None
        except FileNotFoundError:
            if not create:
                return None
        durable.make_directories(path.parent, private=True)
        made = path.with_name(f"{_SEAL}.{secrets.token_hex(4)}")
        try:
            with made.open("xb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(secrets.token_bytes(32))
                file.flush()
                os.fsync(file.fileno())
            # Not renamed: whoever was first has the one that counts.
            with suppress(FileExistsError):
                os.link(made, path)
            durable.sync_directory(path.parent)
        finally:
            made.unlink(missing_ok=True)
        return path.read_bytes()
