"""A repository: its directories, configuration, objects, refs, and git run in it."""

import os
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gitcp.at_fork import computed
from gitcp.format.oid import SHA1, ObjectFormat
from gitcp.git import access, area, configuration, process, questions
from gitcp.git.configuration import NONE, Listed, Sources
from gitcp.git.libgit import LibgitObjects
from gitcp.git.objects import Objects
from gitcp.git.ref_storage import settled
from gitcp.git.refs import FileRefs
from gitcp.git.served import check_supported

if TYPE_CHECKING:
    from gitcp.git.git_refs import GitRefs

_OPERATIONS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)
# Of these, what git keeps as a ref, wherever it keeps refs.
_REFS = frozenset({"CHERRY_PICK_HEAD", "REVERT_HEAD"})


def open_objects(common_dir: Path, form: ObjectFormat) -> Objects:
    """Returns the object database of a git directory."""
    if form is SHA1:
        return LibgitObjects(common_dir / "objects")
    # libgit2 knows ids with SHA-1 only.
    from gitcp.git.executable import GitObjects  # noqa: PLC0415

    return GitObjects(common_dir, form)


def naming(repository: "Repository") -> dict[str, str]:
    """Returns the environment that names a git directory where git does not find it."""
    if repository.top is None:
        return {"GIT_DIR": str(repository.git_dir)}
    if repository.private:
        top = str(repository.top)
        return {"GIT_DIR": str(repository.git_dir), "GIT_WORK_TREE": top}
    return {}


def follow_refs(repository: "Repository", left: object) -> "FileRefs | GitRefs":
    """Opens the refs where `git refs migrate` has put them, unless that is done.

    `left` are the refs that are not there any more.

    Raises:
        BusyError: the migration does not end.
    """
    if repository.refs is left:
        timeout = repository.refs.lock_timeout
        repository.ref_storage = settled(repository.common_dir, timeout)
        repository.wait_for_locks(timeout)
    return repository.refs


def _follow(
    known: "weakref.ref[Repository]", left: object
) -> "FileRefs | GitRefs | None":
    repository = known()
    return follow_refs(repository, left) if repository is not None else None


class Repository:
    """A git repository as gitcp sees it: directories, configuration, objects, refs.

    Objects are read in this process; everything else that git must do is done by
    the git executable.
    """

    def __init__(
        self,
        git_dir: Path,
        common_dir: Path,
        *,
        form: ObjectFormat = SHA1,
        listed: Listed = NONE,
        since: int = 0,
    ) -> None:
        """Takes the git directories, what its ids are, and what `git config` listed.

        `since` is the time before git began to list, in nanoseconds.
        """
        self.git_dir = git_dir
        self.common_dir = common_dir
        # What all worktrees share: locks, pack list, transactions.
        self.store_dir = common_dir / area.NAME
        # What is this worktree's: scan state, journal, current session.
        self.worktree_dir = git_dir / area.NAME
        # The name of a linked worktree; None in the main one.
        self.worktree_name = None if git_dir == common_dir else git_dir.name
        self.config = listed.values
        # The same as git prints it: in its order, and names as they are written.
        self.config_items = listed.items
        self.top: Path | None = None
        # Whether git does not find it from its work tree, a folder without git.
        self.private = False
        self.access = access.parse(self.setting("core.sharedrepository"))
        self.form = form
        self.ref_storage = self.setting("extensions.refstorage") or "files"
        self.refs = self._open_refs(10.0)
        self._listed = listed
        self._since = since
        self._sources: Sources | None = None

    @computed
    def objects(self) -> Objects:
        """The object database; pygit2 is imported on first use."""
        found = open_objects(self.common_dir, self.form)
        if any(name.endswith(".promisor") for name in self.config):
            from gitcp.git import promised  # noqa: PLC0415

            found.fetch = partial(promised.fetch, self.git_dir, self.config)
        return found

    def with_lock_timeout(self, seconds: float) -> Self:
        """Returns this repository, waiting so many seconds for the lock of a ref."""
        # As `copy.copy` would; its module is not worth loading in each hook.
        same = object.__new__(type(self))
        vars(same).update(vars(self))
        same.wait_for_locks(seconds)
        return same

    def wait_for_locks(self, seconds: float) -> None:
        """Waits so many seconds for the lock of a ref from now on.

        For a program that keeps the repository open while its settings change.
        """
        self.refs = self._open_refs(seconds)

    def _open_refs(self, lock_timeout: float) -> "FileRefs | GitRefs":
        kind: type[FileRefs | GitRefs] = FileRefs
        if self.ref_storage != "files":
            from gitcp.git import git_refs  # noqa: PLC0415

            kind = git_refs.GitRefs
        opened = kind(
            self.git_dir,
            self.common_dir,
            self.access,
            form=self.form,
            lock_timeout=lock_timeout,
        )
        # Weak, as the processes of a repository end with it, and no cycle may keep it.
        opened.storage.follow = partial(_follow, weakref.ref(self))
        return opened

    def make_directory(self, directory: Path) -> None:
        """Makes a directory of gitcp's own, in `store_dir` or `worktree_dir`, durably.

        Raises:
            UnsupportedRepositoryError: a directory of the path is a link, or another user's.
            OSError: the disk refused.
        """
        inside = directory.is_relative_to(self.store_dir)
        top = self.store_dir if inside else self.worktree_dir
        area.make(top, directory, self.access)

    @computed
    def own_paths(self) -> frozenset[bytes]:
        """The paths of git directories in the work tree, other than `.git`."""
        if self.top is None:
            return frozenset()
        plain = self.top / ".git"
        if self.git_dir == self.common_dir == plain and not plain.is_symlink():
            return frozenset()
        top = os.fsencode(self.top) + b"/"
        found = {
            os.fsencode(os.path.realpath(path))
            for path in (self.git_dir, self.common_dir)
        }
        return frozenset(
            path.removeprefix(top) for path in found if path.startswith(top)
        ) - {b".git"}

    def setting(self, name: str) -> str | None:
        """Returns the last value of a configuration variable, by lower-case name."""
        values = self.config.get(name)
        return values[-1] if values else None

    def flag(self, name: str) -> bool:
        """Returns a boolean configuration variable; absent is false."""
        value = self.setting(name)
        return value is not None and value.lower() in {"", "true", "yes", "on", "1"}

    def reread(self) -> None:
        """Reads the configuration again if one of its files has changed since.

        Raises:
            GitFailedError: git cannot read it now; what was read before stays in force.
            UnsupportedRepositoryError: gitcp does not serve the repository any more.
        """
        if self._sources is None:
            self._sources = self._sources_of(self._listed, self._since)
        if not self._sources.changed():
            return
        since = configuration.now()
        listed = configuration.parse(self.git(*questions.LIST))
        check_supported(self.common_dir, listed.values, self.form.name)
        if listed.values != self.config:
            self.config = listed.values
            self.config_items = listed.items
            self.access = access.parse(self.setting("core.sharedrepository"))
            storage = self.setting("extensions.refstorage") or "files"
            if storage != self.ref_storage:
                self.ref_storage = storage
                self.wait_for_locks(self.refs.lock_timeout)
            self.refs.access = self.access
        self._sources = self._sources_of(listed, since)

    def _sources_of(self, listed: Listed, since: int) -> Sources:
        return Sources(
            listed,
            base=self._place,
            git_dir=self.git_dir,
            common_dir=self.common_dir,
            since=since,
        )

    @property
    def _place(self) -> Path:
        return self.top or self.git_dir

    def git(self, *args: str | bytes, data: bytes | None = None) -> bytes:
        """Runs git in this repository and returns its stdout.

        Raises:
            GitFailedError: git failed.
        """
        return process.run(args, cwd=self._place, env=naming(self), data=data)

    def plumbing(
        self,
        *args: str | bytes,
        data: bytes | None = None,
        timeout: float | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> bytes:
        """Runs git on what all work trees share, with no work tree.

        Raises:
            GitFailedError: git failed.
            GitTimeoutError: git took more than `timeout` seconds, and was killed.
            GitStoppedError: `stop` said so, and it was killed.
        """
        env = {"GIT_DIR": str(self.common_dir)}
        place = self.common_dir
        return process.run(
            args, cwd=place, env=env, data=data, timeout=timeout, stop=stop
        )

    def run(
        self,
        *args: str | bytes,
        environment: Mapping[str, str],
        data: bytes | None = None,
    ) -> bytes:
        """Runs git in the work tree with more environment and returns its stdout.

        Raises:
            GitFailedError: git failed.
        """
        env = {**naming(self), **environment}
        return process.run(args, cwd=self._place, env=env, data=data)

    def start(
        self,
        *args: str,
        environment: Mapping[str, str],
        feed: bool = False,
        cwd: Path | None = None,
    ) -> process.Process:
        """Starts git, in the work tree by default; with `feed`, its stdin is a pipe."""
        return process.start(
            args,
            cwd=cwd or self._place,
            env={**naming(self), **environment},
            stdin=process.PIPE if feed else process.NOTHING,
        )

    def head(self) -> tuple[str | None, str | None]:
        """Returns HEAD's commit and the checked-out branch, each or None."""
        target = self.refs.symbolic("HEAD")
        branch = target.removeprefix("refs/heads/") if target else None
        return self.refs.read(target or "HEAD"), branch

    def operation(self) -> str | None:
        """Returns the merge, rebase or the like that is under way."""
        for name, operation in _OPERATIONS:
            if (self.git_dir / name).exists():
                return operation
        if self.ref_storage != "files":
            for name, operation in _OPERATIONS:
                if name in _REFS and self.refs.read(name):
                    return operation
        return None

    def anchor(self) -> str | None:
        """Returns the newest ancestor of HEAD that a remote-tracking branch holds."""
        head, _ = self.head()
        if head is None or not self.refs.any("refs/remotes/"):
            return None
        out = self.git("rev-list", "--boundary", head, "--not", "--remotes").split()
        if not out:
            return head
        for word in out:
            if word.startswith(b"-"):
                return word[1:].decode()
        return None
