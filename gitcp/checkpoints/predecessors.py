"""Finds the predecessor of each numbered checkpoint, and where paths changed."""

import bisect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gitcp.checkpoints.turns import Row
from gitcp.clients.triggers import TURN_START
from gitcp.format.numbers import BEFORE_GIT, ELSEWHERE, MAIN_TREE, Assigned, age
from gitcp.git.paths_at import paths_at
from gitcp.git.repository import Repository
from gitcp.store.store import Store

if TYPE_CHECKING:
    from gitcp.format.layout import BranchKey


def oldest_first(store: Store) -> list[Assigned]:
    """Returns all numbered checkpoints that were not pruned, with their present commits."""
    gone, moved = store.numbers.fates()
    entries = sorted(store.numbers.newest_first(), key=age)
    return [
        entry._replace(commit=moved[entry.number]) if entry.number in moved else entry
        for entry in entries
        if entry.number not in gone
    ]


def predecessors(entries: list[Assigned]) -> Iterator[int | None]:
    """Yields, for entries that begin with the oldest, the position of the state before each.

    That is the checkpoint made before it in its work tree. For one made elsewhere, and for
    the first in a work tree, it is the one before it on its branch.
    """
    in_place: dict[str, int] = {}
    on_branch: dict[BranchKey, int] = {}
    for at, entry in enumerate(entries):
        before = None if entry.place == ELSEWHERE else in_place.get(entry.place)
        if before is None and entry.place == MAIN_TREE:
            before = in_place.get(BEFORE_GIT)
        yield on_branch.get(entry.key) if before is None else before
        in_place[entry.place] = on_branch[entry.key] = at


class PathChanges:
    """Where paths changed, as git finds it out for all checkpoints at once.

    Without paths every row counts.
    """

    def __init__(
        self, store: Store, repository: Repository, paths: Sequence[bytes]
    ) -> None:
        self._all = not paths
        entries = oldest_first(store) if paths else []
        before = list(predecessors(entries))
        commits = [entry.commit for entry in entries]
        changed: set[int] = set()
        for path in paths:
            found = paths_at(repository, commits, path)
            was = (None if at is None else found[at] for at in before)
            changed |= {
                at
                for at, pair in enumerate(zip(found, was, strict=True))
                if pair[0] != pair[1]
            }
        self._changed: dict[str, list[int]] = {}
        # The number that came before each one on its branch.
        self._on_branch: dict[int, int] = {}
        last: dict[tuple[BranchKey, bool], int] = {}
        for at, entry in enumerate(entries):
            line = entry.key, entry.place == BEFORE_GIT
            self._on_branch[entry.number] = last.get(line, 0)
            last[line] = entry.number
            if at in changed:
                self._changed.setdefault(entry.place, []).append(entry.number)

    def may_touch(self, row: Row) -> bool:
        """Whether one of the paths changed while a row was made, by this turn or another.

        True if that is unknown: for a checkpoint without a number, or one made
        elsewhere.
        """
        first, last = row.first, row.last
        unknown = first.number not in self._on_branch or last.place == ELSEWHERE
        if self._all or unknown:
            return True
        numbers = self._changed.get(last.place, [])
        # A turn without a checkpoint of its beginning may have begun long before.
        whole = first.trigger == TURN_START
        after = first.number - 1 if whole else self._on_branch[first.number]
        at = bisect.bisect(numbers, after)
        return at < len(numbers) and numbers[at] <= last.number
