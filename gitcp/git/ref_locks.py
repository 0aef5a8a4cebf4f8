"""The ref locks of a transaction, and the removal of those that a dead process left."""

from contextlib import suppress
from pathlib import Path

from gitcp import durable

LOCK = ".lock"
# This file exists in a transaction that moves several refs, from its commit point on.
DECIDED = "decided"


def release(lock: Path, staged: Path) -> None:
    """Removes a lock if it still is the link to `staged`.

    Once the ref has moved, the path of the lock may be the lock of another process.
    """
    with suppress(FileNotFoundError):
        if _same_file(staged, lock):
            lock.unlink()


def settle(lock: Path, *, decided: bool) -> None:
    """Ends a lock of a dead gitcp: past its commit point the ref moves, otherwise it stays."""
    if not decided:
        lock.unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError):
        lock.rename(lock.with_name(lock.name.removesuffix(LOCK)))
        durable.sync_directory(lock.parent)


def break_stale(lock: Path, transactions: Path) -> None:
    """Removes a lock that a dead gitcp left; leaves any other alone.

    If its transaction was past the commit point, the ref moves as decided there.
    """
    # Until its owner is locked, it may be removed or become another process's at any
    # moment.
    with suppress(FileNotFoundError):
        for staged in transactions.glob("*/ref*"):
            if not _same_file(staged, lock):
                continue
            owner = durable.try_lock(staged.with_name("owner"), create=False)
            if owner is not None:
                try:
                    if _same_file(staged, lock):
                        settle(lock, decided=staged.with_name(DECIDED).exists())
                finally:
                    durable.unlock(owner)
            return


def _same_file(staged: Path, lock: Path) -> bool:
    inode = lock.stat().st_ino
    try:
        return staged.stat().st_ino == inode
    except FileNotFoundError:
        return False
