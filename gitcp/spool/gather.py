"""Collects what clones have noted, and tells them what the remote has accepted."""

from collections.abc import Mapping

from gitcp.errors import GitcpError, TransferError
from gitcp.format import layout
from gitcp.git.transaction import transaction
from gitcp.spool.entries import Spool, now
from gitcp.spool.intake import take_noted
from gitcp.spool.kept_clones import KeptClones
from gitcp.sync.adopt import remember

# Seconds until a clone is asked again whose sessions could not be moved into the spool.
_AGAIN = 1.0


def take_all(spool: Spool, clones: KeptClones) -> None:
    """Asks each clone that noted something.

    Raises:
        TransferError: the remote was never reached, and cannot be.
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
    """Returns the clone to ask now, the one that was not asked for longest.

    At once, as a clone may be gone soon; but no more than twice in an `interval`, as to ask
    costs the same whatever the clone has by then.
    """
    moment = now()
    waiting = []
    for ident, clone in spool.clones().items():
        # A clock may have been set back.
        asked = clone.asked if clone.asked <= moment else 0.0
        pause = interval / 2 if clone.at > clone.asked else max(interval, _AGAIN)
        if clone.wanted and moment - asked >= pause:
            waiting.append((asked, ident))
    return min(waiting)[1] if waiting else None


def tell(
    spool: Spool, clones: KeptClones, arrived: Mapping[str, Mapping[str, str]]
) -> None:
    """Notes in each clone what the remote has now, as a push does; it may be gone."""
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
            # It is derived: the next pull or push notes it.
            continue
