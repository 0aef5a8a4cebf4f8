"""Removes everything of gitcp's from a repository: checkpoints, settings, state."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import (
    BusyError,
    CorruptError,
    FormatTooNewError,
    GitFailedError,
    RestoreInterruptedError,
)
from gitcp.format import layout
from gitcp.git.drop_unreachable import (
    drop_unreachable,
    git_directories,
    store_locked,
)
from gitcp.git.reachable import Reachable
from gitcp.git.registry import KEPT, PACKS, Registry
from gitcp.git.repository import Repository
from gitcp.git.staying import staying
from gitcp.maintenance.gc import journals, open_restores
from gitcp.project.workspace import Workspace
from gitcp.store.salvage import every_commit

_REFS = "refs/gitcp/"
_STATE = "gitcp"
_NUMBERS = "gitcp-numbers"
_SECTION = "gitcp."
_PACKS = (PACKS, KEPT)


class OnlyHere(NamedTuple):
    """A branch whose newest checkpoint is on no remote, as far as the tracking refs know."""

    session: str
    branch: str
    commit: str


class InRepository(NamedTuple):
    """The data of gitcp in a repository, except hooks.

    `refs` counts all refs of gitcp's, `branches` those of sessions made or pulled here.
    `settings` are names of the repository's own configuration; `state` are files and
    directories. `packs` are gitcp's own, which may hold objects that no ref reaches.
    """

    refs: int
    branches: int
    only_here: tuple[OnlyHere, ...]
    settings: tuple[str, ...]
    state: tuple[Path, ...]
    packs: int = 0

    @property
    def stored(self) -> bool:
        """Whether `delete_checkpoints` would remove anything."""
        return bool(self.refs or self.packs)


class Remains(NamedTuple):
    """The objects that deleted checkpoints leave behind.

    `objects` counts those that are still there although nothing reaches them: they are in
    git's own packs, or loose. `used` counts those that were removed from packs that git had
    used: git, or a clone that borrows from here, may have a copy.
    """

    objects: int = 0
    used: int = 0


def survey(workspace: Workspace) -> InRepository:
    """Returns the data that `remove_state` and `delete_checkpoints` would remove.

    Raises:
        RestoreInterruptedError: a restore was interrupted in one of the work trees.
        GitFailedError: git cannot read its configuration or walk the checkpoints.
    """
    repository = workspace.repository
    for _ in open_restores(repository):
        raise RestoreInterruptedError(
            "a restore was interrupted here, or in a linked work tree",
            hint="finish it with `gitcp restore --continue`, or undo it with `gitcp"
            " restore --abort`",
        )
    refs = repository.refs
    return InRepository(
        len(refs.list(_REFS)) + len(list(refs.damaged(_REFS))),
        len(workspace.store.refs()),
        tuple(_only_here(workspace)),
        tuple(name for _, name in _settings(repository)),
        tuple(path for path in _state(repository) if os.path.lexists(path)),
        sum(len(Registry(repository, listed).names()) for listed in _PACKS),
    )


def state_directories(workspace: Workspace) -> list[Path]:
    """Returns the directories with gitcp's state of each work tree."""
    return [one / _STATE for one in git_directories(workspace.repository)]


def delete_checkpoints(workspace: Workspace) -> Remains:
    """Deletes every checkpoint and ledger, and all objects that only they reached.

    Like a purge, it does not wait for git's grace period in gitcp's own packs. Objects that
    git itself has packed, or written loose, stay until git removes them. If it fails after
    the refs are deleted, a second call removes the objects.

    Raises:
        BusyError: another process is at work.
        GitFailedError: git could not delete a ref, or walk the objects that it reaches.
        StorageError: the disk refused.
    """
    repository = workspace.repository
    timeout = workspace.settings.lock_timeout
    ours = _objects(repository)
    with _all_locked(workspace), durable.storage("deleting the checkpoints"):
        repository.refs.delete(dict(repository.refs.list(_REFS)))
        # Only damaged refs and empty directories are left.
        for directory in (repository.common_dir, repository.common_dir / "logs"):
            _remove(directory / _REFS)
    try:
        with store_locked(repository, timeout=timeout):
            done = drop_unreachable(
                repository,
                roots=lambda: journals(repository),
                purged=None,
                timeout=timeout,
            )
    except BusyError as exc:
        raise BusyError(
            f"{exc.message}; the objects of the deleted checkpoints are still there",
            hint="run the command again: it removes them",
        ) from exc
    return Remains(len(staying(repository, ours).unneeded), done.taken)


def _objects(repository: Repository) -> set[bytes]:
    """Returns all objects that gitcp's commits reach, even commits that no ref reaches."""
    reach = Reachable(repository, set(every_commit(repository)))
    return reach.from_commits(oid.hex() for oid in reach.own_commits())


def remove_settings(workspace: Workspace) -> None:
    """Removes the section `gitcp` from the repository's own configuration.

    Raises:
        GitFailedError: git could not write it.
    """
    sections = {
        (where, name.rpartition(".")[0])
        for where, name in _settings(workspace.repository)
    }
    for where, section in sorted(sections):
        workspace.repository.git("config", where, "--remove-section", section)


def remove_state(workspace: Workspace) -> None:
    """Removes gitcp's files beside the objects, of all work trees, for good.

    Raises:
        BusyError: a checkpoint was saved meanwhile; nothing was removed.
        StorageError: the disk refused.
    """
    repository = workspace.repository
    with _all_locked(workspace), durable.storage("removing gitcp's own files"):
        if repository.refs.any(_REFS):
            raise BusyError(
                "a checkpoint was saved meanwhile",
                hint="stop the agents that work here, then run the command again",
            )
        for path in _state(repository):
            _remove(path)


# --- what there is --------------------------------------------------------------------


def _only_here(workspace: Workspace) -> Iterator[OnlyHere]:
    own = workspace.store.refs()
    refs = workspace.repository.refs
    elsewhere = set(refs.list(layout.REMOTES).values())
    unknown = {oid for oid in own.values() if oid not in elsewhere}
    if unknown and elsewhere:
        wanted = [*sorted(unknown), *(f"^{oid}" for oid in sorted(elsewhere))]
        # git does not walk what a remote has, so it lists only tips that no remote has.
        listed = workspace.repository.plumbing(
            "rev-list", "--stdin", data="".join(f"{one}\n" for one in wanted).encode()
        )
        unknown &= set(listed.decode().split())
    for key, oid in own.items():
        if oid in unknown:
            session, branch = key
            with suppress(CorruptError, FormatTooNewError):
                session, branch = workspace.store.names(key, oid)
            yield OnlyHere(session, branch, oid)


def _settings(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yields the file and the name of each setting of gitcp's in this repository."""
    for where in ("--local", "--worktree"):
        with suppress(GitFailedError):
            names = repository.git("config", where, "--list", "--name-only", "-z")
            found = set(names.decode("utf-8", "surrogateescape").split("\0"))
            yield from (
                (where, name) for name in sorted(found) if name.startswith(_SECTION)
            )
        # Without that extension, both options mean the same file.
        if not repository.flag("extensions.worktreeconfig"):
            return


def _state(repository: Repository) -> list[Path]:
    directories = [one / _STATE for one in git_directories(repository)]
    # The directory that all work trees share comes last, because it has the keys.
    return [*directories[1:], repository.common_dir / _NUMBERS, directories[0]]


# --- removing -------------------------------------------------------------------------


@contextmanager
def _all_locked(workspace: Workspace) -> Iterator[None]:
    """Holds the locks of all work trees, so that none is saved or restored meanwhile."""
    with ExitStack() as stack:
        for directory in git_directories(workspace.repository):
            lock = directory / _STATE / "worktree.lock"
            if lock.exists():
                stack.enter_context(
                    durable.locked(
                        lock,
                        what=f"the work tree of {directory}",
                        timeout=workspace.settings.lock_timeout,
                    )
                )
        yield


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
        durable.sync_directory(path.parent)
    else:
        durable.remove(path)
