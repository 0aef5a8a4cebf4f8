"""Refs that git keeps in a form of its own (reftable), read and moved by the git executable.

A change is one transaction of git's: all of it or nothing, with git's lock. git syncs the
list of tables (`core.fsync=reference`); gitcp syncs the tables, whose ends git writes after
it has synced them, and the directory.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import (
    BranchMovedError,
    BusyError,
    GitFailedError,
    GitUnseenError,
    StorageError,
)
from gitcp.format.oid import SHA1, ObjectFormat
from gitcp.git import process
from gitcp.git.access import PRIVATE, Access
from gitcp.git.migrating import Patience, migration
from gitcp.git.ref_names import OURS, deletions, refuse_foreign
from gitcp.git.ref_storage import TABLES, RefStorage, followed

_LIST = "tables.list"
_HEAD = "HEAD"
# Nearly every command needs these, so one call lists them all.
_USUAL = (_HEAD, "CHERRY_PICK_HEAD", "REVERT_HEAD", OURS)
# How often to try to move several refs while other processes move them, too.
_TRIES = 100
# Git's messages if another process changes refs; the second up to 2.46.
_PREPARED = (b"prepare: ok\n", b"")
_BUSY = ("cannot lock references", "data is locked", "outdated")
# Its messages about a ref that is not where gitcp expected it. If gitcp then finds it there, a
# migration has missed another process's change. So often git is asked for one change.
_MOVED = ("reference already exists", "but expected")
_CONTRADICTIONS = 3
# The user's settings may log all changes of refs, and the log would keep removed objects
# reachable. And no sync may be skipped.
_SAFE = (
    "-c",
    "core.logAllRefUpdates=false",
    "-c",
    "core.fsyncMethod=fsync",
    "-c",
    "reftable.lockTimeout=100",
)


class _Known:
    """Git's answers about the refs for these tables, by pattern."""

    def __init__(self, tables: bytes) -> None:
        self.tables = tables
        # Names with their values: a commit, and the ref that a symbolic ref names.
        self.listed: dict[str, dict[str, tuple[str, str]]] = {}


class GitRefs:
    """The refs of a repository, as git lists them; those of all worktrees except HEAD.

    git is asked once for as long as its tables stay the same.
    """

    def __init__(
        self,
        git_dir: Path,
        common_dir: Path,
        access: Access = PRIVATE,
        *,
        form: ObjectFormat = SHA1,
        lock_timeout: float = 10.0,
    ) -> None:
        """Takes the git directories, and how many seconds to wait for the lock of all refs."""
        self._git_dir = git_dir
        self._common = common_dir
        self.access = access
        self._absent = "0" * form.digits
        self._lock_timeout = lock_timeout
        self._known = _Known(b"")
        self.storage = RefStorage(common_dir, TABLES, lock_timeout)

    @property
    def lock_timeout(self) -> float:
        """How many seconds a change waits for another process."""
        return self._lock_timeout

    def _tables(self) -> bytes:
        """Returns which tables hold the refs: git never changes a table, but makes new ones."""
        directories = dict.fromkeys((self._common, self._git_dir))
        return b"\0".join(_content(one / TABLES / _LIST) for one in directories)

    def _listed(self, pattern: str) -> dict[str, tuple[str, str]]:
        """Returns the refs that git lists for a pattern: one, or all below it."""
        # Read this before asking git: if its answer is newer, git is asked again.
        tables = self._tables()
        if not tables:
            self.storage.check()
        known = self._known
        if known.tables != tables:
            # Several threads may each make one at the same time.
            known = self._known = _Known(tables)
        if pattern not in known.listed:
            self._ask(pattern, known)
        return known.listed[pattern]

    def _ask(self, pattern: str, known: _Known) -> None:
        # Before git starts, too: until a migration has named the new storage in the
        # configuration, git looks for refs in the old one.
        self.storage.check()
        try:
            out = self._git(
                "for-each-ref",
                "--include-root-refs",
                "--format=%(objectname) %(refname)%00%(symref)",
                *(_USUAL if pattern in _USUAL else (pattern,)),
            )
        finally:
            self.storage.check()
        found = {}
        for line in os.fsdecode(out).splitlines():
            oid, _, names = line.partition(" ")
            name, _, target = names.partition("\0")
            found[name] = oid, target
        known.listed[pattern] = found
        if pattern in _USUAL:
            known.listed |= dict.fromkeys(_USUAL, found)
            oid, target = found.get(_HEAD, ("", ""))
            if target:
                known.listed[target] = {target: (oid, "")}

    def _git(self, *args: str, data: bytes | None = None) -> bytes:
        env = {"GIT_DIR": str(self._git_dir)}
        return process.run([*_SAFE, *args], cwd=self._git_dir, env=env, data=data)

    @followed
    def symbolic(self, name: str) -> str | None:
        """Returns what a symbolic ref of this worktree points to, or None."""
        found = self._listed(name).get(name)
        if found is not None:
            return found[1] or None
        # git does not list one that names a branch without a commit.
        with suppress(GitFailedError):
            return os.fsdecode(self._git("symbolic-ref", "-q", name)).strip()
        self.storage.check()
        return None

    @followed
    def read(self, name: str) -> str | None:
        """Returns the commit a ref points to, or None."""
        found = self._listed(OURS if name.startswith(OURS) else name).get(name)
        return found[0] if found else None

    def written(self, name: str) -> float | None:  # noqa: ARG002
        """Returns None: a table does not say when one of its refs was written."""
        return None

    @followed
    def list(self, prefix: str) -> dict[str, str]:
        """Returns the refs below a prefix that ends in a slash, sorted by name."""
        found = self._listed(OURS if prefix.startswith(OURS) else prefix)
        return {
            name: oid
            for name, (oid, target) in sorted(found.items())
            if name.startswith(prefix) and not target
        }

    @followed
    def any(self, prefix: str) -> bool:
        """Whether there is a ref below the prefix."""
        return bool(self.list(prefix))

    def signature(self, prefix: str) -> object:  # noqa: ARG002
        """Returns a value that changes when a ref does, of any prefix."""
        return self._tables()

    def damaged(self, prefix: str = OURS) -> Iterator[str]:  # noqa: ARG002
        """Yields nothing: a damaged table is an error of git's whenever it is read."""
        return iter(())

    def drop_damaged(self, name: str, staged: Path) -> None:
        """Does nothing: see `damaged`."""

    def crowd(self, prefix: str) -> int:  # noqa: ARG002
        """Returns 0: git keeps its tables few by itself."""
        return 0

    def locks(self) -> Iterator[Path]:
        """Yields the lock of all refs if it exists; gitcp itself never holds it."""
        lock = self._common / TABLES / f"{_LIST}.lock"
        return iter((lock,) if lock.exists() else ())

    def compare_and_swap(
        self,
        name: str,
        *,
        expect: str | None,
        new: str,
        staged: Path,  # noqa: ARG002
    ) -> None:
        """Points a ref at `new` only if it is at `expect`; durable on return.

        None stands for absence.

        Raises:
            BranchMovedError: the ref is elsewhere.
            BusyError: another process held git's lock for `lock_timeout` seconds.
            StorageError: git could not. The ref may have moved if the disk refused the
                last sync; reading it again tells.
        """
        refuse_foreign(name)
        self._commit({name: (expect, new)}, f"moving {name}")

    def move_together(
        self,
        names: Iterable[str],
        decide: Callable[[], Mapping[str, str]],
        store: Callable[[], None],
    ) -> dict[str, tuple[str, str]]:
        """Moves several refs at one moment, or none; durable on return.

        `decide` returns their new values, `store` makes the objects durable. If one of
        them moves meanwhile, both are called again. Returns the old and the new value of
        each ref that moved.

        Raises:
            BranchMovedError: the refs kept moving.
            BusyError, StorageError: as `compare_and_swap`; nothing moved.
        """
        chosen = sorted(set(names))
        for name in chosen:
            refuse_foreign(name)
        for last in (*[False] * _TRIES, True):
            # In this order: `decide` reads values at least as new, and git compares with
            # these.
            before = {name: self.read(name) for name in chosen}
            moved = {
                name: (old, new)
                for name, new in decide().items()
                if (old := before[name]) is not None and old != new
            }
            store()
            try:
                self._commit(moved, "moving branches")
            except BranchMovedError:
                if last:
                    raise
            else:
                return moved
        raise AssertionError

    def _commit(self, moves: Mapping[str, tuple[str | None, str]], doing: str) -> None:
        if not moves:
            return
        lines = [
            f"update {name} {new} {expect or self._absent}"
            for name, (expect, new) in moves.items()
        ]
        for tries_left in reversed(range(_CONTRADICTIONS)):
            try:
                self._update(lines, doing)
            except GitFailedError as exc:
                self._refuse_moved(moves, exc)
                if not tries_left or not any(words in exc.message for words in _MOVED):
                    raise StorageError(
                        f"{doing} failed: {exc.message}", hint=exc.hint
                    ) from exc
            else:
                return

    def _refuse_moved(
        self, moves: Mapping[str, tuple[str | None, str]], cause: GitFailedError
    ) -> None:
        for name, (expect, _) in moves.items():
            found = self.read(name)
            if found != expect:
                raise BranchMovedError(
                    f"{name} moved from {expect or 'nothing'} to {found or 'nothing'}",
                    hint="run the command again",
                ) from cause

    def _update(self, lines: Iterable[str], doing: str) -> None:
        """Has git change refs in one transaction, durably.

        Raises:
            BusyError: another process held git's lock for `lock_timeout` seconds.
            GitFailedError: git would not, or could not.
            StorageError: the last sync failed.
        """
        changes = [line.encode() for line in lines]
        patience = Patience(self._common)

        def attempt() -> bool | None:
            self.storage.check()
            try:
                return self._change(changes)
            except GitFailedError as exc:
                self.storage.check()
                if any(words in exc.message for words in _BUSY):
                    return None
                if isinstance(exc, GitUnseenError) and patience.lasts():
                    return None
                raise

        if not durable.until(attempt, timeout=self._lock_timeout):
            raise self._busy()
        try:
            with durable.storage(doing):
                _sync(self._common / TABLES)
        finally:
            self.storage.check()

    def _change(self, changes: Iterable[bytes]) -> bool | None:
        """Makes git change refs, unless other processes have moved them when it gets its lock."""
        running = process.start(
            [*_SAFE, "update-ref", "--no-deref", "--stdin"],
            cwd=self._git_dir,
            env={"GIT_DIR": str(self._git_dir)},
            stdin=process.PIPE,
        )
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            running.stdin.write(b"\n".join([b"start", *changes, b"prepare", b""]))
            running.stdin.flush()
        except BrokenPipeError:
            # git has given up, and says why. Python would fail if it got more to write.
            process.finish(running)
            return None
        while running.stdout.readline() not in _PREPARED:
            pass
        if migration(self._common) is not None:
            process.finish(running, b"abort\n")
            return None
        process.finish(running, b"commit\n")
        return True

    def _busy(self) -> BusyError:
        lock = self._common / TABLES / f"{_LIST}.lock"
        return BusyError(
            "the refs are locked by another process",
            hint=f"if no git command is running, remove {lock}",
        )

    def delete(self, refs: Mapping[str, str | None]) -> None:
        """Deletes refs: all of them, or none.

        A ref that comes with a commit is deleted only while it points there.

        Raises:
            GitFailedError: a ref points elsewhere, or git failed.
            UnsafePathError: a name is not one of gitcp's refs.
        """
        if lines := deletions(refs):
            self._update(lines, "deleting refs")


def _sync(directory: Path) -> None:
    """Makes the tables and their names durable.

    Up to 2.55 git syncs a table before it writes the last 68 or 72 bytes, without which
    it reads no ref at all (0093). The tables first: the sync of a directory may make
    their names durable before what is in them.
    """
    synced: set[str] = set()
    while missing := set(_content(directory / _LIST).decode().split()) - synced:
        for name in missing:
            # If git merged tables meanwhile, the list names another.
            with suppress(FileNotFoundError):
                durable.sync_file(directory / name)
        synced |= missing
    durable.sync_directory(directory)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
