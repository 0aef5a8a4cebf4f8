"""Checks a watcher: finds changes that a capture saw and the watcher did not name."""

from gitcp.format.tree import Entry
from gitcp.worktree.files import Root
from gitcp.worktree.listing import Found
from gitcp.worktree.names import parents
from gitcp.worktree.read import Content, Trouble
from gitcp.worktree.state import ScanState
from gitcp.worktree.tracked import is_leaf
from gitcp.worktree.watched import Watch


class Judge:
    """Compares the files that are read with the watcher's answer.

    Only a proof of a wrong answer counts: changed content, in a file that was last
    written before the watcher was asked.
    """

    def __init__(
        self, watch: Watch, root: Root, state: ScanState, result: Found
    ) -> None:
        self._watch = watch
        self._root = root
        # No watcher names a path that a change of rules, of the index or of a setting
        # affects.
        self._excused = {*result.excused, *state.forced, *state.sparse, *state.nested}
        self._whole = result.wanted is not None

    def _is_excused(self, path: bytes) -> bool:
        excused = self._excused
        return bool(excused) and not excused.isdisjoint((path, *parents(path)))

    def read(
        self, path: bytes, content: Content | Trouble, before: Entry | None
    ) -> None:
        """Judges a path that was read; `before` is its entry in the last capture."""
        if isinstance(content, Trouble) or not content.settled:
            return
        new = not is_leaf(before)
        if content.entry == before or (new and self._whole) or self._is_excused(path):
            return
        self._watch.judge_stat(path, content.stat)

    def gone(self, path: bytes, before: Entry | None) -> None:
        """Judges a path that the last capture had: its directory has the time."""
        if not is_leaf(before) or self._is_excused(path):
            return
        try:
            if self._root.lstat(path) is not None:
                return
            for above in reversed((b"", *parents(path))):
                status = self._root.lstat(above) if above else None
                if status is not None:
                    self._watch.judge_directory(path, status)
                    return
        except OSError:
            return
