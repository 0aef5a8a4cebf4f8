"""The pusher: the process that sends a spool's pending refs, one per remote and machine."""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import GitcpError
from gitcp.git.background import start_gitcp
from gitcp.spool import gather, send_round
from gitcp.spool.entries import Spool, now
from gitcp.spool.intake import take_noted
from gitcp.spool.kept_clones import KeptClones
from gitcp.spool.policy import decide_again
from gitcp.spool.send_round import Sent, send

# How often the pusher checks for pending refs, and how long it stays without any, in seconds.
_LOOK = 0.25
_LINGER = 2.0


def start(spool: Spool) -> None:
    """Starts a pusher in the background, if none is running.

    Raises:
        StorageError: the disk refused.
    """
    held = spool.pusher_lock()
    if held is None:
        return
    durable.unlock(held)
    start_gitcp("pusher", spool.ident)


def serve(spool: Spool) -> bool:
    """Sends all pending refs; False if another process is sending them already.

    After a failure it releases the lock until the next try. Credentials are in the
    environment, and a process that starts meanwhile may have some that this one lacks.

    Raises:
        GitcpError: the spool cannot be read or written.
    """
    while _serve_once(spool):
        if not _waits(spool):
            return True
        asleep = spool.pusher_lock(asleep=True)
        if asleep is None:
            # Another process waits for the next try already.
            return True
        try:
            time.sleep(max(0.0, due(spool) - now()))
        finally:
            durable.unlock(asleep)
    return False


def _serve_once(spool: Spool) -> bool:
    """Sends pending refs until none is left or a push fails; False if another process does."""
    held = spool.pusher_lock()
    if held is None:
        return False
    try:
        before = spool.progress().failures
        _serve(spool, until=lambda: spool.progress().failures > before, beside=True)
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
        # A clone may have queued something meanwhile.
        if not spool.pending() and spool.clones() == clones:
            shutil.rmtree(spool.directory, ignore_errors=True)


def _serve(spool: Spool, *, until: Callable[[], bool], beside: bool) -> None:
    """Queues the sessions that clones noted, and sends pending refs when they are due.

    With `beside` a thread sends, so that the next round can be gathered during a push. A
    round begins when it is due, with the refs that are queued by then.
    """
    clones = KeptClones()
    owed: dict[str, str] = {}
    idle = 0.0
    sending: Future[Sent] | None = None
    with ThreadPoolExecutor(1) as thread:
        while not until():
            if sending is not None and sending.done():
                gather.tell(spool, clones, sending.result().arrived)
                sending = None
            if sending is None and now() >= due(spool) and _can_send(spool, clones):
                idle = 0.0
                if beside:
                    sending = thread.submit(send, spool, owed)
                else:
                    gather.tell(spool, clones, send(spool, owed).arrived)
            elif _gather(spool, clones):
                idle = 0.0
            elif sending is None and not _waits(spool) and idle > _LINGER:
                return
            else:
                idle = 0.0 if sending is not None or _waits(spool) else idle + _LOOK
                time.sleep(_LOOK)
        if sending is not None:
            gather.tell(spool, clones, sending.result().arrived)


def _can_send(spool: Spool, clones: KeptClones) -> bool:
    """Whether a pending ref may be sent now.

    Sending comes before asking clones for more: a pusher that is killed again and again
    would otherwise only ask. If nothing is pending, it asks all clones first.
    """
    if spool.listed() is None:
        return send_round.reach(spool, clones) and _due_now(spool)
    if not _due_now(spool):
        for _ in spool.clones():
            if not _gather(spool, clones):
                break
    decide_again(spool, clones)
    return _due_now(spool)


def _due_now(spool: Spool) -> bool:
    moment = now()
    return any(one.due <= moment for one in spool.pending().values())


def _gather(spool: Spool, clones: KeptClones) -> bool:
    """Queues the sessions that one clone noted; returns whether there was one to ask."""
    route = spool.route()
    if route is None or spool.listed() is None:
        return False
    ident = gather.next_to_ask(spool, route.interval)
    if ident is None:
        return False
    take_noted(spool, ident, clones)
    return True


def due(spool: Spool) -> float:
    """Returns when the next push may begin, in seconds since 1970."""
    progress = spool.progress()
    route = spool.route()
    interval = route.interval if route is not None else 0.0
    # If the clock was set back, the pusher still waits no longer than after a failure.
    return min(max(progress.due, progress.last + interval), now() + 600.0)


def _waits(spool: Spool) -> bool:
    if any(clone.wanted for clone in spool.clones().values()):
        return True
    return any(one.due < 2**39 for one in spool.pending().values())


def wait(spool: Spool, clone: str, *, timeout: float) -> bool:
    """Waits until a clone's refs are sent or refused; False after `timeout` seconds.

    If no other process sends them, this one does.

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
            _serve(spool, until=over, beside=False)
        finally:
            durable.unlock(held)
    if _waits(spool):
        # Other clones' refs are still pending, but this clone need not wait for them.
        with suppress(GitcpError):
            start(spool)
    return not mine_waits(spool, clone)


def mine_waits(spool: Spool, clone: str) -> bool:
    """Whether a clone has pending refs that were not refused, or more to queue."""
    noted = spool.clone(clone)
    if noted is not None and noted.wanted:
        return True
    return any(
        one.clone == clone and not one.reason for one in spool.pending().values()
    )
