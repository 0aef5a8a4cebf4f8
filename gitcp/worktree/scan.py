"""Which paths of a work tree have to be looked at, and what cannot be captured.

git finds the tracked paths whose stat changed. A name can only come or go where its
directory's own stat changed: those directories are listed anew. Where an ignore rule
changed, everything is.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp.errors import UnsafePathError
from gitcp.format import tree as trees
from gitcp.format.layout import RESERVED
from gitcp.format.safety import path_problem
from gitcp.git.repository import Repository
from gitcp.worktree import state as states
from gitcp.worktree.files import Root
from gitcp.worktree.private import IgnoreChecker, PrivateGit
from gitcp.worktree.read import index_stat, is_quiet
from gitcp.worktree.state import ScanState, Signature

TEMPORARY = b".gitcp-tmp-"
IGNORE_FILE = b".gitignore"
# What may have become readable, or small enough, without its directory changing.
_LOOK_AGAIN = frozenset({"too-large", "unreadable", "changed-while-reading"})

Lookup = Callable[[bytes], trees.Entry | None]


class Rules(NamedTuple):
    """What the user's settings say about capture; `limit` is in bytes."""

    limit: int
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class _Child(NamedTuple):
    path: bytes
    directory: bool
    special: bool


class Found(msgspec.Struct):
    """What a scan found.

    `look` are the paths to read; `gone` those to take out, with all below them;
    `wanted`, after a whole scan, everything that belongs to the snapshot.
    """

    look: set[bytes] = msgspec.field(default_factory=set)
    gone: set[bytes] = msgspec.field(default_factory=set)
    wanted: set[bytes] | None = None


class Scan:
    """One scan; it brings `state` up to date as it goes."""

    def __init__(
        self,
        repository: Repository,
        top: Path,
        root: Root,
        rules: Rules,
        *,
        state: ScanState,
        previous: Lookup,
    ) -> None:
        self._repository = repository
        self._top = top
        self._root = root
        self._rules = rules
        self._state = state
        self._previous = previous
        self._private = PrivateGit(repository, top)
        self._checker: IgnoreChecker | None = None
        self._found = Found()
        # What was known to have changed when everything was listed anew.
        self._changed: set[bytes] = set()
        # An ignore file that is not captured changed.
        self._unseen_rules = False

    def run(self, differing: Callable[[], list[bytes]]) -> Found:
        """Scans; `differing` returns the paths that git's comparison named."""
        try:
            state = self._state
            rules = self._rules_digest()
            whole = rules != state.rules or state.tree is None or not state.dirs
            state.rules = rules
            # In whole seconds, and a clock that stamps files may lag behind.
            state.began = int(time.time() - 0.1)
            closed = self._closed()
            if not whole:
                self._scan_directories()
            self._compare(differing())
            whole = whole or self._ignore_rules_changed()
            if whole:
                self._scan_everything()
            else:
                self._learn_user_index(whole=False)
            self._learn_hidden(everything=whole or self._closed() != closed)
            self._apply_settings()
            self._drop_what_is_closed()
            return self._found
        finally:
            if self._checker is not None:
                self._checker.close()

    # --- rules ----------------------------------------------------------------

    def _rules_digest(self) -> bytes:
        excludes = self._repository.setting("core.excludesfile")
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        path = f"{config}/git/ignore" if excludes is None else excludes
        try:
            content = (self._top / os.path.expanduser(path)).read_bytes()
        except OSError:
            content = b""
        return states.digest(
            str(self._rules).encode("utf-8", "surrogateescape"),
            path.encode("utf-8", "surrogateescape"),
            self._private.user_excludes(),
            content,
        )

    def _learn_user_index(self, *, whole: bool) -> None:
        """Notes what is tracked though ignored, and what a sparse checkout omits."""
        state = self._state
        found = self._found
        try:
            now: Signature | None = _settled(
                os.stat(self._repository.git_dir / "index")
            )
        except FileNotFoundError:
            now = None
        sparse = not found.look.isdisjoint(state.sparse) or (
            bool(found.gone) and self._repository.flag("core.sparsecheckout")
        )
        if not whole and not sparse and now == state.user_index and now != _UNSETTLED:
            return
        before = set(state.forced)
        state.user_index = now
        state.forced = []
        if now is not None:
            listed = self._repository.git(
                "ls-files", "-z", "--cached", "--ignored", "--exclude-standard"
            )
            state.forced = sorted(set(listed.split(b"\0")[:-1]))
        absent = set(state.sparse)
        self._learn_sparse()
        # What a sparse checkout brought back has no stat to compare with yet.
        found.look |= absent - state.sparse.keys()
        found.gone -= state.sparse.keys()
        forced = set(state.forced)
        found.look |= forced - before
        found.gone |= before - forced

    def _learn_sparse(self) -> None:
        state = self._state
        state.sparse = {}
        if not self._repository.flag("core.sparsecheckout"):
            return
        for line in self._repository.git("ls-files", "-z", "-t", "-s").split(b"\0"):
            if line.startswith(b"S "):
                head, _, path = line[2:].partition(b"\t")
                mode, oid, _ = head.split(b" ")
                if not _outside(path) and self._stat(path) is None:
                    state.sparse[path] = int(mode, 8), bytes.fromhex(oid.decode())

    def _stat(self, path: bytes) -> os.stat_result | None:
        try:
            return self._root.lstat(path)
        except PermissionError:
            return None

    def _closed(self) -> set[bytes]:
        skipped = self._state.skipped.items()
        unreadable = {path for path, why in skipped if why == "unreadable"}
        return unreadable | self._state.nested.keys()

    def _learn_hidden(self, *, everything: bool) -> None:
        """Looks for ignored files that are tracked and were away: no listing shows them.

        Deleted ones are looked for each time, others when a place opens or closes.
        """
        state = self._state
        found = self._found
        forced = set(state.forced)
        again = forced if everything else forced.intersection(state.hidden)
        found.look |= {path for path in again if not _is_leaf(self._previous(path))}
        away = (found.look | found.gone) & forced
        state.hidden = sorted(path for path in away if not self._is_there(path))

    def _is_there(self, path: bytes) -> bool:
        found = self._stat(path)
        return found is not None and not _is_directory(found)

    def _ignore_rules_changed(self) -> bool:
        found = self._found
        if self._unseen_rules or any(
            path.rpartition(b"/")[2] == IGNORE_FILE for path in found.look | found.gone
        ):
            return True
        for path, signature in self._state.ignore_files.items():
            now = self._stat(path)
            if now is None or _signature(now) != signature:
                return True
        return False

    def _apply_settings(self) -> None:
        """Adds ignored files that `gitcp.include` names, drops what `exclude` does."""
        found = self._found
        if self._rules.include:
            included = set(self._private.list_matching(self._rules.include))
            found.look |= {
                path
                for path in included
                if path in self._changed or not _is_leaf(self._previous(path))
            }
            found.gone -= included
            if found.wanted is not None:
                found.wanted |= included
        if self._rules.exclude:
            excluded = set(self._private.list_matching(self._rules.exclude))
            for path in excluded:
                self._note_ignore_file(path)
            found.look -= excluded
            found.gone |= {path for path in excluded if self._previous(path)}
            if found.wanted is not None:
                found.wanted -= excluded

    def _drop_what_is_closed(self) -> None:
        """Takes out what lies in nested repositories and other places never entered.

        Git may list such paths: they are tracked, or named by `gitcp.include`.
        """
        found = self._found
        closed = self._closed()

        def is_open(path: bytes) -> bool:
            return not _outside(path) and closed.isdisjoint(parents(path))

        found.look = {path for path in found.look if is_open(path)}
        found.gone = {path for path in found.gone if is_open(path)}
        if found.wanted is not None:
            found.wanted = {path for path in found.wanted if is_open(path)}
            found.gone -= found.wanted

    # --- what changed -----------------------------------------------------------

    def _scan_directories(self) -> None:
        state = self._state
        changed: list[bytes] = []
        for path, known in state.dirs.items():
            try:
                found = os.stat(
                    path or b".", dir_fd=self._root.fd, follow_symlinks=False
                )
            except OSError:
                changed.append(path)
                continue
            if _signature(found) != known[:3]:
                changed.append(path)
        for path in list(state.nested):
            if self._stat(path + b"/.git") is None:
                del state.nested[path]
                self._found.gone.add(path)
                changed.append(path)
        for path, reason in list(state.skipped.items()):
            if reason not in _LOOK_AGAIN:
                continue
            del state.skipped[path]
            found_now = self._stat(path)
            if found_now is not None and _is_directory(found_now):
                changed.append(path)
            else:
                self._found.look.add(path)
        unsure = state.sparse.keys() | state.forced
        self._list(
            changed,
            known=lambda path: path not in unsure and _is_leaf(self._previous(path)),
        )

    def _compare(self, differing: list[bytes]) -> None:
        """Takes from git's answer, and from what it cannot know, what truly changed."""
        overlay = self._state.overlay
        for path in {*differing, *overlay}:
            found = self._stat(path)
            if found is None or _is_directory(found):
                if path not in self._state.sparse and _is_leaf(self._previous(path)):
                    self._found.gone.add(path)
                continue
            remembered = overlay.get(path)
            if remembered is not None and remembered[1] == index_stat(found):
                continue
            # A path of the index that the last snapshot left out stays out, unless a
            # listing finds it.
            if self._previous(path) is not None:
                self._found.look.add(path)

    def _scan_everything(self) -> None:
        state = self._state
        changed = self._found.look
        state.dirs = {}
        state.skipped = {}
        state.nested = {}
        state.ignore_files = {}
        self._found.look = set()
        self._list([b""], known=lambda _: False)
        listed, self._found.look = self._found.look, changed
        # After the listing: it finds the ignore files that git would hang on.
        self._learn_user_index(whole=True)
        changed = self._changed = self._found.look
        # Git lists these by its index, whether or not they are on disk.
        forced = {path for path in state.forced if self._is_there(path)}
        present = listed | forced
        self._found.wanted = present | state.sparse.keys() | state.nested.keys()
        self._found.look = {
            path
            for path in present
            if path in changed or not _is_leaf(self._previous(path))
        }

    # --- listing ----------------------------------------------------------------

    def _list(self, start: Iterable[bytes], known: Callable[[bytes], bool]) -> None:
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
            ignored = self._ignored([child.path for child in children])
            level = []
            for child in children:
                if child.path in ignored:
                    self._note_ignore_file(child.path)
                    continue
                above = child.path.rpartition(b"/")[0]
                if above in state.dirs:
                    *signature, count = state.dirs[above]
                    state.dirs[above] = (*signature, count + 1)  # type: ignore[assignment]
                if child.directory:
                    if self._stat(child.path + b"/.git") is not None:
                        state.nested[child.path] = None
                    else:
                        level.append(child.path)
                elif child.special:
                    state.skipped[child.path] = "special-file"
                else:
                    self._found.look.add(child.path)

    def _children(
        self, directory: bytes, known: Callable[[bytes], bool]
    ) -> list[_Child]:
        """Notes a directory and returns those of its children that must be judged."""
        state = self._state
        try:
            fd = self._root.directory(directory)
            found = os.fstat(fd)
            # Before the listing: a name may still come within this tick of the clock.
            signature = _settled(found)
            listed = [
                _Child(
                    os.fsencode(child.name),
                    child.is_dir(follow_symlinks=False),
                    not child.is_symlink() and not child.is_file(follow_symlinks=False),
                )
                for child in os.scandir(fd)
            ]
        except (FileNotFoundError, NotADirectoryError):
            # Its parent's listing shows what is there instead.
            self._forget(directory)
            return []
        except PermissionError:
            self._forget(directory)
            state.skipped[directory] = "unreadable"
            self._found.gone.add(directory)
            return []
        if directory and any(child.path == b".git" for child in listed):
            self._forget(directory)
            self._found.gone.add(directory)
            state.nested[directory] = None
            return []
        prefix = directory + b"/" if directory else b""
        if any(child.path == IGNORE_FILE and child.special for child in listed):
            self._refuse_pipe(prefix + IGNORE_FILE)
        count = 0
        judged: list[_Child] = []
        for child in listed:
            path = prefix + child.path
            if child.path == b".git" or child.path.startswith(TEMPORARY):
                continue
            if path == RESERVED:
                state.skipped[path] = "reserved-name"
            elif path_problem(path):
                state.skipped[path] = "unsafe-path"
            elif child.directory and (path in state.dirs or path in state.nested):
                pass
            elif child.directory or not known(path):
                judged.append(child._replace(path=path))
                continue
            count += 1
        state.dirs[directory] = (*signature, count)
        return judged

    def _refuse_pipe(self, path: bytes) -> None:
        """Raises where an ignore file is a pipe, which git would wait at for ever."""
        found = self._stat(path)
        if found is not None and stat.S_ISFIFO(found.st_mode):
            raise UnsafePathError(
                f"{os.fsdecode(path)} is a named pipe, and git would wait at it",
                hint="remove it, then save again",
            )

    def _ignored(self, paths: list[bytes]) -> set[bytes]:
        if not paths:
            return set()
        if self._checker is None:
            self._checker = self._private.ignore_checker()
        return self._checker.ignored(paths)

    def _note_ignore_file(self, path: bytes) -> None:
        """An ignore file that is not captured is watched: nothing else shows it."""
        if path.rpartition(b"/")[2] == IGNORE_FILE:
            found = self._stat(path)
            if found is not None:
                signature = _settled(found)
                known = self._state.ignore_files.get(path)
                self._unseen_rules |= known != signature or signature == _UNSETTLED
                self._state.ignore_files[path] = signature

    def _forget(self, directory: bytes) -> None:
        prefix = directory + b"/"
        state = self._state
        for path in [
            path for path in state.dirs if path == directory or path.startswith(prefix)
        ]:
            del state.dirs[path]
        for path in [path for path in state.skipped if path.startswith(prefix)]:
            del state.skipped[path]
        for path in [path for path in state.nested if path.startswith(prefix)]:
            del state.nested[path]


def _signature(found: os.stat_result) -> Signature:
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


_UNSETTLED = (0, 0, 0)


def _settled(found: os.stat_result) -> Signature:
    """Returns the signature, or one that nothing has if it may not show a change."""
    return _signature(found) if is_quiet(found) else _UNSETTLED


def _outside(path: bytes) -> bool:
    """Whether a path has no place in a snapshot, whoever names it."""
    top = path.partition(b"/")[0]
    name = path.rpartition(b"/")[2]
    return (
        top == RESERVED or name.startswith(TEMPORARY) or path_problem(path) is not None
    )


def parents(path: bytes) -> Iterator[bytes]:
    """Yields the directories above a path, from the top."""
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)


def _is_directory(found: os.stat_result) -> bool:
    return (found.st_mode & 0o170000) == trees.DIRECTORY


def _is_leaf(entry: trees.Entry | None) -> bool:
    return entry is not None and entry.mode not in {trees.DIRECTORY, trees.GITLINK}


def empty_directories(state: ScanState) -> list[bytes]:
    """Returns the directories that hold nothing but ignored things."""
    return [path for path, (_, _, _, count) in state.dirs.items() if path and not count]
