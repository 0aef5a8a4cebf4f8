"""`gitcp gc`: merges packs and removes garbage."""

from collections.abc import Iterator
from typing import NamedTuple

from gitcp.git.drop_unreachable import drop_unreachable, git_directories, store_locked
from gitcp.git.ended import sweep
from gitcp.git.pack_refs import pack_refs
from gitcp.git.registry import pack_sizes
from gitcp.git.repository import Repository
from gitcp.maintenance import upkeep
from gitcp.maintenance.lost_refs import Lost, kept
from gitcp.project.workspace import Workspace
from gitcp.worktree import journal
from gitcp.worktree.journal import Journal


class Cleaned(NamedTuple):
    """The result of `gc`: packs and their bytes before and after, leftovers removed.

    `dropped` counts removed objects that nothing reached. `waiting` counts those that git
    may rely on: they are removed after its grace period (gc.pruneExpire). `lost` are lines
    of checkpoints that no ref reaches; they were kept, or removed if that was requested.
    """

    packs_before: int
    packs_after: int
    bytes_before: int
    bytes_after: int
    swept: int
    dropped: int
    lost: tuple[Lost, ...] = ()
    waiting: int = 0


def gc(workspace: Workspace, *, drop_lost: bool = False) -> Cleaned:
    """Merges gitcp's packs into one and frees the space of pruned checkpoints.

    Removes no checkpoint, and nothing that git reaches; with `drop_lost`, removes the
    checkpoints that no ref reaches. The caller holds no work tree's lock.

    Raises:
        BusyError: other processes were at work until the timeout.
        CorruptError: a ref of gitcp's is damaged; nothing was removed.
        GitFailedError: a commit or tree is missing; nothing was removed.
        StorageError: the disk refused.
    """
    before = pack_sizes(workspace.repository)
    swept = sweep(workspace.repository)
    timeout = workspace.settings.lock_timeout
    found: list[Lost] = []

    def roots() -> Iterator[str]:
        # With a damaged ref, git 2.32 walks the others and succeeds; newer versions refuse.
        for name in workspace.repository.refs.damaged():
            workspace.repository.refs.read(name)
        found[:] = kept(workspace)
        yield from journals(workspace.repository)
        if not drop_lost:
            yield from (one.tip.commit for one in found)

    with store_locked(workspace.repository, timeout=timeout):
        done = drop_unreachable(workspace.repository, roots=roots, timeout=timeout)
    pack_refs(workspace.repository)
    upkeep.forget(workspace.repository)
    after = pack_sizes(workspace.repository)
    return Cleaned(
        len(before),
        len(after),
        sum(before.values()),
        sum(after.values()),
        swept,
        done.objects,
        tuple(found),
        done.kept,
    )


def open_restores(repository: Repository) -> Iterator[Journal]:
    """Yields the journals of interrupted restores, of all work trees.

    Raises:
        CorruptError: a journal cannot be read, so the commits that it needs are unknown.
    """
    for git_dir in git_directories(repository):
        entry = journal.read(git_dir / "gitcp")
        if entry is not None:
            yield entry


def journals(repository: Repository) -> Iterator[str]:
    """Yields the start and target commits of interrupted restores, in any work tree.

    A prune may have replaced such a commit. Then the restore finds the checkpoint, which
    the prune keeps, by its id.

    Raises:
        CorruptError: a journal cannot be read, so the commits that it needs are unknown.
    """
    for entry in open_restores(repository):
        for commit in (entry.target, entry.before):
            if repository.objects.exists(bytes.fromhex(commit)):
                yield commit
