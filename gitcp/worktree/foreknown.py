"""Adds files that a restore wrote and compared to a scan state, so that no scan reads them.

The scan compares the stat of each file and each directory all the same. So a file that
changed after it was compared is found like any other.
"""

import stat
from collections.abc import Callable, Collection, Mapping

from gitcp.format.tree import DIRECTORY, Tree
from gitcp.worktree.clock import Clock
from gitcp.worktree.databases import BESIDE
from gitcp.worktree.names import IGNORE_FILE
from gitcp.worktree.plain import index_stat
from gitcp.worktree.proof import Proven
from gitcp.worktree.state import ScanState


def enter(
    state: ScanState,
    proven: Mapping[bytes, Proven],
    tree_of: Callable[[bytes], Tree],
    clock: Clock,
    most: int,
) -> None:
    """Brings stats in a state up to date, of directories that hold what its tree has there.

    `proven` are directories by path, `tree_of` returns what the state's tree has in one. If a
    rule or another file affects what is captured, nothing is added. Files above `most` bytes
    may be captured in another form.
    """
    if state.sparse or state.listings:
        return
    # Signs that a directory held something else, too.
    apart = {
        path.rpartition(b"/")[0]
        for path in (*state.skipped, *state.nested, *state.forced, *state.databases)
    }
    for path, one in proven.items():
        known = state.dirs.get(path)
        if known is None or path in apart or not _is_plain(one.names):
            continue
        held = tree_of(path)
        if not _is_same(held, one):
            continue
        if one.status is not None and clock.shows_changes(one.status):
            now = one.status
            inode, written, changed = now.st_ino, now.st_mtime_ns, now.st_ctime_ns
            state.dirs[path] = inode, written, changed, len(held)
        for name, entry, status in one.stats():
            if (
                status is not None
                and status.st_size <= most
                and status.st_mode & stat.S_IRUSR
                and clock.shows_changes(status)
            ):
                state.overlay[path + b"/" + name] = entry.oid, index_stat(status)


def _is_plain(names: Collection[bytes]) -> bool:
    """Whether no file of a directory affects how others are captured."""
    return IGNORE_FILE not in names and not any(
        name.endswith(BESIDE) or not name.isascii() for name in names
    )


def _is_same(held: Tree, one: Proven) -> bool:
    """Whether a tree has what was found in a directory."""
    if not held or held.keys() != one.names.keys():
        return False
    return all(
        held[name].mode == DIRECTORY if entry is None else held[name] == entry
        for name, entry in one.names.items()
    )
