"""Queues the sessions that clones noted, and tells them which ones the remote accepted."""

from collections.abc import Mapping

from gitcp.errors import GitcpError, TransferError
from gitcp.format import layout
from gitcp.git.transaction import transaction
from gitcp.spool.entries import Spool, now
from gitcp.spool.intake import take_noted
from gitcp.spool.kept_clones import KeptClones
from gitcp.sync.adopt import remember

# If a clone's sessions could not be moved into the spool, ask it again after so many seconds.
_AGAIN = 1.0


def take_all(spool: Spool, clones: KeptClones) -> None:
    """Asks each clone that noted something.

    Raises:
        TransferError: the remote was never reached, and cannot be reached now.
    """
    problem = None
    noted = sorted(spool.clones().items(), key=lambda item: item[1].asked)
    for ident, clone in noted:
        if clone.wanted:
            problem = take_noted(spool, ident, clones) or problem
    if spool.listed() is None:
        reason = problem.message if problem is not None else "no clone uses this remote"
        raise TransferError(
            reason, hint="check that `git ls-remote` works in the clone"
        )


def next_to_ask(spool: Spool, interval: float) -> str | None:
    """Returns the clone to ask now: the one that was not asked for the longest time.

    A clone is asked at once, because it may be gone soon. But it is asked at most twice in
    an `interval`, because asking costs the same for one new session as for many.
    """
    moment = now()
    waiting = []
    for ident, clone in spool.clones().items():
        # The clock may have been set back.
        asked = clone.asked if clone.asked <= moment else 0.0
        pause = interval / 2 if clone.at > clone.asked else max(interval, _AGAIN)
        if clone.wanted and moment - asked >= pause:
            waiting.append((asked, ident))
    return min(waiting)[1] if waiting else None


def tell(
    spool: Spool, clones: KeptClones, arrived: Mapping[str, Mapping[str, str]]
) -> None:
    """Notes the remote's new tips in each clone that still exists, as a push does."""
    for ident, tips in arrived.items():
        clone = spool.clone(ident)
        if clone is None:
            continue
        try:
            repository = clones.open(clone.directory).repository
            with transaction(repository) as txn:
                for ref, plain in tips.items():
                    key = layout.ref_key(ref)
                    if key is None:
                        continue
                    place = key.tracking_ref(clone.remote)
                    seen = repository.refs.read(place)
                    if seen != plain:
                        remember(txn, place, seen, plain)
        except GitcpError:
            # The note is derived data: the next pull or push writes it.
            continue
