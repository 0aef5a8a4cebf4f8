"""Finds checkpoints that bugs of older versions may have made wrong.

None of this is damage: every object is sound. Older versions captured a file under two
spellings on a disk that folds them. They missed an edit on a disk with coarse time stamps. And
a restore deleted files that the restored checkpoint had left out.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import GitcpError
from gitcp.format import tree as trees
from gitcp.format.checkpoint import show_path
from gitcp.format.oid import is_object
from gitcp.format.tree import DIRECTORY, EXECUTABLE, FILE, LINK, Entry
from gitcp.git.drop_unreachable import git_directories
from gitcp.git.objects import BLOB, Objects, size_of
from gitcp.maintenance.problems import Problem
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree.databases import BESIDE
from gitcp.worktree.files import Root, chunks, is_link, is_regular
from gitcp.worktree.ignored import ignored_at
from gitcp.worktree.names import folded, parents

TWO_SPELLINGS = "two-spellings"
MISSED_EDIT = "missed-edit"
WRONGLY_DELETED = "wrongly-deleted"
KINDS = frozenset({TWO_SPELLINGS, MISSED_EDIT, WRONGLY_DELETED})

_BILLION = 1_000_000_000
# If all time stamps on a disk are multiples of this, its clock is coarse.
_COARSE = _BILLION // 100
_SAMPLE = 200
_AT_MOST = 1_000


class Doubts(NamedTuple):
    """The result of the search; `complete` if it did not run out of time."""

    problems: tuple[Problem, ...]
    complete: bool


class _OutOfTimeError(Exception):
    pass


def doubts(workspace: Workspace, seconds: float) -> Doubts:
    """Searches for checkpoints that may be wrong, for at most so many seconds."""
    if workspace.bare:
        # Files were never captured or restored there.
        return Doubts((), complete=True)
    look = _Look(workspace, time.monotonic() + seconds)
    found: list[Problem] = []
    try:
        for problem in look.all():
            found.append(problem)
            if len(found) == _AT_MOST:
                return Doubts(tuple(found), complete=False)
    except _OutOfTimeError:
        return Doubts(tuple(found), complete=False)
    return Doubts(tuple(found), complete=True)


def folds_case(top: Path) -> bool:
    """Whether the disk treats two spellings of a name as one."""
    with suppress(OSError):
        return os.path.samestat(os.lstat(top / ".git"), os.lstat(top / ".GIT"))
    return False


class _Look:
    """One search; raises when its time is over."""

    def __init__(self, workspace: Workspace, deadline: float) -> None:
        self._workspace = workspace
        self._deadline = deadline
        self._objects: Objects = workspace.repository.objects
        self._twins: dict[bytes, tuple[bytes, ...]] = {}
        self._lines: list[list[Checkpoint]] = []
        self._by_id: dict[str, Checkpoint] = {}

    def all(self) -> Iterator[Problem]:
        """Yields possible problems, one sort after another."""
        self._read_lines()
        if folds_case(self._workspace.top):
            for one in self._by_id.values():
                with suppress(GitcpError):
                    yield from self._two_spellings(one)
        for one in self._by_id.values():
            with suppress(GitcpError):
                yield from self._wrongly_deleted(one)
        with suppress(GitcpError, OSError):
            yield from self._missed_edits()

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise _OutOfTimeError

    def _read_lines(self) -> None:
        for _, tip in self._workspace.store.tips():
            line: list[Checkpoint] = []
            with suppress(GitcpError):
                for one in self._workspace.store.line(tip):
                    self._check_time()
                    if one.id in self._by_id:
                        break
                    self._by_id[one.id] = one
                    line.append(one)
            self._lines.append(line)

    # --- a name in two spellings ----------------------------------------------------

    def _two_spellings(self, one: Checkpoint) -> Iterator[Problem]:
        said = one.trailers.base
        base = None
        for path in self._twins_in(one.files_tree) if one.files_tree else ():
            if base is None and said is not None:
                with suppress(GitcpError):
                    base = self._objects.commit(bytes.fromhex(said)).tree
            directory, _, name = path.rpartition(b"/")
            other = self._spellings(one.files_tree, directory, name)
            if base is not None and other == self._spellings(base, directory, name):
                # git tracks both, so a checkout made them.
                continue
            names = " and ".join(show_path(each) for each in sorted(other))
            yield Problem(
                one.id,
                path,
                f"this disk has one file for {names}; only one of them was there",
                about=TWO_SPELLINGS,
            )

    def _spellings(
        self, root: bytes | None, directory: bytes, name: bytes
    ) -> frozenset[bytes]:
        entry = trees.lookup(root, directory, self._objects.tree)
        if entry is None or entry.mode != DIRECTORY:
            return frozenset()
        wanted = folded(name)
        return frozenset(
            each for each in self._objects.tree(entry.oid) if folded(each) == wanted
        )

    def _twins_in(self, oid: bytes) -> tuple[bytes, ...]:
        """Returns a path for each name that a tree has in two spellings."""
        known = self._twins.get(oid)
        if known is not None:
            return known
        self._check_time()
        found: list[bytes] = []
        seen: dict[str, bytes] = {}
        for name, entry in self._objects.tree(oid).items():
            first = seen.setdefault(folded(name), name)
            if first != name:
                found.append(first)
            if entry.mode == DIRECTORY:
                found += [name + b"/" + path for path in self._twins_in(entry.oid)]
        self._twins[oid] = tuple(dict.fromkeys(found))
        return self._twins[oid]

    # --- deleted by a restore ---------------------------------------------------------

    def _wrongly_deleted(self, one: Checkpoint) -> Iterator[Problem]:
        if one.trailers.trigger != "restore":
            return
        self._check_time()
        said = one.manifest
        target = self._by_id.get(said.restored_from or "")
        before = self._by_id.get(said.replaced or "")
        if target is None or before is None or not target.holds_files:
            return
        gone = [
            change.path
            for change in trees.diff(
                before.files_tree, one.files_tree, self._objects.tree
            )
            if change.new is None
            and trees.lookup(target.files_tree, change.path, self._objects.tree) is None
            and not self._came_with_a_restore(target, change.path)
            and not _is_of_database(before, change.path)
        ]
        if not gone:
            return
        listed = {entry.path: entry.reason for entry in target.skipped()}
        ignored = ignored_at(
            target.files_tree,
            gone,
            self._objects.files,
            target.objects.content,
            self._workspace.repository,
        )
        for path in gone:
            reason = next(
                (listed[each] for each in (path, *parents(path)) if each in listed),
                "ignored" if path in ignored else None,
            )
            if reason is not None:
                yield Problem(
                    one.id,
                    path,
                    f"restoring {target.id} deleted it, though {target.id} leaves it out"
                    f" ({reason});"
                    f" `gitcp restore {before.number or before.id} PATH` brings it back",
                    about=WRONGLY_DELETED,
                )

    def _came_with_a_restore(self, target: Checkpoint, path: bytes) -> bool:
        """Whether a restore wrote a path, and `target` is the state before that restore."""
        return any(
            one.trailers.trigger == "restore"
            and one.manifest.replaced == target.id
            and one.entry(path) is not None
            for one in self._by_id.values()
        )

    # --- an edit that was not seen ------------------------------------------------------

    def _missed_edits(self) -> Iterator[Problem]:
        """Compares the newest checkpoint with files that are older than it."""
        newest = self._newest_of_here()
        if newest is None:
            return
        with Root(self._workspace.top) as root:
            if not self._is_coarse(root, newest):
                return
            for path, entry in newest.files():
                self._check_time()
                found = root.lstat(path)
                if found is None or entry.mode not in {FILE, EXECUTABLE, LINK}:
                    continue
                changed = max(found.st_ctime_ns, found.st_mtime_ns) // _BILLION
                if changed < newest.raw.epoch and not self._holds(root, path, entry):
                    yield from self._since(newest, path, entry, changed)

    def _newest_of_here(self) -> Checkpoint | None:
        """Returns the checkpoint for which the files were last captured."""
        if len(git_directories(self._workspace.repository)) > 1:
            # A checkpoint does not record its work tree.
            return None
        own = [
            one
            for line in self._lines
            for one in line[:1]
            if one.trailers.trigger != "fork"
            and one.holds_files
            and one.origin.files is None
        ]
        return max(own, key=lambda one: one.raw.epoch, default=None)

    @staticmethod
    def _is_coarse(root: Root, newest: Checkpoint) -> bool:
        seen = 0
        for path, _ in newest.files():
            found = root.lstat(path)
            if found is None:
                continue
            if found.st_ctime_ns % _COARSE:
                return False
            seen += 1
            if seen == _SAMPLE:
                break
        return seen > 0

    def _holds(self, root: Root, path: bytes, entry: Entry) -> bool:
        """Whether the disk has a checkpoint's content at a path; true if it cannot tell."""
        found = root.lstat(path)
        try:
            if found is not None and is_link(found):
                return is_object(entry.oid, BLOB, root.readlink(path))
            if found is None or not is_regular(found):
                return True
            if size_of(self._objects, entry.oid) != found.st_size:
                return False
            fd = root.open(path)
            try:
                data = b"".join(chunks(fd))
            finally:
                os.close(fd)
        except OSError:
            return True
        return is_object(entry.oid, BLOB, data)

    def _since(
        self, newest: Checkpoint, path: bytes, entry: Entry, changed: int
    ) -> Iterator[Problem]:
        for one in self._workspace.store.line(newest):
            if one.raw.epoch <= changed or one.entry(path) != entry:
                return
            yield Problem(
                one.id,
                path,
                "the file was changed last before this checkpoint was made, and"
                " the checkpoint has other content: `gitcp save` captures it",
                about=MISSED_EDIT,
            )


def _is_of_database(before: Checkpoint, path: bytes) -> bool:
    """Whether a path is a file beside a database: a restore replaces both together."""
    return any(
        path.endswith(suffix) and before.entry(path.removesuffix(suffix)) is not None
        for suffix in BESIDE
    )
