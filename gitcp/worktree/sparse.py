"""Paths that a sparse checkout leaves out: they count as unchanged from the user's index.

A path no longer counts as such if something exists there, or in place of a directory
above it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from gitcp.worktree.files import is_directory
from gitcp.worktree.listing import Listing, ScanPlace
from gitcp.worktree.names import no_place
from gitcp.worktree.state import ScanState


class Sparse:
    """Brings `sparse` and `blocked` of a state up to date."""

    def __init__(self, context: ScanPlace, state: ScanState, listing: Listing) -> None:
        self._place = context
        self._state = state
        self._listing = listing
        self._git = context.repository.git
        self._is_on = context.repository.flag("core.sparsecheckout")
        self._nested_before = set(state.nested)

    def learn(self) -> None:
        """Asks git what is left out, and the disk what is in the way."""
        state = self._state
        state.sparse = {}
        state.blocked = {}
        if not self._is_on:
            return
        taken: dict[bytes, bytes | None] = {}
        # Git drops the mark if it finds something at such a path.
        marks = "-c", "sparse.expectFilesOutsideOfPatterns=true"
        for line in self._git(*marks, "ls-files", "-z", "-t", "-s").split(b"\0"):
            if not line.startswith(b"S "):
                continue
            head, _, path = line[2:].partition(b"\t")
            mode, oid, _ = head.split(b" ")
            if no_place(path) is not None:
                continue
            above = self._taken(path.rpartition(b"/")[0], taken)
            if above is not None:
                state.blocked[above] = True
            elif self._place.stat(path) is not None:
                state.blocked[path] = False
            else:
                state.sparse[path] = int(mode, 8), bytes.fromhex(oid.decode())
                state.skipped.pop(path, None)

    def is_outdated(self) -> bool:
        """Whether the disk has changed in a place that no listing shows.

        Something in the way is gone, or something appeared where nothing is listed.
        """
        state = self._state
        if not self._is_on:
            return bool(state.sparse)
        if state.blocked is None:
            return True
        for path, is_above in state.blocked.items():
            status = self._place.stat(path)
            if status is None or (is_above and is_directory(status)):
                return True
        taken: dict[bytes, bytes | None] = {}
        return any(
            self._place.stat(path) is not None
            or self._taken(path.rpartition(b"/")[0], taken) is not None
            for path in state.sparse.keys() & set(state.hidden)
        )

    def came(self) -> bool:
        """Whether this scan shows, or hides from now on, where files are left out."""
        sparse = self._state.sparse
        if not sparse:
            return False
        omitted = sorted(sparse)
        for directory in self._state.nested.keys() - self._nested_before:
            # Paths that appeared together with it are not listed.
            if any(_children(omitted, directory)):
                return True
        for directory in self._listing.walked():
            for path in _children(omitted, directory):
                if not self._listing.may_list(path):
                    continue
                status = self._place.stat(path)
                if status is not None and (path in sparse or not is_directory(status)):
                    return True
        return False

    def named(self, globs: Iterable[str]) -> set[bytes]:
        """Returns the omitted paths that ignore patterns name."""
        if not self._state.sparse:
            return set()
        patterns = [word for glob in globs for word in ("-x", glob)]
        listed = self._git("ls-files", "-z", "--cached", "--ignored", *patterns)
        return self._state.sparse.keys() & set(listed.split(b"\0"))

    def _taken(
        self, directory: bytes, known: dict[bytes, bytes | None]
    ) -> bytes | None:
        """Returns the path that is in place of a directory or of one above it, if any."""
        if not directory:
            return None
        if directory not in known:
            above = self._taken(directory.rpartition(b"/")[0], known)
            if above is None and self._place.is_there(directory):
                above = directory
            known[directory] = above
        return known[directory]


def _children(paths: Sequence[bytes], directory: bytes) -> Iterator[bytes]:
    """Yields the children of a directory that some sorted paths are, or lie in."""
    prefix = directory + b"/" if directory else b""
    at = bisect_left(paths, prefix)
    while at < len(paths) and paths[at].startswith(prefix):
        name, inside, _ = paths[at].removeprefix(prefix).partition(b"/")
        child = prefix + name
        yield child
        at = bisect_left(paths, child + b"0", at) if inside else at + 1
