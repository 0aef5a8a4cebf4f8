"""Reports which sessions of a clone have not been sent yet, and why."""

from typing import NamedTuple

from gitcp.project.workspace import Workspace
from gitcp.spool.entries import clone_ident, every_spool
from gitcp.spool.pusher import due


class Unsent(NamedTuple):
    """The pending refs for one remote: since when, when they are due, the last refusal.

    `noted`: the clone has more that is not queued yet. Times are in seconds since 1970.
    """

    remote: str
    refs: tuple[str, ...]
    since: float
    due: float
    reason: str
    noted: bool


def unsent(workspace: Workspace) -> list[Unsent]:
    """Returns a clone's pending refs, for each remote that it has some for."""
    ident = clone_ident(workspace.repository.common_dir)
    found = []
    for spool in every_spool():
        clone = spool.clone(ident)
        if clone is None:
            continue
        clones = spool.clones()
        # A clone that is gone cannot report its pending refs, so every other clone does.
        mine = [
            one
            for one in spool.pending().values()
            if one.clone == ident or one.clone not in clones
        ]
        if not (mine or clone.wanted or clone.reason):
            continue
        reasons = [one.reason for one in mine if one.reason]
        reason = clone.reason or next(iter(reasons), "") or spool.progress().reason
        since = min([one.at for one in mine], default=clone.at)
        refs = tuple(one.ref for one in mine)
        found.append(
            Unsent(clone.remote, refs, since, due(spool), reason, clone.wanted)
        )
    return found
