"""Attributes changes to turns that ran at the same time, as far as the records tell.

Between two checkpoints of a work tree only the turns that ran then can have changed a file,
and of these only those whose tools edited it, or ran something else at that time. A change
that only one turn can have made belongs to that turn. So does a file with a text that only one
of them wrote by its tools. A person's edits, and those of a process that a command left
running, cannot be seen.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from gitcp.checkpoints.beside import Beside, Span, read
from gitcp.checkpoints.standing import RESTORE
from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format import tree
from gitcp.format.numbers import Assigned
from gitcp.format.tree import EXECUTABLE, FILE, Change
from gitcp.git.objects import size_of
from gitcp.store.checkpoint import Checkpoint, FileCounts
from gitcp.store.store import Store
from gitcp.store.surroundings import since

if TYPE_CHECKING:
    from gitcp.checkpoints.traces import Trace

# Bytes; a larger file is not searched for what an edit wrote.
_LOOKED_THROUGH = 1 << 20


class Parted(NamedTuple):
    """Which of the paths that changed during a turn may not be its own.

    Each maps paths to turns. `unsure` may be this turn's changes or those of the turns named;
    `others` are changes of the turns named, or of a restore. All other paths are this turn's
    own; `also` has those that the turns named changed, or may have changed, at another moment.
    `before` is the state that the turn began at, where that is not the state before its first
    checkpoint.
    """

    unsure: dict[bytes, tuple[Span, ...]]
    others: dict[bytes, tuple[Span, ...]]
    also: dict[bytes, tuple[Span, ...]]
    before: Checkpoint | None = None

    def own(self, path: bytes) -> bool:
        """Whether a path is the turn's alone, as far as is known."""
        return path not in self.unsure and path not in self.others


class _Segment(NamedTuple):
    """The changes between two consecutive checkpoints of a work tree."""

    after: int
    until: int
    trigger: str
    changes: tuple[Change, ...]


class Whose:
    """Attributes changes to turns, for any number of turns of one repository."""

    def __init__(self, store: Store, beside: Beside) -> None:
        self._store = store
        self._beside = beside
        self._traces: dict[int, Trace] = {}

    def of(self, entry: Assigned) -> Parted | None:
        """Returns which changes of a checkpoint's turn may belong to others; None if it ran alone.

        Raises:
            CorruptError, TransferError: a checkpoint on the way cannot be compared.
        """
        others = self._beside.of(entry)
        span = self._beside.span(entry)
        if span is None or not others:
            return None
        mine: set[bytes] = set()
        unsure: dict[bytes, dict[int, Span]] = {}
        theirs: dict[bytes, dict[int, Span]] = {}
        for segment in self._segments(span):
            running = _running((span, *others), segment)
            if segment.trigger == RESTORE and len(running) > 1:
                # A person did this, not a turn.
                for change in segment.changes:
                    theirs.setdefault(change.path, {})
                continue
            for change in segment.changes:
                path = change.path
                changers = self._changers(segment, running, change) or [span]
                into = theirs
                if span in changers:
                    into = unsure
                    if len(changers) == 1:
                        mine.add(path)
                        continue
                named = {one.last.number: one for one in changers if one != span}
                into.setdefault(path, {}).update(named)
        return Parted(
            {path: _listed(unsure[path]) for path in unsure if path not in mine},
            {
                path: _listed(theirs[path])
                for path in theirs
                if path not in mine and path not in unsure
            },
            {
                path: _listed({**theirs.get(path, {}), **unsure.get(path, {})})
                for path in mine & (theirs.keys() | unsure.keys())
            },
            self._before(span),
        )

    def changers(self, entry: Assigned, path: bytes) -> list[Span]:
        """Returns the turns that may have changed a path right before a turn's checkpoint.

        That is between the checkpoint before it in its work tree and this one; the turn itself
        comes first. Nothing if the checkpoint is of no turn, or no turn was running.

        Raises:
            CorruptError, TransferError: a checkpoint on the way cannot be compared.
        """
        span = self._beside.span(entry)
        if span is None:
            return []
        entries = self._beside.timeline(span, entry.number - 1)[:2]
        if not entries or entries[-1].number != entry.number:
            return []
        alone = entries[0] == entries[-1]
        after = 0 if alone else entries[0].number
        segment = _Segment(after, entry.number, entry.trigger, ())
        running = _running((span, *self._beside.of(entry)), segment)
        if len(running) <= 1:
            return running
        old, new = None if alone else self._readable(entries[0]), self._readable(entry)
        change = Change(
            path, old.entry(path) if old else None, new.entry(path) if new else None
        )
        return self._changers(segment, running, change)

    def _changers(
        self, segment: _Segment, running: list[Span], change: Change
    ) -> list[Span]:
        """Returns the turns that may have changed a path in a part of the timeline."""
        if len(running) <= 1:
            return running
        traces = [(one, self._trace(one)) for one in running]
        able = [
            one
            for one, left in traces
            if left.may_have_changed(change.path, segment.after, segment.until)
        ]
        if len(able) == 1:
            return able
        editors = [
            one
            for one, left in traces
            if any(
                self._came(text, change) for text in left.edited.get(change.path, ())
            )
        ]
        if len(editors) == 1:
            return editors
        # If the records exclude all of them, all are equally likely.
        return able or running

    def _came(self, text: bytes, change: Change) -> bool:
        """Whether a text is new in a file."""
        read = self._store.repository.objects
        old, new = (
            b"".join(read.content(entry.oid))
            if entry is not None
            and entry.mode in {FILE, EXECUTABLE}
            and size_of(read, entry.oid) <= _LOOKED_THROUGH
            else b""
            for entry in (change.old, change.new)
        )
        return text in new and text not in old

    def _trace(self, span: Span) -> "Trace":
        # Reading conversations takes modules that rows which ran alone do without.
        from gitcp.checkpoints.traces import trace  # noqa: PLC0415

        number = span.last.number
        if number not in self._traces:
            self._traces[number] = trace(self._store, span)
        return self._traces[number]

    def _segments(self, span: Span) -> Iterator[_Segment]:
        """Yields the changes since the state before a turn, checkpoint by checkpoint."""
        down_to = min(span.after, span.row.first.number - 1)
        last: tuple[int, Checkpoint] | None = None
        for entry in self._beside.timeline(span, down_to):
            checkpoint = self._readable(entry)
            if checkpoint is None:
                continue
            if last is not None:
                read_tree = checkpoint.objects.files
                changes = tree.diff(
                    last[1].files_tree, checkpoint.files_tree, read_tree
                )
                yield _Segment(last[0], entry.number, entry.trigger, tuple(changes))
            last = entry.number, checkpoint

    def _readable(self, entry: Assigned) -> Checkpoint | None:
        with suppress(CorruptError, FormatTooNewError):
            checkpoint = read(self._store, entry)
            if checkpoint is not None and checkpoint.holds_files:
                return checkpoint
        return None

    def _before(self, span: Span) -> Checkpoint | None:
        entry = self._beside.before(span)
        return self._readable(entry) if entry is not None else None


def shared_out(
    parted: Parted | None, before: Checkpoint | None, end: Checkpoint
) -> tuple[FileCounts, tuple[Change, ...]]:
    """Counts what is a turn's own of its changes; returns what may be another's as well.

    Without `parted`, all changes are the turn's own.

    Raises:
        CorruptError: a tree is missing or damaged.
    """
    if parted is None:
        return since(end, before), ()
    old = before.files_tree if before is not None else None
    changes = list(tree.diff(old, end.files_tree, end.objects.files))
    own = [change.status for change in changes if parted.own(change.path)]
    counts = FileCounts(*map(own.count, ("added", "modified", "deleted")))
    return counts, tuple(one for one in changes if one.path in parted.unsure)


def _running(spans: Iterable[Span], segment: _Segment) -> list[Span]:
    """Returns the turns that ran in a part of the timeline."""
    return [
        one for one in spans if one.after < segment.until and one.until > segment.after
    ]


def _listed(spans: dict[int, Span]) -> tuple[Span, ...]:
    return tuple(spans[number] for number in sorted(spans))
