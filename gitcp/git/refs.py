"""Refs in files: read, list, and one durable compare-and-swap (docs/format.md, 9).

git's own protocol (`<ref>.lock`, then rename) is kept, so that `git pack-refs`,
`git update-ref` and gitcp exclude each other. libgit2's transactions are not used:
they do not sync, leave locks without an owner, and tell contention only by text.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from gitcp import durable
from gitcp.errors import BranchMovedError, BusyError, CorruptError
from gitcp.format.oid import SHA1, ObjectFormat
from gitcp.git import process, ref_locks
from gitcp.git.access import PRIVATE, Access
from gitcp.git.own_file import read_regular
from gitcp.git.ref_names import OURS, deletions, refuse_foreign
from gitcp.git.ref_storage import FILES, RefStorage, followed

_SYMBOLIC = "ref: "
# The content of HEAD if the refs are not in files.
_NOT_HERE = "refs/heads/.invalid\n"
_HEX = frozenset("0123456789abcdefABCDEF")


class Refs(Protocol):
    """What gitcp needs of refs, wherever they are kept; see `FileRefs` for each method.

    Commits are hex digits.
    """

    @property
    def lock_timeout(self) -> float:
        """How many seconds a change waits for another process."""

    def symbolic(self, name: str) -> str | None:
        """Returns what a symbolic ref of this worktree points to, or None."""

    def read(self, name: str) -> str | None:
        """Returns the commit a ref points to, or None."""

    def list(self, prefix: str) -> dict[str, str]:
        """Returns the refs below a prefix that ends in a slash, sorted by name."""

    def any(self, prefix: str) -> bool:
        """Whether there is a ref below the prefix."""

    def signature(self, prefix: str) -> object:
        """Returns a value that changes when a ref directly below a prefix does."""

    def compare_and_swap(
        self, name: str, *, expect: str | None, new: str, staged: Path
    ) -> None:
        """Points a ref at `new` only if it is at `expect`; durable on return."""

    def delete(self, refs: Mapping[str, str | None]) -> None:
        """Deletes refs: all of them, or none."""


class FileRefs:
    """The refs of a repository, as hex digits; those of all worktrees but HEAD."""

    def __init__(
        self,
        git_dir: Path,
        common_dir: Path,
        access: Access = PRIVATE,
        *,
        form: ObjectFormat = SHA1,
        lock_timeout: float = 10.0,
    ) -> None:
        """Takes the git directories, and how many seconds to wait for a ref's lock."""
        self._digits = form.digits
        self._git_dir = git_dir
        self._common = common_dir
        self.access = access
        self._lock_timeout = lock_timeout
        self.storage = RefStorage(common_dir, FILES, lock_timeout)

    @property
    def lock_timeout(self) -> float:
        """How many seconds a change waits for the lock of a ref."""
        return self._lock_timeout

    @followed
    def symbolic(self, name: str) -> str | None:
        """Returns what a symbolic ref of this worktree points to, or None."""
        text = self._loose(self._git_dir / name)
        if text is None or text.endswith(_NOT_HERE):
            self.storage.check()
        if text is not None and text.startswith(_SYMBOLIC):
            return text.removeprefix(_SYMBOLIC).strip()
        return None

    @followed
    def read(self, name: str) -> str | None:
        """Returns the commit a ref points to, or None.

        Raises:
            CorruptError: the ref is gitcp's, and its file does not hold a commit id. It must not
                read as one that is not there: a caller that then created it again would
                lose all that it held.
        """
        base = self._git_dir if name == "HEAD" else self._common
        # Loose before packed: pack-refs writes that before it removes the loose one.
        text = self._loose(base / name)
        if text is not None:
            if text.startswith(_SYMBOLIC):
                return self.read(text.removeprefix(_SYMBOLIC).strip())
            oid = self._oid(text)
            if oid is None and name.startswith(OURS):
                raise CorruptError(
                    f"{name} does not name a commit: its file is damaged",
                    hint="`gitcp verify --lost` looks for what it held",
                )
            return oid
        needle = b" " + os.fsencode(name) + b"\n"
        packed = self._packed()
        at = packed.find(needle)
        if at < 0:
            self.storage.check()
        return packed[at - self._digits : at].decode() if at >= self._digits else None

    def written(self, name: str) -> float | None:
        """Returns when a ref was last written; None if only a packed file has it."""
        try:
            return (self._common / name).stat().st_mtime
        except OSError:
            return None

    @followed
    def list(self, prefix: str) -> dict[str, str]:
        """Returns the refs below a prefix that ends in a slash, sorted by name."""
        loose = dict(self._walk(prefix))
        packed = self._packed()
        needle = b" " + os.fsencode(prefix)
        # All of them lie together, as packed refs are sorted; only there are lines made.
        first = packed.rfind(b"\n", 0, max(packed.find(needle), 0)) + 1
        last = packed.find(b"\n", max(packed.rfind(needle), 0))
        text = os.fsdecode(packed[first : last if last >= 0 else len(packed)])
        start = self._digits + 1
        found: dict[str, str | None] = {
            line[start:]: line[: self._digits]
            for line in text.split("\n")
            if line.startswith(prefix, start) and line[0] not in "#^"
        }
        found.update(loose)
        self.storage.check()
        return {name: oid for name, oid in sorted(found.items()) if oid}

    def damaged(self, prefix: str = OURS) -> Iterator[str]:
        """Yields gitcp's refs whose files hold no commit, for example after a power cut."""
        yield from (name for name, oid in self._walk(prefix) if not oid)

    def drop_damaged(self, name: str, staged: Path) -> None:
        """Removes a ref if it is damaged; `staged` as in `compare_and_swap`.

        Raises:
            BusyError: another process held its lock.
            StorageError: the disk refused.
        """
        with durable.storage(f"removing {name}"):
            staged.touch()
            lock = self.lock(name, staged)
            try:
                if name in self.damaged():
                    (self._common / name).unlink()
            finally:
                lock.unlink()
                staged.unlink()

    def crowd(self, prefix: str) -> int:
        """Returns roughly how many loose refs there are below a prefix."""
        try:
            return len(os.listdir(self._common / prefix))
        except FileNotFoundError:
            return 0

    def signature(self, prefix: str) -> object:
        """Returns a value that changes when a ref directly below a prefix does.

        Moving a ref replaces its file, and packing refs the packed ones.
        """
        found: list[tuple[object, ...]] = []
        for path in (self._common / prefix, self._common / "packed-refs"):
            with suppress(FileNotFoundError, NotADirectoryError):
                if path.name == "packed-refs":
                    entries = [(path.name, path.stat())]
                else:
                    with os.scandir(path) as children:
                        entries = [(one.name, one.stat()) for one in children]
                found += [
                    (name, said.st_ino, said.st_mtime_ns, said.st_size)
                    for name, said in entries
                ]
        return sorted(found)

    @followed
    def any(self, prefix: str) -> bool:
        """Whether there is a ref below the prefix."""
        found = b" " + os.fsencode(prefix) in self._packed() or any(self._walk(prefix))
        if not found:
            self.storage.check()
        return found

    def compare_and_swap(
        self,
        name: str,
        *,
        expect: str | None,
        new: str,
        staged: Path,
    ) -> None:
        """Points a ref at `new` only if it is at `expect`; durable on return.

        None stands for absence. `staged` is a path in the caller's transaction where the
        new value is written first; its lock is a link to it.

        Raises:
            BranchMovedError: the ref is elsewhere.
            RefsMovedError: all refs are in another storage; this one may have moved.
            BusyError: another process held the ref's lock for `lock_timeout` seconds.
            StorageError: the disk refused. The ref may have moved if that happened in the
                last sync; reading it again tells.
        """
        path = self._common / name
        with durable.storage(f"moving {name}"):
            with staged.open("xb") as file:
                file.write(f"{new}\n".encode())
                file.flush()
                os.fsync(file.fileno())
            self.access.adjust(staged)
            lock = self.lock(name, staged)
            try:
                found = self.read(name)
                if found != expect:
                    raise BranchMovedError(  # noqa: TRY301  under the lock
                        f"{name} moved from {expect or 'nothing'} to {found or 'nothing'}",
                        hint="run the command again",
                    )
                self.storage.check()
                lock.rename(path)
            except BaseException:
                ref_locks.release(lock, staged)
                raise
            finally:
                staged.unlink()
            self._sync(path)
        self.storage.check()

    def delete(self, refs: Mapping[str, str | None]) -> None:
        """Deletes refs, packed ones too: all of them, or none.

        A ref that comes with a commit is deleted only while it points there.

        Raises:
            GitFailedError: a ref points elsewhere, or git failed.
            UnsafePathError: a name is not one of gitcp's refs.
        """
        if lines := deletions(refs):
            self.storage.check()
            # git rewrites packed-refs, under its own locks.
            process.run(
                ["update-ref", "--stdin"],
                cwd=self._common,
                env={"GIT_DIR": str(self._common)},
                data="".join(f"{line}\n" for line in lines).encode(),
            )

    def _sync(self, path: Path) -> None:
        """Makes the present value of a ref durable; it may have been packed meanwhile."""
        with suppress(FileNotFoundError):
            durable.sync_directory(path.parent)
        if path.exists():
            return
        # The user's pack-refs has removed the file, and syncs neither the one that it
        # has written instead nor its name.
        with suppress(FileNotFoundError):
            durable.sync_file(self._common / "packed-refs")
        durable.sync_directory(self._common)

    def lock(self, name: str, staged: Path) -> Path:
        """Takes git's lock of a ref, as a link to `staged`, and returns its path.

        If it raises `BusyError`, it removes `staged`, so that the caller can write it again.

        Raises:
            BusyError: another process held it for `lock_timeout` seconds.
            RefsMovedError: all refs are in another storage.
            UnsafePathError: the name is not one of gitcp's refs.
        """
        try:
            return self._linked(name, staged)
        except BusyError:
            # There is no lock. After a signal there may be one, and this file tells that it
            # is stale.
            staged.unlink(missing_ok=True)
            raise

    def _linked(self, name: str, staged: Path) -> Path:
        refuse_foreign(name)
        path = self._common / name
        lock = path.with_name(path.name + ref_locks.LOCK)

        def take() -> bool | None:
            self.storage.check()
            try:
                # pack-refs removes directories that have become empty.
                self.access.make_directories(path.parent)
                durable.link(staged, lock)
            except FileExistsError:
                ref_locks.break_stale(lock, staged.parent.parent)
                return None
            except FileNotFoundError:
                return None
            return True

        if not durable.until(take, timeout=self._lock_timeout):
            raise BusyError(
                f"{name} is locked by another process",
                hint=f"if no git command is running, remove {lock}",
            )
        try:
            self.storage.check()
        except BusyError:
            # A directory that is left here would stop the next migration halfway.
            lock.unlink(missing_ok=True)
            self.storage.leave(path.parent)
            raise
        return lock

    def locks(self) -> Iterator[Path]:
        """Yields the existing locks of gitcp's refs, of any holder.

        Git's pack-refs takes empty directories away meanwhile; one with a lock stays.
        """
        for place, _, files in os.walk(self._common / "refs" / "gitcp"):
            yield from (
                Path(place, file) for file in files if file.endswith(ref_locks.LOCK)
            )

    def _walk(self, prefix: str) -> Iterator[tuple[str, str | None]]:
        """Yields the loose refs below a prefix; None for what is not a commit."""
        # There may be a thousand directories, and most commands look at all of them.
        pending = [prefix.rstrip("/")]
        while pending:
            above = pending.pop()
            entries: list[os.DirEntry[str]] = []
            with suppress(OSError):
                entries = list(os.scandir(self._common / above))
            for entry in entries:
                name = f"{above}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                elif not name.endswith(".lock"):
                    text = self._loose(entry.path)
                    if text is not None and not text.startswith(_SYMBOLIC):
                        yield name, self._oid(text)

    def _oid(self, text: str) -> str | None:
        word = text.strip()
        return word if len(word) == self._digits and _HEX.issuperset(word) else None

    @staticmethod
    def _loose(path: str | Path) -> str | None:
        try:
            return read_regular(path).decode("utf-8", "surrogateescape")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def _packed(self) -> bytes:
        try:
            return read_regular(self._common / "packed-refs")
        except FileNotFoundError:
            return b""
