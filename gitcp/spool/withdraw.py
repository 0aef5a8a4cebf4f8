"""Withdraws a clone's unsent sessions from the spool, before a purge rewrites them."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from gitcp.project.workspace import Workspace
from gitcp.spool.entries import Spool, clone_ident, every_spool, now


@contextmanager
def withdrawn(workspace: Workspace, *, dry_run: bool = False) -> Iterator[None]:
    """Removes the clone's unsent sessions and their objects; queues them again at the end.

    Raises:
        BusyError: another process keeps the spool locked.
        StorageError, GitFailedError: the disk refused.
    """
    ident = clone_ident(workspace.repository.common_dir)
    spools = [] if dry_run else [one for one in every_spool() if one.clone(ident)]
    waited = [spool for spool in spools if _withdraw(spool, ident)]
    try:
        yield
    finally:
        for spool in waited:
            clone = spool.clone(ident)
            if clone is not None:
                again = msgspec.structs.replace(
                    clone, wanted=True, sessions=(), at=now()
                )
                spool.note_clone(ident, again)


def _withdraw(spool: Spool, ident: str) -> bool:
    """Removes a clone's pending refs from one spool; returns whether there were any."""
    with spool.locked():
        clone = spool.clone(ident)
        mine = [one for one in spool.pending().values() if one.clone == ident]
        for one in mine:
            spool.remove(one.ref)
        waited = bool(mine) or (clone is not None and clone.wanted)
        if clone is not None and clone.wanted:
            spool.note_clone(ident, msgspec.structs.replace(clone, wanted=False))
        if spool.listed() is not None:
            # Objects that were sent are still there, and the purge concerns them as well.
            spool.gathering().shrink(spool.pending().keys())
        return waited
