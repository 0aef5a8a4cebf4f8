"""A work tree with its store: the context of every operation."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gitcp import durable
from gitcp.errors import (
    BusyError,
    NotARepositoryError,
    StorageError,
    UnsupportedRepositoryError,
)
from gitcp.git import area
from gitcp.git.discover import discover
from gitcp.git.repository import Repository
from gitcp.ledger.ledgers import Ledgers
from gitcp.names import check_typed
from gitcp.project.following import Following
from gitcp.project.settings import Settings
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import FilesState
from gitcp.store.store import Store
from gitcp.wal import log_file
from gitcp.worktree import journal

if TYPE_CHECKING:
    from gitcp.worktree.capture import Capture
    from gitcp.worktree.files import Root
    from gitcp.worktree.snapshot import Snapshot

MAIN = "main"

# A task for after a save; the checkpoint is saved, so it must not fail.
AfterSave = Callable[["Workspace", Checkpoint], None]


class Current(msgspec.Struct, frozen=True):
    """The session and branch that a work tree is on."""

    session: str
    branch: str

    def named(self, spec: str) -> "Current":
        """Returns the branch that `SESSION[/BRANCH]` names if this is the current branch.

        Raises:
            UsageError: a name is not usable.
        """
        session, slash, branch = spec.partition("/")
        check_typed(session, "session")
        if slash:
            return Current(session, check_typed(branch, "branch"))
        return Current(session, self.branch if session == self.session else MAIN)


class Workspace:
    """A project to make checkpoints of, or a bare repository with checkpoints."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        *,
        following: Following | None = None,
    ) -> None:
        self.repository = repository
        self.settings = settings
        self.ledgers = Ledgers(repository)
        self.store = Store(repository, ledger_position=self.ledgers.position)
        self._following = following
        # The time by which a hook has to end, by `time.monotonic`.
        self.deadline: float | None = None
        # The descriptor of this work tree's lock, while it is held.
        self.lock: int | None = None

    def with_lock_timeout(
        self, seconds: float, *, refs: float | None = None
    ) -> "Workspace":
        """Returns this workspace, but waiting at most so many seconds for locks.

        `refs` is the time for locks of refs, if it differs.
        """
        shorter = min(self.settings.lock_timeout, seconds)
        for_refs = min(
            self.repository.refs.lock_timeout, seconds if refs is None else refs
        )
        workspace = Workspace(
            self.repository.with_lock_timeout(for_refs),
            self.settings._replace(lock_timeout=shorter),
        )
        workspace.store.allowance.limit = self.store.allowance.limit
        workspace.deadline = self.deadline
        return workspace

    def refresh(self) -> None:
        """Applies settings that changed since the last operation began.

        Every operation that a program may repeat begins with this. It does nothing in a
        workspace that was opened for one command.

        Raises:
            UsageError: a value makes no sense.
            GitFailedError: git cannot read its configuration.
            UnsupportedRepositoryError: gitcp does not serve the repository any more.
        """
        if self._following is not None:
            self.settings = self._following.now()

    @property
    def bare(self) -> bool:
        """Whether there is no work tree: only stored checkpoints can be used."""
        return self.repository.top is None

    @property
    def top(self) -> Path:
        """The top of the work tree.

        Raises:
            UnsupportedRepositoryError: the repository is bare.
        """
        if self.repository.top is None:
            raise UnsupportedRepositoryError(
                f"{self.repository.git_dir} is a bare repository: it has no files",
                hint="run this in a clone or a worktree of it",
            )
        return self.repository.top

    @property
    def directory(self) -> Path:
        """The directory of this work tree's own state."""
        return self.repository.worktree_dir

    @property
    def private_store(self) -> str | None:
        """The name of the private store of a folder without git; None in a repository."""
        repository = self.repository
        return repository.git_dir.parent.name if repository.private else None

    # --- current session ----------------------------------------------------------

    def current(self) -> Current:
        """Returns the session and branch last saved to, forked to or switched to.

        The default is `main/main`, in a linked worktree the worktree's name.
        """
        return self.noted() or Current(self.repository.worktree_name or MAIN, MAIN)

    def noted(self) -> Current | None:
        """Returns the branch last saved to, forked to or switched to here; None if never."""
        try:
            raw = (self.directory / "current.json").read_bytes()
            return msgspec.json.decode(raw, type=Current)
        except (OSError, msgspec.MsgspecError):
            return None

    def make_current(self, session: str, branch: str) -> None:
        """Makes a branch the current one of this work tree."""
        if self.current() == Current(session, branch) and self._has("current.json"):
            return
        with durable.storage("noting the current session"):
            self.repository.make_directory(self.directory)
            durable.replace(
                self.directory / "current.json",
                msgspec.json.encode(Current(session, branch)),
            )

    def _has(self, name: str) -> bool:
        return (self.directory / name).exists()

    # --- files --------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds this work tree's lock.

        Raises:
            BusyError: another save or restore kept it.
        """
        with durable.storage("preparing"):
            self.repository.make_directory(self.directory)
        with durable.locked(
            self.directory / "worktree.lock",
            what=f"the work tree {self.repository.top or self.repository.git_dir}",
            timeout=self.settings.lock_timeout,
        ) as lock:
            self.lock = lock
            try:
                yield
            finally:
                self.lock = None

    def is_interrupted(self) -> bool:
        """Whether a restore was interrupted here; a running restore does not count."""
        if not journal.is_open(self.directory):
            return False
        with suppress(FileNotFoundError):
            held = durable.try_lock(self.directory / "worktree.lock", create=False)
            if held is None:
                return False
            durable.unlock(held)
        return journal.is_open(self.directory)

    def refuse_if_interrupted(self) -> None:
        """Raises if a restore was interrupted here; waits for a running restore.

        Raises:
            RestoreInterruptedError: a restore was interrupted.
            BusyError: a restore is running, and takes too long.
        """
        if journal.is_open(self.directory):
            # The journal may belong to a restore still running; take its lock first.
            with self.locked():
                journal.refuse_if_open(self.directory)

    def root(self) -> "Root":
        """Returns the work tree to read and write, without the git directories in it."""
        from gitcp.worktree.files import Root  # noqa: PLC0415

        # The git directories may be in the work tree, under any name.
        own = map(os.stat, {self.repository.git_dir, self.repository.common_dir})
        return Root(self.top, frozenset((one.st_dev, one.st_ino) for one in own))

    @contextmanager
    def capturing(
        self,
        include: tuple[str, ...] = (),
        *,
        chunked: bool = True,
        watched: bool = False,
        backups: bool = True,
    ) -> "Iterator[Capture]":
        """Opens the work tree for capture; git's comparison starts at once.

        Without `chunked`, no file is stored in chunks, no matter how large. `watched` trusts
        the user's watcher, except to decide whether a file may be overwritten. Without
        `backups`, a database and its log are captured as plain files, because a restore
        replaces those.
        """
        # Commands that only read do not need these modules.
        from gitcp.worktree.capture import Capture  # noqa: PLC0415
        from gitcp.worktree.scan import Rules  # noqa: PLC0415

        rules = Rules(
            self.settings.max_file_size,
            self.settings.include + include,
            self.settings.exclude,
            self.settings.chunk_above if chunked else 0,
            self.deadline,
            watched,
            backups,
        )
        with self.root() as root:
            capture = Capture(self.repository, root, rules)
            try:
                capture.begin()
                yield capture
            finally:
                capture.abandon()

    def reading(self) -> AbstractContextManager[None]:
        """Keeps the objects that are read inside, even if they are pruned meanwhile."""
        # Commands that change something do not need this module.
        from gitcp.git.read_lock import reading  # noqa: PLC0415

        return reading(self.repository)


def may_have_been_private(workspace: Workspace) -> bool:
    """Whether the folder may have had a private store before `git init`; a quick check."""
    return not workspace.repository.private and area.private_stores().is_dir()


def open_workspace(
    directory: str | os.PathLike[str], *, bare: bool = False, lasting: bool = False
) -> Workspace:
    """Returns the workspace around a directory.

    With `bare`, the directory may be a bare repository itself: an adapter's store. A bare
    repository around the directory does not count. With `lasting`, for a program that
    keeps the workspace open, later changes of settings take effect.

    Raises:
        NotARepositoryError: there is no repository.
        UnsupportedRepositoryError: gitcp cannot serve it.
    """
    repository = _bare(Path(directory)) if bare else None
    repository = repository or discover(directory)
    settings = Settings.of(repository)
    repository = repository.with_lock_timeout(settings.lock_timeout)
    if log_file.names(repository):
        # A LangGraph thread is durable before git has it (docs/format.md, 16). If the disk
        # refuses now, still show what git has.
        from gitcp.project.recovery import drain_logs  # noqa: PLC0415  rarely needed

        with suppress(StorageError, BusyError):
            drain_logs(repository)
    following = Following(repository) if lasting else None
    workspace = Workspace(repository, settings, following=following)
    workspace.store.allowance.limit = settings.sharing.extent
    return workspace


def _bare(directory: Path) -> Repository | None:
    if not (directory / "HEAD").is_file():
        return None
    try:
        repository = discover(directory, worktree=False)
    except NotARepositoryError:
        # The folder only has a file with this name, and no git.
        return None
    named = repository.flag("core.bare") and os.path.samefile(
        repository.git_dir, directory
    )
    return repository if named else None


def files_of(snapshot: "Snapshot") -> FilesState:
    """Returns the part of a snapshot that goes into a checkpoint."""
    return FilesState(
        snapshot.tree,
        frozenset(snapshot.empty),
        snapshot.skipped,
        lists=snapshot.lists,
    )
