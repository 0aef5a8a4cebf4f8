"""Finds the paths that git tracks although its rules ignore them, as the user's index changes.

Of a large index git takes long to answer that, and little to list its names. The names of the
last time are kept (derived, docs/format.md, I7); git is asked about those that came.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from gitcp import durable
from gitcp.format import index as indexes
from gitcp.format.index import IndexEntry, Stat
from gitcp.format.tree import FILE
from gitcp.git.process import Process, finish
from gitcp.git.repository import Repository
from gitcp.worktree.state import ScanState

# Paths for one command line; and names that came, beyond which all are as quick.
_AT_ONCE = 200
_FEW = 5_000
_NO_STAT = Stat(0, 0, 0, 0, 0, 0, FILE, 0, 0, 0)


class TrackedNames:
    """The names in the user's index, and which of them are ignored; in `state` and a file."""

    def __init__(
        self,
        repository: Repository,
        directory: Path,
        state: ScanState,
        is_there: Callable[[bytes], bool],
    ) -> None:
        self._repository = repository
        self._directory = directory
        self._state = state
        self._is_there = is_there
        self._listing: Process | None = None

    def start(self) -> None:
        """Starts to list the names in the background."""
        if self._listing is None:
            # A conflict has several entries of one name, and their number is no difference.
            self._listing = self._repository.start(
                "ls-files", "-z", "--cached", "--deduplicate", environment={}
            )

    def close(self) -> None:
        """Ends a listing whose result is no longer needed."""
        process, self._listing = self._listing, None
        if process is not None:
            process.kill()
            process.communicate()

    def ignored(self, *, whole: bool) -> bytes:
        """Returns what is tracked and ignored, as `ls-files -z --stage` lists it.

        Of files that are there it may have the paths only. With `whole` the rules may be
        other ones than the last time.

        Raises:
            GitFailedError: git failed.
        """
        self.start()
        process, self._listing = self._listing, None
        assert process is not None
        state = self._state
        all_ignored = None
        if whole or state.ignored is None or state.sparse:
            # Both at once, as the other one waits to be read.
            all_ignored = self._repository.git(*_IGNORED)
        names = finish(process)
        digest = _digest(names)
        is_same = digest == state.names
        if all_ignored is None:
            all_ignored = self._from_last(None if is_same else names)
        if all_ignored is None:
            all_ignored = self._repository.git(*_IGNORED)
        state.ignored = sorted(_paths(all_ignored))
        if not is_same:
            durable.replace(self._directory / "names", names, sync=False)
            state.names = digest
        return all_ignored

    def _from_last(self, names: bytes | None) -> bytes | None:
        """Returns the same by what is known of the last time; None if that is little.

        `names` are given where they are other ones now.
        """
        ignored = set(self._state.ignored or ())
        if names is not None:
            before = self._before()
            if before is None:
                return None
            gone, came = _difference(before, names)
            if len(came) > _FEW:
                return None
            ignored -= gone
            ignored |= self._ignored_of(came)
        # A file may have become a submodule under the same name, or the other way round.
        unsure = {
            path
            for path in ignored
            if path in self._state.submodules or not self._is_there(path)
        }
        if len(unsure) > _AT_ONCE:
            return None
        listed = b"".join(b"\t" + path + b"\0" for path in sorted(ignored - unsure))
        if unsure:
            listed += self._repository.git(
                *("--literal-pathspecs", "ls-files", "-z", "--stage", "--cached", "--"),
                *sorted(unsure),
            )
        return listed

    def _before(self) -> bytes | None:
        """Returns the names of the last time, if they are those that the state speaks of."""
        try:
            names = (self._directory / "names").read_bytes()
        except OSError:
            return None
        return names if _digest(names) == self._state.names else None

    def _ignored_of(self, names: set[bytes]) -> set[bytes]:
        if not names:
            return set()
        form = self._repository.form
        index = self._directory / "came"
        entries = [IndexEntry(path, b"\1" * form.size, _NO_STAT) for path in names]
        durable.replace(index, indexes.encode(entries, form), sync=False)
        listed = self._repository.run(
            *_IGNORED, environment={"GIT_INDEX_FILE": str(index)}
        )
        return _paths(listed)


_IGNORED = ("ls-files", "-z", "-s", "--cached", "--ignored", "--exclude-standard")


def _digest(names: bytes) -> bytes:
    return hashlib.sha1(names, usedforsecurity=False).digest()


def _paths(listed: bytes) -> set[bytes]:
    return {line.partition(b"\t")[2] for line in listed.split(b"\0")} - {b""}


def _difference(before: bytes, now: bytes) -> tuple[set[bytes], set[bytes]]:
    """Returns the names that are in the first list only, and in the second only.

    Both are sorted and have each name once, so what they begin and end with alike is not
    looked at.
    """
    start = _alike(before, now, lambda text, size, more: text[size:more])
    start = before.rfind(b"\0", 0, start) + 1
    before, now = before[start:], now[start:]
    end = _alike(
        before, now, lambda text, size, more: text[len(text) - more : len(text) - size]
    )
    # Back to the end of the name in which the last difference is.
    if end:
        end = len(before) - before.index(b"\0", len(before) - end) - 1
    first = set(before[: len(before) - end].split(b"\0"))
    second = set(now[: len(now) - end].split(b"\0"))
    return first - second - {b""}, second - first - {b""}


def _alike(one: bytes, other: bytes, part: Callable[[bytes, int, int], bytes]) -> int:
    """Returns how many bytes two texts have in common, from the side that `part` takes."""
    size, most = 0, min(len(one), len(other))
    while size < most:
        more = (size + most + 1) // 2
        if part(one, size, more) == part(other, size, more):
            size = more
        else:
            most = more - 1
    return size
