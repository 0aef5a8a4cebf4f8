"""Lists directories of the work tree, with names as the disk spells them.

A disk that folds case or Unicode forms has one file under many names. Only a listing
tells which name is its own: a stat finds any spelling.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gitcp.errors import UnsafePathError
from gitcp.format import tree as trees
from gitcp.git.repository import Repository
from gitcp.worktree.clock import Clock
from gitcp.worktree.files import Root, is_directory
from gitcp.worktree.names import IGNORE_FILE, folded, no_place_below, parents
from gitcp.worktree.private import IgnoreChecker, PrivateGit
from gitcp.worktree.state import ScanState, Signature

Known = Callable[[bytes], bool]
UNSETTLED = (0, 0, 0)  # that nothing has


class Previous(NamedTuple):
    """The tree that the last capture made: an entry by path, names by directory."""

    entry: Callable[[bytes], trees.Entry | None]
    names: Callable[[bytes], trees.Tree]


class ScanPlace(NamedTuple):
    """The directory of a scan, and the rules that it applies."""

    repository: Repository
    top: Path
    root: Root
    clock: Clock
    private: PrivateGit
    previous: Previous

    def stat(self, path: bytes) -> os.stat_result | None:
        """Returns the stat of a path itself; None if nothing is visible there."""
        try:
            return self.root.lstat(path)
        except PermissionError:
            return None

    def is_there(self, path: bytes) -> bool:
        """Whether there is something other than a directory."""
        status = self.stat(path)
        return status is not None and not is_directory(status)

    def settled(self, status: os.stat_result) -> Signature:
        """Returns the signature or, if it may hide a change, one that equals no other."""
        return signature(status) if self.clock.shows_changes(status) else UNSETTLED


class Found(msgspec.Struct):
    """The result of a scan.

    `look` are the paths to read; `gone` those to remove, with everything below them;
    `excluded` those that a sparse checkout omits, and `gitcp.exclude` names; `wanted`,
    after a whole scan, every path that belongs to it; `excused` those that were read
    for another reason than a change.
    """

    look: set[bytes] = msgspec.field(default_factory=set)
    gone: set[bytes] = msgspec.field(default_factory=set)
    excluded: set[bytes] = msgspec.field(default_factory=set)
    wanted: set[bytes] | None = None
    excused: set[bytes] = msgspec.field(default_factory=set)


class _Child(NamedTuple):
    path: bytes
    directory: bool
    special: bool


def _child(found: os.DirEntry[str]) -> _Child:
    name = os.fsencode(found.name)
    if found.is_file(follow_symlinks=False) or found.is_symlink():
        return _Child(name, directory=False, special=False)
    return _Child(name, found.is_dir(follow_symlinks=False), special=True)


class Listing:
    """Lists directories of one scan, and brings `state` and `found` up to date."""

    def __init__(self, context: ScanPlace, state: ScanState, result: Found) -> None:
        self._place = context
        self._root = context.root
        self._state = state
        self._found = result
        self._checker: IgnoreChecker | None = None
        self._names: dict[bytes, frozenset[bytes]] = {}
        # The directories walked so far, and whether they lie on another disk.
        self._walked: dict[bytes, bool] = {}
        self._git = context.repository.own_paths
        self._device = os.fstat(context.root.fd).st_dev
        # Whether the disk ignores the case of names.
        self.folds = context.repository.flag("core.ignorecase") or self._top_folds()
        # Whether an ignore file that is not captured changed.
        self.unseen_rules = False
        # Whether to ignore everything from earlier scans.
        self.everything = False
        # Directories that are gone, while paths below them are still known.
        self._forgotten: set[bytes] = set()

    def close(self) -> None:
        """Ends the process that knows the ignore rules; a new one reads them again."""
        checker, self._checker = self._checker, None
        if checker is not None:
            checker.close()

    # --- names ----------------------------------------------------------------

    def _top_folds(self) -> bool:
        try:
            os.stat(b".GIT", dir_fd=self._root.fd, follow_symlinks=False)
        except OSError:
            return False
        return b".GIT" not in self._names_in(b"")

    def _names_in(self, directory: bytes) -> frozenset[bytes]:
        names = self._names.get(directory)
        if names is None:
            try:
                listed = os.listdir(self._root.directory(directory))
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                listed = []
            names = self._names[directory] = frozenset(map(os.fsencode, listed))
        return names

    def _may_fold(self, path: bytes, status: os.stat_result) -> bool:
        return self.folds or status.st_dev != self._device or not path.isascii()

    def walked(self) -> set[bytes]:
        """Returns the directories whose children this scan has judged so far."""
        return set(self._walked)

    def may_list(self, path: bytes) -> bool:
        """Whether a path may exist, by the listings of this scan."""
        directory, _, name = path.rpartition(b"/")
        loose = self.folds or self._walked[directory] or not path.isascii()
        return loose or name in self._names_in(directory)

    def is_alias(self, path: bytes, status: os.stat_result) -> bool:
        """Whether a path with this stat is listed only under another name."""
        return self._is_unlisted(path) or (
            self._may_fold(path, status) and not self._is_listed(path)
        )

    def _is_unlisted(self, path: bytes) -> bool:
        """Whether a listing of this scan shows that a path does not exist."""
        if not self._names:
            return False
        above = b""
        for name in path.split(b"/"):
            names = self._names.get(above)
            if names is not None and name not in names:
                return True
            above = above + b"/" + name if above else name
        return False

    def _is_listed(self, path: bytes) -> bool:
        above = b""
        for name in path.split(b"/"):
            if name not in self._names_in(above):
                return False
            above = above + b"/" + name if above else name
        return True

    def spelling(self, path: bytes) -> bytes:
        """Returns a path as the disk lists it; unchanged if it does not exist."""
        status = self._place.stat(path)
        if status is None or not self._may_fold(path, status):
            return path
        above = b""
        for name in path.split(b"/"):
            names = self._names_in(above)
            if name not in names:
                key = folded(name)
                alike = [other for other in names if folded(other) == key]
                if len(alike) != 1:
                    return path
                name = alike[0]  # noqa: PLW2901  as the disk spells it
            above = above + b"/" + name if above else name
        return above

    def renamed_within(self, directory: bytes) -> bool:
        """Whether a directory lists other names than last time, on a disk that folds names."""
        names = self._names_in(directory)
        return _digest(names) != self._state.listings.get(directory)

    def drop_aliases(self) -> None:
        """Forgets directories and skipped paths that are listed under other names."""
        state = self._state
        for path in [*state.dirs, *state.nested, *state.skipped]:
            if path and (self.folds or not path.isascii()) and self._is_unlisted(path):
                self.forget(path)

    # --- directories ----------------------------------------------------------

    def walk(self, start: Iterable[bytes], known: Known) -> None:
        """Lists directories, level by level, down into those that are new."""
        state = self._state
        level = sorted(set(start))
        for directory in level:
            for path in [
                path for path in state.skipped if path.rpartition(b"/")[0] == directory
            ]:
                del state.skipped[path]
        while level:
            children: list[_Child] = []
            for directory in level:
                children += self._children(directory, known)
            self._forget_below()
            ignored = self._ignored([child.path for child in children])
            level = []
            for child in children:
                if child.path in ignored:
                    self.note_ignore_file(child.path)
                    continue
                above = child.path.rpartition(b"/")[0]
                if above in state.dirs:
                    *known_as, count = state.dirs[above]
                    state.dirs[above] = (*known_as, count + 1)  # type: ignore[assignment]
                if child.directory:
                    if self._place.stat(child.path + b"/.git") is not None:
                        state.nested[child.path] = None
                    else:
                        level.append(child.path)
                elif child.special:
                    state.skipped[child.path] = "special-file"
                else:
                    self._found.look.add(child.path)

    def _children(self, directory: bytes, known: Known) -> list[_Child]:
        """Notes a directory and returns those of its children that must be judged."""
        if directory and (self._is_unlisted(directory) or self._is_inside(directory)):
            self._forget_soon(directory)
            return []
        try:
            fd = self._root.directory(directory)
            status = os.fstat(fd)
            # Before the listing: a name may appear within this step of the clock.
            known_as = self._place.settled(status)
            listed = [_child(child) for child in os.scandir(fd)]
        except (FileNotFoundError, NotADirectoryError):
            # The listing of its parent shows what replaced it.
            self._forget_soon(directory)
            return []
        except PermissionError:
            self._forget_soon(directory)
            self._state.skipped[directory] = "unreadable"
            self._found.gone.add(directory)
            return []
        names = self._names[directory] = frozenset(child.path for child in listed)
        if directory and b".git" in names:
            self._forget_soon(directory)
            self._found.gone.add(directory)
            self._state.nested[directory] = None
            return []
        self._walked[directory] = status.st_dev != self._device
        self._drop_unlisted(directory, names, status)
        return self._note(directory, listed, known, known_as)

    def _is_inside(self, directory: bytes) -> bool:
        """Whether a path lies in a nested repository, which this scan may just have found."""
        nested = self._state.nested
        return bool(nested) and not nested.keys().isdisjoint(parents(directory))

    def _note(
        self,
        directory: bytes,
        listed: Iterable[_Child],
        known: Known,
        known_as: Signature,
    ) -> "list[_Child]":
        state = self._state
        prefix, count = directory + b"/" if directory else b"", 0
        judged: list[_Child] = []
        for child in listed:
            path = prefix + child.path
            if child.path == b".git" or path in self._git:
                continue
            if child.path == IGNORE_FILE and child.special:
                self._refuse_pipe(path)
            reason = no_place_below(path, child.path)
            if reason is not None:
                state.skipped[path] = reason
            elif child.directory and (path in state.dirs or path in state.nested):
                pass
            elif child.directory or child.special or not known(path):
                judged.append(_Child(path, child.directory, child.special))
                continue
            count += 1
        state.dirs[directory] = (*known_as, count)
        if self.folds:
            state.listings[directory] = _digest(self._names[directory])
        return judged

    def _drop_unlisted(
        self, directory: bytes, names: frozenset[bytes], status: os.stat_result
    ) -> None:
        """Removes paths of the last tree that the disk lists under another name.

        Git's comparison finds other names that are gone.
        """
        # Unless the disk folds case, two spellings of a name are both ASCII or both
        # not.
        if self.everything or not (
            self.folds or status.st_dev != self._device or not b"".join(names).isascii()
        ):
            return
        prefix = directory + b"/" if directory else b""
        for name in self._place.previous.names(directory):
            path = prefix + name
            if (
                name not in names
                and self._may_fold(path, status)
                and self._place.stat(path) is not None
            ):
                self._found.gone.add(path)
                self.forget(path)

    def _refuse_pipe(self, path: bytes) -> None:
        """Raises if an ignore file is a pipe, which git would wait at for ever."""
        status = self._place.stat(path)
        if status is not None and stat.S_ISFIFO(status.st_mode):
            raise UnsafePathError(
                f"{os.fsdecode(path)} is a named pipe, which would block git",
                hint="remove it, then save again",
            )

    def _ignored(self, paths: list[bytes]) -> set[bytes]:
        if not paths:
            return set()
        if self._checker is None:
            self._checker = self._place.private.ignore_checker(
                sparse=sparse_rules(self._state)
            )
        return self._checker.ignored(paths)

    def note_ignore_file(self, path: bytes) -> None:
        """Watches an ignore file that is not captured, because nothing else shows its changes."""
        if path.rpartition(b"/")[2] == IGNORE_FILE:
            status = self._place.stat(path)
            if status is not None:
                now = self._place.settled(status)
                known = self._state.ignore_files.get(path)
                self.unseen_rules |= known != now or now == UNSETTLED
                self._state.ignore_files[path] = now

    def forget(self, directory: bytes) -> None:
        """Forgets a directory and everything below it."""
        self._forget_soon(directory)
        self._forget_below()

    def _forget_soon(self, directory: bytes) -> None:
        """Forgets a directory now, and everything below it with the next `_forget_below`."""
        for part in self._parts():
            part.pop(directory, None)
        self._forgotten.add(directory)

    def _forget_below(self) -> None:
        """Forgets everything below many directories, in one pass over all known paths."""
        gone, self._forgotten = self._forgotten, set()
        for part in self._parts() if gone else ():
            for path in [one for one in part if not gone.isdisjoint(parents(one))]:
                del part[path]

    def _parts(self) -> "tuple[dict[bytes, Any], ...]":
        state = self._state
        return state.dirs, state.skipped, state.nested, state.listings


def sparse_rules(state: ScanState) -> dict[bytes, tuple[int, bytes]]:
    """Returns the ignore files that only the user's index holds: mode and oid."""
    return {
        path: entry
        for path, entry in state.sparse.items()
        if path.rpartition(b"/")[2] == IGNORE_FILE
    }


def signature(status: os.stat_result) -> Signature:
    """Returns stat data that changes when a directory or an ignore file changes."""
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _digest(names: Iterable[bytes]) -> bytes:
    joined = b"\0".join(sorted(names))
    return hashlib.sha1(joined, usedforsecurity=False).digest()
