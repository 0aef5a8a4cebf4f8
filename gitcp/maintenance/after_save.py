"""Keeps a repository small after a save: prunes, merges packs, packs refs."""

from contextlib import suppress

from gitcp.errors import GitcpError, StorageError
from gitcp.git.pack_refs import pack_refs
from gitcp.maintenance import upkeep
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint


def after_save(workspace: Workspace, tip: Checkpoint) -> None:
    """Does the upkeep that is due; the caller holds no work tree's lock.

    The checkpoint is saved already, so a failure here must not fail the save; a later save
    tries again.
    """
    with suppress(GitcpError):
        if workspace.settings.max_checkpoints:
            from gitcp.maintenance.prune import keep_to_limit  # noqa: PLC0415  mostly not due

            keep_to_limit(workspace, tip)
    if tip.number == 1:
        upkeep.begin(workspace.repository)
    with suppress(StorageError):
        if workspace.settings.background:
            upkeep.start_if_due(workspace)
        else:
            from gitcp.maintenance import auto_gc  # noqa: PLC0415  loads what merging needs

            auto_gc.after(workspace)
    pack_refs(workspace.repository)
