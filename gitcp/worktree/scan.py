"""Scans a work tree: which paths to read, and what cannot be captured.

git finds the tracked paths whose stat changed. A name can only come or go where its
directory's own stat changed: those directories are listed again. If an ignore rule
changed, everything is.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gitcp.git.own_file import read_regular
from gitcp.worktree import state as states
from gitcp.worktree.files import is_directory, is_link, is_regular
from gitcp.worktree.listing import Found, Listing, ScanPlace, signature, sparse_rules
from gitcp.worktree.names import IGNORE_FILE, TEMPORARY, parents
from gitcp.worktree.plain import index_stat
from gitcp.worktree.state import ScanState
from gitcp.worktree.tracked import Tracked, closed, is_leaf

if TYPE_CHECKING:
    from gitcp.worktree.narrow import Narrowed
    from gitcp.worktree.watched import Watch

__all__ = ["IGNORE_FILE", "TEMPORARY", "Rules", "Scan", "empty_directories", "parents"]

# Reasons that may no longer hold although the directory has not changed.
_LOOK_AGAIN = frozenset(
    {"too-large", "unreadable", "changed-while-reading", "deferred"}
)
# Settings that decide which files git ignores, and which it leaves out of the work
# tree.
_SETTINGS = (
    "core.ignorecase",
    "core.precomposeunicode",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "index.sparse",
)


class Rules(NamedTuple):
    """What the user's settings say about capture; sizes are in bytes.

    Files above `chunk_above` are stored in chunks; 0 stores each as one blob. A large new
    file that cannot be read before `deadline` (of `time.monotonic`) is left to a later
    capture. With `watched`, the user's watcher may say what changed. With `backups` a
    database and its log are captured as one file.
    """

    limit: int
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    chunk_above: int = 0
    deadline: float | None = None
    watched: bool = False
    backups: bool = True


class Scan:
    """One scan; it brings `state` up to date as it goes."""

    def __init__(
        self,
        context: ScanPlace,
        rules: Rules,
        state: ScanState,
        watch: "Watch | None" = None,
    ) -> None:
        self._place = context
        self._repository = context.repository
        self._rules = rules
        self._state = state
        self._previous = context.previous.entry
        self._private = context.private
        self._found = Found()
        self._listing = Listing(context, state, self._found)
        self._tracked = Tracked(context, state, self._found, self._listing)
        # The paths known to have changed when everything was listed again.
        self._changed: set[bytes] = set()
        # Whether a file within the earlier limit may be too large for the present one.
        self._limit_fell = False
        self._watch = watch
        self._narrowed: Narrowed | None = None
        # The paths found when everything was listed.
        self._listed: set[bytes] = set()

    def run(self, differing: Callable[[], list[bytes]]) -> Found:
        """Scans; `differing` returns the paths that git's comparison named."""
        try:
            state = self._state
            self._tracked.look()
            rules = self._rules_digest()
            whole = rules != state.rules or state.tree is None or not state.dirs
            shut = closed(state)
            known = sparse_rules(state)
            narrow = self._narrowed = self._narrow(whole=whole)
            listed = frozenset() if whole else self._scan_directories()
            self._tracked.look_again()
            self._compare(differing() if narrow is None else narrow.files)
            whole = (
                whole or known != sparse_rules(state) or self._ignore_rules_changed()
            )
            if whole:
                if narrow is not None:
                    self._narrow_no_more()
                    self._compare(differing())
                self._scan_everything()
                rules = self._rules_digest()
            else:
                self._tracked.learn(whole=False, listed=listed)
            state.rules = rules
            state.limit = self._rules.limit
            self._tracked.learn_hidden(everything=whole or closed(state) != shut)
            self._look_at_forced()
            self._apply_settings()
            self._tracked.drop_what_is_closed(self._listed)
            return self._found
        finally:
            self._listing.close()
            self._tracked.close()

    # --- the watcher ------------------------------------------------------------

    def _narrow(self, *, whole: bool) -> "Narrowed | None":
        """Returns the paths to compare by the watcher's answer; None for everything."""
        watch = self._watch
        if watch is None:
            return None
        names = watch.hear()
        if names is None or whole or self._listing.folds or self._rules.include:
            return None
        from gitcp.worktree.narrow import narrowed  # noqa: PLC0415  few have a watcher

        found = narrowed(names, self._place, self._state, watch)
        watch.trusted = found is not None
        return found

    def _narrow_no_more(self) -> None:
        self._narrowed = None
        if self._watch is not None:
            self._watch.trusted = False

    def _look_at_forced(self) -> None:
        """Has the overlay remember what git ignores: a watcher need not name it."""
        forced = set(self._state.forced) - self._state.overlay.keys()
        if self._watch is not None and len(forced) <= states.FORCED_AT_MOST:
            self._found.look |= {
                path for path in forced if is_leaf(self._previous(path))
            }

    # --- rules ----------------------------------------------------------------

    def _rules_digest(self) -> bytes:
        excludes = self._repository.setting("core.excludesfile")
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        path = f"{config}/git/ignore" if excludes is None else excludes
        sparse = self._repository.git_dir / "info" / "sparse-checkout"
        files = [self._place.top / os.path.expanduser(path)]
        if self._repository.flag("core.sparsecheckout"):
            files.append(sparse)
        settings = [str(self._repository.setting(name)) for name in _SETTINGS]
        return states.digest(
            # How files are stored does not affect which ones are captured.
            str(self._rules[:3]).encode("utf-8", "surrogateescape"),
            path.encode("utf-8", "surrogateescape"),
            self._private.user_excludes(),
            "\0".join(settings).encode("utf-8", "surrogateescape"),
            repr(sorted(sparse_rules(self._state).items())).encode(),
            *map(_content, files),
        )

    def _ignore_rules_changed(self) -> bool:
        result = self._found
        if self._listing.unseen_rules or any(
            path.rpartition(b"/")[2] == IGNORE_FILE
            for path in result.look | result.gone
        ):
            return True
        for path, known in self._state.ignore_files.items():
            now = self._place.stat(path)
            if now is None or signature(now) != known:
                return True
        return False

    def _apply_settings(self) -> None:
        """Adds ignored files that `gitcp.include` names, drops what `exclude` does."""
        result = self._found
        if self._rules.include:
            included = set(self._private.list_matching(self._rules.include))
            result.look |= set(filter(self._is_to_read, included))
            result.gone -= included
            if result.wanted is not None:
                result.wanted |= included
            else:
                closed_since = self._closed_since(included)
                result.look -= closed_since
                result.gone |= closed_since
        if self._rules.exclude:
            globs = self._rules.exclude
            # The rules are those of the last scan, so only new paths can match.
            excluded = set(
                self._private.list_matching(globs)
                if self._narrowed is None
                else self._private.matching(globs, result.look)
            )
            result.excluded = self._tracked.sparse.named(self._rules.exclude)
            excluded |= result.excluded | self._excluded_special()
            excluded |= self._excluded_inside()
            for path in excluded:
                self._listing.note_ignore_file(path)
            result.look -= excluded
            result.gone |= {path for path in excluded if self._previous(path)}
            if result.wanted is not None:
                result.wanted -= excluded

    def _closed_since(self, included: set[bytes]) -> set[bytes]:
        """Returns captured files of `gitcp.include` that now lie in a nested repository.

        A scan does not list directories that git ignores, so it did not find the repository.
        """
        state = self._state
        globs = self._rules.include
        captured = {
            *self._private.list_captured(globs),
            *self._private.matching(globs, state.overlay),
        }
        return {
            path
            for path in captured.difference(included, state.forced, state.sparse)
            if is_leaf(self._previous(path))
            and any(self._place.stat(above + b"/.git") for above in parents(path))
        }

    def _excluded_special(self) -> set[bytes]:
        """Returns special files that `gitcp.exclude` names: they no longer count as skipped."""
        skipped = self._state.skipped
        listed = {path for path, why in skipped.items() if why == "special-file"}
        # No listing leads to these.
        for path in self._found.look.intersection(self._state.forced):
            status = self._place.stat(path)
            if status is not None and _is_special(status):
                listed.add(path)
        named = set(self._private.matching(self._rules.exclude, listed))
        for path in named & skipped.keys():
            del skipped[path]
        return named

    def _excluded_inside(self) -> set[bytes]:
        """Returns paths in nested repositories that `gitcp.exclude` names; git lists none there."""
        nested = self._state.nested
        inside = [
            path
            for path in self._state.forced
            if not nested.keys().isdisjoint(parents(path))
        ]
        return set(self._private.matching(self._rules.exclude, inside))

    # --- what changed -----------------------------------------------------------

    def _scan_directories(self) -> frozenset[bytes]:
        """Looks at what changed in directories; returns the files that listings led to."""
        state = self._state
        listing = self._listing
        changed: list[bytes] = []
        submodules = set(state.submodules)
        if self._narrowed is not None:
            changed += self._narrowed.directories
        for path, known in state.dirs.items() if self._narrowed is None else ():
            try:
                status = os.stat(
                    path or b".", dir_fd=self._place.root.fd, follow_symlinks=False
                )
            except OSError:
                changed.append(path)
                continue
            if signature(status) != known[:3] or (
                listing.folds and listing.renamed_within(path)
            ):
                changed.append(path)
        for path in list(state.nested):
            if self._place.stat(path + b"/.git") is None:
                del state.nested[path]
                self._found.gone.add(path)
                self._found.excused.add(path)
                if path not in submodules:
                    changed.append(path)
        again: set[bytes] = set()
        for path, reason in list(state.skipped.items()):
            if reason not in _LOOK_AGAIN:
                continue
            del state.skipped[path]
            self._found.excused.add(path)
            found_now = self._place.stat(path)
            if found_now is not None and is_directory(found_now):
                changed.append(path)
            elif found_now is None or not listing.is_alias(path, found_now):
                again.add(path)
        unsure = self._tracked.unsure()
        self._listing.walk(
            changed,
            known=lambda path: path not in unsure and is_leaf(self._previous(path)),
        )
        listed = frozenset(self._found.look)
        self._found.look |= again
        self._listing.drop_aliases()
        return listed

    def _compare(self, differing: list[bytes]) -> None:
        """Finds the true changes among git's answer and the paths that git cannot know."""
        overlay = self._state.overlay
        absent: bytes | None = None
        # In order, so that each directory is opened once.
        for path in sorted({*differing, *overlay}):
            gone = absent is not None and path.startswith(absent)
            status = None if gone else self._place.stat(path)
            if status is None and not gone:
                absent = self._absent_above(path)
            if (
                status is None
                or is_directory(status)
                or self._listing.is_alias(path, status)
            ):
                if path not in self._state.sparse and is_leaf(self._previous(path)):
                    self._found.gone.add(path)
                continue
            remembered = overlay.get(path)
            if remembered is not None and remembered[1] == index_stat(status):
                continue
            # A path of the index that was no file in the last snapshot stays out, unless
            # a listing finds it.
            if is_leaf(self._previous(path)):
                listed = path in self._state.skipped or path in self._state.forced
                # A pipe that nothing leads to is ignored: a setting named the file there.
                out = _is_special(status) and not listed
                (self._found.gone if out else self._found.look).add(path)

    def _absent_above(self, path: bytes) -> bytes | None:
        """Returns what paths begin with that cannot be there, as this one's directory is not."""
        directory = path.rpartition(b"/")[0]
        if not directory or self._place.stat(directory) is not None:
            return None
        return directory + b"/"

    def _scan_everything(self) -> None:
        state = self._state
        changed = self._found.look
        state.dirs = {}
        state.skipped = {}
        state.nested = {}
        state.submodules = []
        state.ignore_files = {}
        state.listings = {}
        self._found.look = set()
        # From here on, an ignore file in the index counts in place of a missing one.
        self._listing.close()
        self._tracked.sparse.learn()
        self._listing.everything = True
        self._listing.walk([b""], known=lambda _: False)
        listed, self._found.look = self._found.look, changed
        self._listed = listed
        # After the listing: it finds the ignore files that git would hang on.
        self._tracked.learn(whole=True)
        self._changed = self._found.look
        # Git lists these from its index, whether or not they are on disk.
        forced = {path for path in state.forced if self._place.is_there(path)}
        present = listed | forced
        self._found.wanted = present | state.sparse.keys() | state.nested.keys()
        self._limit_fell = not state.limit or self._rules.limit < state.limit
        self._found.look = set(filter(self._is_to_read, present))

    def _is_to_read(self, path: bytes) -> bool:
        """Whether a file that a whole scan found may not be as the last tree has it."""
        unlike = self._limit_fell or path in self._changed
        return unlike or not is_leaf(self._previous(path))


def _is_special(status: os.stat_result) -> bool:
    return not (is_directory(status) or is_regular(status) or is_link(status))


def _content(path: Path) -> bytes:
    """Returns what a file holds; nothing if it cannot be read."""
    try:
        return read_regular(path)
    except OSError:
        return b""


def empty_directories(state: ScanState) -> list[bytes]:
    """Returns the directories that hold nothing but ignored things."""
    holding = {above for path in state.nested for above in parents(path)}
    return [
        path
        for path, (_, _, _, count) in state.dirs.items()
        if path and not count and path not in holding
    ]
