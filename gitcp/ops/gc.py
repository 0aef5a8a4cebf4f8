"""Housekeeping, asked for."""

from typing import NamedTuple

from gitcp.git.consolidate import consolidate
from gitcp.git.transaction import sweep
from gitcp.ops.du import pack_sizes
from gitcp.ops.workspace import Workspace


class Cleaned(NamedTuple):
    """What was done: packs and their bytes before and after, left-overs removed."""

    packs_before: int
    packs_after: int
    bytes_before: int
    bytes_after: int
    swept: int


def gc(workspace: Workspace) -> Cleaned:
    """Merges gitcp's packs into one and removes what killed processes left.

    No checkpoint goes; objects that nothing needs are left to git's own gc.

    Raises:
        StorageError: the disk refused.
    """
    before = pack_sizes(workspace)
    swept = sweep(workspace.repository)
    consolidate(workspace.repository, force=True)
    after = pack_sizes(workspace)
    return Cleaned(
        len(before), len(after), sum(before.values()), sum(after.values()), swept
    )
