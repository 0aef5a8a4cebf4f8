"""Finds the turns of agents that ran at the same time in one work tree.

A checkpoint holds the whole work tree, whichever agent it was made for. The list of
numbers alone shows which turns overlap. The conversation is read for a turn's time only if
the turn has no checkpoint of its beginning, and another agent's checkpoint comes right
before it.
"""

import datetime
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from gitcp.checkpoints.turns import BORDERS, ENDS, INNER, Row, rows
from gitcp.clients.triggers import TURN_END, TURN_START
from gitcp.errors import GitcpError
from gitcp.format.checkpoint import timestamp
from gitcp.format.numbers import ELSEWHERE, Assigned
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# A killed turn has no end: it counts as running for so long after its last checkpoint.
_RUNS_ON = datetime.timedelta(hours=1)
_LOOKED_AT = 100
# With fewer newer checkpoints than this, it is quicker to read from the newest on.
_FAR = 500
_OF_TURNS = INNER | ENDS


class Span(NamedTuple):
    """A turn, and when it ran: after one checkpoint and until another, by their numbers.

    If the turn has no end, `until` is the newest checkpoint up to which it may have run.
    """

    row: Row
    after: int
    until: int

    @property
    def last(self) -> Assigned:
        """The newest checkpoint of the turn."""
        return self.row.last


class Beside:
    """The turns of a repository, and which of them ran at the same time.

    Each work tree's timeline is read as far down as was requested.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._timelines: dict[str, _Timeline] = {}

    def span(self, entry: Assigned) -> Span | None:
        """Returns the turn that a checkpoint belongs to; None if it belongs to none."""
        return self._timeline(entry).span(entry.number)

    def of(self, entry: Assigned) -> list[Span]:
        """Returns the turns that overlap a checkpoint's turn, the oldest first."""
        return self._timeline(entry).beside(entry.number)

    def timeline(self, span: Span, down_to: int) -> list[Assigned]:
        """Returns the checkpoints made in a turn's work tree until the turn ended, oldest first.

        The first one is the newest whose number is not above `down_to`, if there is
        one.
        """
        return self._timeline(span.last).between(down_to, span.last.number)

    def before(self, span: Span) -> Assigned | None:
        """Returns the checkpoint before a turn that has none of its own beginning.

        None if it has one, or if nothing was saved before it.
        """
        if span.row.first.trigger == TURN_START or not span.after:
            return None
        return self._store.numbers.find(span.after)

    def _timeline(self, entry: Assigned) -> "_Timeline":
        known = self._timelines.get(entry.place)
        if known is None:
            newest = next(self._store.numbers.newest_first(), entry)
            far = newest.number - entry.number > _FAR
            # Checkpoints newer than every turn that ran meanwhile do not matter.
            below = _above(self._store, entry) if far else None
            known = _Timeline(self._store, entry.place, below)
        elif known.below is not None and entry.number >= known.below:
            known = _Timeline(self._store, entry.place)
        self._timelines[entry.place] = known
        return known


def _above(store: Store, wanted: Assigned) -> int | None:
    """Returns a number above every checkpoint that is needed to find what ran beside one.

    None if there is none. The outlines of the list are enough to find it, in a fifth of
    the time that it takes to read all turns.
    """
    if wanted.place == ELSEWHERE:
        return None
    listed = [one for one in store.numbers.outlines() if one[2] == wanted.place]
    # By branch: where in the list the turn ends whose other checkpoints come further down.
    running: dict[str, int] = {}
    last: dict[str, int] = {}
    unended: list[tuple[int, int]] = []
    newest: list[int] = []
    top = None
    for at, (number, key, _, _, trigger) in enumerate(listed):
        inner = trigger in INNER and key in running
        if not inner:
            if trigger in BORDERS or trigger in ENDS:
                running.pop(key, None)
            if trigger in ENDS:
                running[key] = at
            if trigger in _OF_TURNS and trigger != TURN_END:
                unended.append((at, last.get(key, -1)))
        newest.append(min(running.get(key, at), next(iter(running.values()), at)))
        if top is None and int(number) <= wanted.number:
            top = newest[running.get(key, at) if inner else at]
        if trigger == TURN_START:
            running.pop(key, None)
        last[key] = at
    if top is None:
        return None
    before = len(listed)
    while top < before:
        before = top
        # Up to where a turn runs that has not ended: see `_Timeline`.
        for at, following in unended:
            limit = _shifted(listed[at][3], _RUNS_ON) if at >= top > following else ""
            while top > max(following, 0) and listed[top - 1][3] <= limit:
                top -= 1
        top = newest[top]
    return int(listed[top - 1][0]) if top else None


class _Timeline:
    """The checkpoints of one work tree below a number, newest first, read on demand."""

    def __init__(self, store: Store, place: str, below: int | None = None) -> None:
        self._store = store
        self.below = below
        # Checkpoints made elsewhere do not belong to one work tree.
        listed = store.numbers.newest_first(below=below) if place != ELSEWHERE else ()
        self._source = (entry for entry in listed if entry.place == place)
        self._entries: list[Assigned] = []
        self._places: dict[int, int] = {}
        self._rows = rows(self._each())
        self._bottom: float = float("inf")
        self._bottom_made = ""
        self._open: list[Span] = []
        self._taken: list[Span] = []
        self._order: dict[int, int] = {}
        self._spans: dict[int, Span] = {}
        self._beside: dict[int, list[Span]] = {}

    def span(self, number: int) -> Span | None:
        self._read(number)
        return self._spans.get(number)

    def beside(self, number: int) -> list[Span]:
        span = self.span(number)
        if span is None:
            return []
        # Turns that ended while this one ran lie below its end, but above its beginning.
        self._read(span.after)
        # So do turns that have not ended, from further below.
        since = _shifted(span.row.first.created, -_RUNS_ON)
        enough = self._order[span.last.number] + _LOOKED_AT
        while self._bottom_made >= since and len(self._taken) < enough:
            self._read(self._bottom - 1)
        found = self._beside.get(span.last.number, [])
        return sorted(found, key=lambda one: one.last.number)

    def between(self, low: int, high: int) -> list[Assigned]:
        self._read(high)
        found: list[Assigned] = []
        for entry in self._each(self._places[high]):
            found.append(entry)
            if entry.number <= low:
                break
        return found[::-1]

    def _each(self, start: int = 0) -> Iterator[Assigned]:
        """Yields the entries from an index on, and keeps those that were read."""
        at = start
        while True:
            if at == len(self._entries):
                entry = next(self._source, None)
                if entry is None:
                    return
                self._places[entry.number] = at
                self._entries.append(entry)
            yield self._entries[at]
            at += 1

    def _read(self, down_to: float) -> None:
        """Reads rows until one ends at a number or below it."""
        while self._bottom > down_to:
            row = next(self._rows, None)
            if row is None:
                self._bottom, self._bottom_made = 0, ""
                return
            self._bottom, self._bottom_made = row.last.number, row.last.created
            if row.is_turn:
                self._take(row)

    def _take(self, row: Row) -> None:
        span = Span(row, self._after(row), self._until(row))
        self._open = [one for one in self._open if one.after < row.last.number]
        above = list(self._open)
        if span.until > row.last.number:
            newer = (one for one in self._taken[-_LOOKED_AT:] if one not in above)
            above += (one for one in newer if one.after < span.until)
        for other in above:
            if other.last.key != row.last.key:
                self._beside.setdefault(other.last.number, []).append(span)
                self._beside.setdefault(row.last.number, []).append(other)
        self._open.append(span)
        self._order[row.last.number] = len(self._taken)
        self._taken.append(span)
        for entry in row.entries:
            self._spans[entry.number] = span

    def _until(self, row: Row) -> int:
        """Returns the number at which a turn ends or, without an end, up to which it may have run.

        That is at most an hour after its last checkpoint, and no longer than until its
        session saved something else.
        """
        last = row.last
        until = last.number
        if last.trigger == TURN_END:
            return until
        limit = _shifted(last.created, _RUNS_ON)
        for at in range(self._places[last.number] - 1, -1, -1):
            entry = self._entries[at]
            if entry.key == last.key or entry.created > limit:
                break
            until = entry.number
        return until

    def _after(self, row: Row) -> int:
        """Returns the number of the newest checkpoint that existed when a turn began."""
        first = row.first
        if first.trigger == TURN_START:
            return first.number
        while_running = False
        began: str | None = None
        for entry in self._below(first.number):
            if entry.key == first.key:
                # The turn began after what its own session had saved before.
                break
            if entry.trigger in _OF_TURNS:
                began = began or self._began(row)
                if began is None or entry.created <= began:
                    break
                while_running = True
        for entry in self._below(first.number):
            if not while_running or began is None or entry.created <= began:
                return entry.number
        return 0

    def _below(self, number: int) -> Iterator[Assigned]:
        return self._each(self._places[number] + 1)

    def _began(self, row: Row) -> str | None:
        """Returns the time of a turn's prompt, from its conversation, or None."""
        # Few turns need these modules, and `log` starts faster without them.
        from gitcp.checkpoints.spoken_turns import turns  # noqa: PLC0415
        from gitcp.checkpoints.turn_of import new_records  # noqa: PLC0415

        with suppress(GitcpError, ValueError, OverflowError, OSError):
            first, last = (read(self._store, one) for one in (row.first, row.last))
            if first is None or last is None or last.manifest.conversation is None:
                return None
            spoken = turns(new_records(self._store, first, last))
            asked = [one.at for one in spoken if one.prompt is not None and one.at]
            return timestamp(asked[-1]) if asked else None
        return None


def _shifted(created: str, by: datetime.timedelta) -> str:
    """Returns the time of a checkpoint, moved by a difference."""
    moment = datetime.datetime.fromisoformat(created) + by
    return timestamp(moment.timestamp())


def read(store: Store, entry: Assigned) -> Checkpoint | None:
    """Returns the checkpoint behind a number as it is now; None if it is gone.

    Raises:
        CorruptError: the checkpoint is damaged.
    """
    found = store.numbers.find(entry.number)
    return store.checkpoint((found or entry).commit)
