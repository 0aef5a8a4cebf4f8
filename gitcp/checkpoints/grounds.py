"""Finds the turns that recorded reasons, and the files that these turns changed."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from gitcp.checkpoints import standing
from gitcp.checkpoints.beside import Beside
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.turns import Row, rows
from gitcp.checkpoints.whose import Whose
from gitcp.errors import CorruptError, FormatTooNewError, TransferError
from gitcp.format import tree
from gitcp.format.log import Decision
from gitcp.format.tree import Change
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.surroundings import Surroundings

# A reason belongs to the turn that was saved next or, if several run at once, to one of the
# next.
_NEXT = 8
# How many rows below the oldest reason are read, because a clock may have been set.
_OLDER = 20


class Ground(NamedTuple):
    """The turn in which a reason was recorded, by its last checkpoint.

    `changes` are what it changed itself in the files, as far as is known.
    """

    checkpoint: Checkpoint
    changes: tuple[Change, ...]

    def taken_back(self, present: Checkpoint) -> bool:
        """Whether everything that the turn changed is again as it was before the turn."""
        with suppress(CorruptError, TransferError):
            return bool(self.changes) and all(
                present.entry(change.path) == change.old for change in self.changes
            )
        return False

    def touches(self, paths: Iterable[bytes]) -> bool:
        """Whether the turn changed one of some paths, or something below it."""
        chosen = tuple(paths)
        return any(
            change.path == path or change.path.startswith(path + b"/") or not path
            for change in self.changes
            for path in chosen
        )


def find(workspace: Workspace, entries: Sequence[Decision]) -> dict[Decision, Ground]:
    """Returns where reasons were recorded; those without a time, or pruned, are left out."""
    timed = [entry for entry in entries if entry.at is not None]
    if not timed:
        return {}
    oldest = min(entry.at or "" for entry in timed)
    listed = list(_rows_since(workspace, oldest))[::-1]
    times = [row.last.created for row in listed]
    look = _Look(workspace)
    found: dict[Decision, Ground] = {}
    for entry in timed:
        start = bisect_left(times, entry.at or "")
        for row in islice(listed, start, start + _NEXT):
            if entry in look.decisions(row):
                ground = look.ground(row)
                if ground is not None:
                    found[entry] = ground
                break
    return found


def _rows_since(workspace: Workspace, oldest: str) -> Iterator[Row]:
    """Yields the rows of a work tree down to a time, and a few more."""
    older = 0
    for row in rows(standing.timeline(workspace)):
        older += row.last.created < oldest
        if older > _OLDER:
            return
        yield row


class _Look:
    """Reads the turns of a work tree, each once."""

    def __init__(self, workspace: Workspace) -> None:
        self._store = workspace.store
        self._reach = Reach(workspace.store)
        self._beside = Beside(workspace.store)
        self._whose = Whose(workspace.store, self._beside)
        self._decisions: dict[int, frozenset[Decision]] = {}
        self._grounds: dict[int, Ground | None] = {}

    def decisions(self, row: Row) -> frozenset[Decision]:
        number = row.last.number
        if number not in self._decisions:
            self._decisions[number] = frozenset()
            with suppress(CorruptError, FormatTooNewError):
                checkpoint = readable(self._reach, row.last)
                if checkpoint is not None and checkpoint.origin.logs is None:
                    self._decisions[number] = frozenset(checkpoint.decisions())
        return self._decisions[number]

    def ground(self, row: Row) -> Ground | None:
        number = row.last.number
        if number not in self._grounds:
            self._grounds[number] = None
            with suppress(CorruptError, FormatTooNewError, TransferError):
                self._grounds[number] = self._read(row)
        return self._grounds[number]

    def _read(self, row: Row) -> Ground | None:
        end = readable(self._reach, row.last)
        if end is None:
            return None
        first = readable(self._reach, row.first) or end
        store = self._store
        parted = self._whose.of(row.last) if self._beside.of(row.last) else None
        before = parted.before if parted is not None else None
        if before is None:
            around = Surroundings(store.numbers, store.labels, store.checkpoint)
            before = around.before_turn(first)
        if before is None:
            # The first save of all: what was there had no reason that is known.
            return Ground(end, ())
        changes = tree.diff(before.files_tree, end.files_tree, end.objects.files)
        return Ground(
            end,
            tuple(one for one in changes if parted is None or parted.own(one.path)),
        )
