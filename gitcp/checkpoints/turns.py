"""Folds a work tree's timeline into rows: one for each turn of an agent, newest first."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from gitcp.clients.triggers import (
    BEFORE_COMMAND,
    SUBAGENT_STOP,
    TOOL,
    TURN_END,
    TURN_START,
)
from gitcp.format.numbers import Assigned

if TYPE_CHECKING:
    from gitcp.format.layout import BranchKey

# Triggers of checkpoints that are made while a turn runs, and folded into it.
INNER = frozenset({TURN_START, BEFORE_COMMAND, TOOL, SUBAGENT_STOP, "interval"})
# Triggers of a row's newest checkpoint that can have more of the same turn below.
ENDS = frozenset({TURN_END, BEFORE_COMMAND, TOOL, SUBAGENT_STOP})
# Below one of these on a branch, no checkpoint belongs to a turn above it.
BORDERS = frozenset({TURN_END, TURN_START, "restore", "before-restore", "fork"})


class Row(NamedTuple):
    """One row of a timeline: a turn with all its checkpoints, or a checkpoint alone.

    `entries` are newest first; the first one stands for the row.
    """

    entries: tuple[Assigned, ...]

    @property
    def last(self) -> Assigned:
        """The newest checkpoint of the row."""
        return self.entries[0]

    @property
    def first(self) -> Assigned:
        """The oldest checkpoint of the row."""
        return self.entries[-1]

    @property
    def is_turn(self) -> bool:
        """Whether it is a turn of an agent, ended or not."""
        return self.last.trigger in ENDS or self.last.trigger == TURN_START


class _Fold:
    """Finds the row of each entry of a timeline; the caller begins with the newest.

    `running` has the row of each branch that may get more entries, by the position of its
    end. Two agents may work at the same time, so each branch has a row of its own.
    """

    def __init__(self) -> None:
        self.running: dict[BranchKey | str, int] = {}

    def row(self, at: int, entry: Assigned) -> int:
        """Returns the position of the entry that ends the row: `at` for a new row."""
        row = self.running.get(entry.key)
        if row is not None and entry.trigger in INNER:
            if entry.trigger == TURN_START:
                del self.running[entry.key]
            return row
        if row is not None and entry.trigger in BORDERS:
            del self.running[entry.key]
        if entry.trigger in ENDS:
            self.running[entry.key] = at
        return at


def rows(entries: Iterable[Assigned]) -> Iterator[Row]:
    """Yields the rows of a timeline, newest first."""
    fold = _Fold()
    waiting: dict[int, list[Assigned]] = {}
    for at, entry in enumerate(entries):
        waiting.setdefault(fold.row(at, entry), []).append(entry)
        # A row that still runs may get more; those below it wait for it.
        still = fold.running.values()
        while waiting and (first := next(iter(waiting))) not in still:
            yield Row(tuple(waiting.pop(first)))
    for left in waiting.values():
        yield Row(tuple(left))


def count_rows(entries: Iterable[tuple["BranchKey | str", str]]) -> int:
    """Returns how many rows a timeline has: the branch and trigger of each entry.

    It folds as `rows` does, in a fifth of the time.
    """
    count, running = 0, set()
    for key, trigger in entries:
        inner = trigger in INNER and key in running
        count += not inner
        if trigger in BORDERS:
            running.discard(key)
        if trigger in ENDS and not inner:
            running.add(key)
    return count
