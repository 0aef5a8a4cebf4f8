"""The pusher: the process that sends what waits in a spool, one per remote on a machine."""

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
from gitcp.spool.send_round import Sent, send

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
    """Sends what waits until nothing does; False if another process does so already.

    After a failure it makes way until the next try: credentials are in the environment, and
    a process that starts meanwhile may have those that this one lacks.

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
    """Sends what waits until nothing does, or it fails; False if another process does so."""
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
        # One may have come meanwhile.
        if not spool.pending() and spool.clones() == clones:
            shutil.rmtree(spool.directory, ignore_errors=True)


def _serve(spool: Spool, *, until: Callable[[], bool], beside: bool) -> None:
    """Gathers what is noted, and sends what waits when it is due.

    With `beside` a thread sends, so that a round does not keep the next one from being
    gathered: a round begins when it is due, with what is here by then.
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
    """Whether something waits that may be sent now.

    It goes before the clones are asked for more: a pusher that is killed again and again
    would only ever ask. If nothing waits, all of them are asked first.
    """
    if spool.listed() is None:
        return send_round.reach(spool, clones) and _due_now(spool)
    if not _due_now(spool):
        for _ in spool.clones():
            if not _gather(spool, clones):
                break
    return _due_now(spool)


def _due_now(spool: Spool) -> bool:
    moment = now()
    return any(one.due <= moment for one in spool.pending().values())


def _gather(spool: Spool, clones: KeptClones) -> bool:
    """Takes in what one clone has noted; returns whether there was one to ask."""
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
    # A clock that was set back does not stop it for longer than a failure may.
    return min(max(progress.due, progress.last + interval), now() + 600.0)


def _waits(spool: Spool) -> bool:
    if any(clone.wanted for clone in spool.clones().values()):
        return True
    return any(one.due < 2**39 for one in spool.pending().values())


def wait(spool: Spool, clone: str, *, timeout: float) -> bool:
    """Waits until nothing of a clone waits that can be sent; False after `timeout` seconds.

    If no other process sends, this one does.

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
