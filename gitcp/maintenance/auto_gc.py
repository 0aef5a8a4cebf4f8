"""`gitcp gc --auto`: merges packs and keeps to `gitcp.maxSize`, if due."""

import time
from contextlib import suppress
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.errors import GitcpError
from gitcp.git.consolidate import MergeTooLongError, consolidate
from gitcp.git.registry import Registry, pack_sizes
from gitcp.git.repository import Repository
from gitcp.maintenance.upkeep import read_note, size_due, upkeep_lock, write_note
from gitcp.project.workspace import Workspace

# A run merges for at most so many seconds, with the lowest priority.
BUDGET = 120.0


class Upkept(NamedTuple):
    """The result of a run: packs and their bytes before and after, checkpoints removed."""

    packs_before: int
    packs_after: int
    bytes_before: int
    bytes_after: int
    removed: int = 0


def run(workspace: Workspace) -> Upkept:
    """Does the upkeep that is due, for a limited time; returns the result.

    Raises:
        BusyError: another process uses the store.
        StorageError: the disk refused.
    """
    repository = workspace.repository
    before = pack_sizes(workspace.repository)
    with durable.storage("preparing"):
        repository.make_directory(repository.store_dir)
        held = upkeep_lock(repository)
    removed = 0
    if held is not None:
        try:
            _merge(repository)
            removed = keep_to_size(workspace)
        finally:
            durable.unlock(held)
    after = pack_sizes(workspace.repository)
    return Upkept(
        len(before), len(after), sum(before.values()), sum(after.values()), removed
    )


def _merge(repository: Repository) -> None:
    note = read_note(repository)
    deadline = time.monotonic() + BUDGET
    largest = note.largest
    try:
        consolidate(repository, deadline=deadline, largest=largest)
    except MergeTooLongError as exc:
        # The next run merges fewer bytes; a merge that takes longer is left to `gitcp gc`.
        largest = exc.size // 2
    left = len(Registry(repository).names())
    note = read_note(repository)
    write_note(repository, msgspec.structs.replace(note, left=left, largest=largest))


def keep_to_size(workspace: Workspace) -> int:
    """Prunes for `maxSize`, if due; returns how many checkpoints were removed."""
    if not size_due(workspace, read_note(workspace.repository)):
        return 0
    from gitcp.maintenance.size_limit import prune_to_size  # noqa: PLC0415  rarely due

    return prune_to_size(workspace)


def after(workspace: Workspace) -> None:
    """Does the upkeep that is due, in this process; in a hook with a deadline, only merges."""
    consolidate(workspace.repository)
    if workspace.deadline is None:
        with suppress(GitcpError):
            keep_to_size(workspace)
