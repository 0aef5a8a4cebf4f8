"""Narrows a scan to the paths that the user's watcher names, and those it cannot know.

Paths that a watcher leaves out on purpose are compared as without one: nested
repositories, paths that could not be read before, and tracked files in ignored
directories.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple

from gitcp.worktree.listing import UNSETTLED, ScanPlace, signature
from gitcp.worktree.names import parents
from gitcp.worktree.state import FORCED_AT_MOST, ScanState
from gitcp.worktree.watched import Watch


class Narrowed(NamedTuple):
    """The known directories and files to compare; all others count as unchanged."""

    directories: list[bytes]
    files: list[bytes]


def narrowed(
    names: Iterable[bytes], place: ScanPlace, state: ScanState, watch: Watch
) -> Narrowed | None:
    """Returns the part of a work tree to compare; None for everything.

    `names` is the watcher's answer. A name says nothing about paths below a known
    directory that is gone or was replaced.
    """
    forced = set(state.forced)
    if state.sparse or len(forced) > FORCED_AT_MOST or forced - state.overlay.keys():
        return None
    own = place.repository.own_paths | state.nested.keys()
    known = state.dirs
    directories: set[bytes] = set()
    files: set[bytes] = set()
    for name in names:
        path = name.removesuffix(b"/")
        above = (b"", *parents(path))
        if own and not own.isdisjoint((path, *above)):
            continue
        if path not in known:
            files.add(path)
        elif name != path:
            # Everything below it may have changed.
            return None
        else:
            directories.add(path)
        directories.update(one for one in above if one in known)
    listed, compared = watch.sample(state, place.stat)
    changed: list[bytes] = []
    for path in sorted(directories.union(listed)):
        before = known[path][:3]
        try:
            status = os.stat(path or b".", dir_fd=place.root.fd, follow_symlinks=False)
        except OSError:
            return None
        now = signature(status)
        if now == before:
            continue
        if before == UNSETTLED and path not in directories:
            changed.append(path)
        elif now[0] != before[0]:
            return None
        else:
            changed.append(path)
    return Narrowed(changed, sorted(files.union(compared)))
