"""The process that sends what waits in a spool: one for each remote on a machine."""

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import GitcpError
from gitcp.git.background import start_gitcp
from gitcp.spool.entries import Spool, now
from gitcp.spool.send_round import run_round, take_new

# How often it looks whether something new waits, in seconds, and how long without.
_LOOK = 0.25
_LINGER = 2.0


def start(spool: Spool) -> None:
    """Starts a pusher in the background, if none is at work.

    Raises:
        StorageError: the disk refused.
    """
    held = spool.pusher_lock()
    if held is None:
        return
    durable.unlock(held)
    start_gitcp("pusher", spool.ident)


def serve(spool: Spool) -> bool:
    """Sends what waits until nothing does; False where another process does so already.

    Raises:
        GitcpError: the spool cannot be read or written.
    """
    held = spool.pusher_lock()
    if held is None:
        return False
    try:
        _serve(spool, until=lambda: False)
        _clear(spool)
    finally:
        durable.unlock(held)
    return True


def _clear(spool: Spool) -> None:
    """Removes a spool that no clone needs any more."""
    clones = spool.clones()
    if spool.pending() or any(Path(one.directory).exists() for one in clones.values()):
        return
    with spool.locked():
        # One may have come meanwhile.
        if not spool.pending() and spool.clones() == clones:
            shutil.rmtree(spool.directory, ignore_errors=True)


def _serve(spool: Spool, *, until: Callable[[], bool]) -> None:
    owed: dict[str, str] = {}
    idle = 0.0
    while not until():
        if _waits(spool):
            idle = 0.0
            if now() >= due(spool):
                run_round(spool, owed)
                continue
            take_new(spool)
        else:
            if idle > _LINGER:
                return
            idle += _LOOK
        time.sleep(_LOOK)


def due(spool: Spool) -> float:
    """Returns when the next push may begin, in seconds since 1970."""
    progress = spool.progress()
    route = spool.route()
    interval = route.interval if route is not None else 0.0
    # A clock that was set back does not stop it for longer than a failure may.
    return min(max(progress.due, progress.last + interval), now() + 600.0)


def _waits(spool: Spool) -> bool:
    if any(clone.wanted for clone in spool.clones().values()):
        return True
    return any(one.due < 2**39 for one in spool.pending().values())


def wait(spool: Spool, clone: str, *, timeout: float) -> bool:
    """Waits until nothing of a clone waits that can be sent; False after `timeout` seconds.

    Where no other process sends, this one does.

    Raises:
        GitcpError: the spool cannot be read or written.
    """
    end = time.monotonic() + timeout

    def over() -> bool:
        return not mine_waits(spool, clone) or time.monotonic() > end

    while not over():
        held = spool.pusher_lock()
        if held is None:
            time.sleep(_LOOK)
            continue
        try:
            _serve(spool, until=over)
        finally:
            durable.unlock(held)
    if _waits(spool):
        # What other clones have is theirs to wait for.
        with suppress(GitcpError):
            start(spool)
    return not mine_waits(spool, clone)


def mine_waits(spool: Spool, clone: str) -> bool:
    """Whether something of a clone waits that was not refused."""
    noted = spool.clone(clone)
    if noted is not None and noted.wanted:
        return True
    return any(
        one.clone == clone and not one.reason for one in spool.pending().values()
    )
