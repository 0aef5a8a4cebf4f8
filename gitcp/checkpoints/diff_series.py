"""Compares many pairs of states at once: what each turn of a session changed in files."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby
from typing import NamedTuple

from gitcp.checkpoints.diff import FileDiff, Room, counted, line_counts
from gitcp.errors import CorruptError
from gitcp.format.safety import path_problem
from gitcp.format.tree import GITLINK, Change, Entry
from gitcp.git.compare import Comparison, comparison
from gitcp.git.objects import size_of
from gitcp.git.repository import Repository
from gitcp.store.checkpoint import Checkpoint

_SECTION = b"diff --git "


class Compared(NamedTuple):
    """The changes that led to one state; `sides` are the checkpoints they lie between."""

    changes: Sequence[Change]
    sides: tuple[Checkpoint, ...]


class SeriesDiff(NamedTuple):
    """Every changed path of one pair, and the patch of each that `git diff` writes one for."""

    files: tuple[FileDiff, ...]
    patches: dict[bytes, bytes]


@contextmanager
def comparing(
    repository: Repository, wanted: Sequence[Compared]
) -> Iterator[Callable[[], list[SeriesDiff | None]]]:
    """Starts to compare pairs of states, as `diff.since` does each; yields how to get them.

    git compares them all in two processes, while the caller does something else. None
    stands for a pair of which something is missing. What is yielded raises GitFailedError if
    an object is damaged.
    """
    with (
        comparison(repository.form, repository.common_dir / "objects") as aside,
        ThreadPoolExecutor(2) as pool,
    ):
        pairs = [_sides(aside, one) for one in wanted]
        aside.flush()
        there = [pair for pair in pairs if pair is not None]
        counted_by_git = pool.submit(aside.run_each, there, "--numstat", "-z")
        printed_by_git = pool.submit(aside.run_each, there, "--patch")

        def results() -> list[SeriesDiff | None]:
            counts = iter(counted_by_git.result())
            patches = iter(printed_by_git.result())
            return [
                None
                if pair is None
                else _joined(one.changes, next(counts), next(patches))
                for pair, one in zip(pairs, wanted, strict=True)
            ]

        yield results


def _joined(changes: Sequence[Change], counts: bytes, patch: bytes) -> SeriesDiff:
    lines = line_counts(counts)
    # A file that became a link has two sections, a deletion and an addition, but one count.
    sections = [
        b"".join(_SECTION + section.rstrip(b"\n") + b"\n" for section in alike)
        for _, alike in groupby(_sections(patch), lambda text: text.split(b"\n", 1)[0])
    ]
    texts = dict(zip(lines, sections, strict=True))
    return SeriesDiff(counted(changes, lines), texts)


def _sections(patch: bytes) -> list[bytes]:
    """Returns the section of a patch for each file; no line of a file begins as a section does."""
    return (b"\n" + patch).split(b"\n" + _SECTION)[1:]


def _sides(aside: Comparison, one: Compared) -> tuple[bytes, bytes] | None:
    """Adds both sides of changes to a comparison; None if a blob is missing."""
    room = Room(*one.sides)
    before: dict[bytes, Entry | None] = {}
    after: dict[bytes, Entry | None] = {}
    try:
        for change in one.changes:
            # git would not read a tree with such a name.
            if path_problem(change.path) is None:
                before[change.path] = _kept(aside, change.old, one, room)
                after[change.path] = _kept(aside, change.new, one, room)
    except CorruptError:
        return None
    return aside.holding(before), aside.holding(after)


def _kept(
    aside: Comparison, entry: Entry | None, one: Compared, room: Room
) -> Entry | None:
    """Returns an entry whose blob git can compare; None if there is none."""
    if entry is None or entry.mode == GITLINK:
        return None
    objects = one.sides[-1].objects
    size = size_of(objects, entry.oid)
    if not room.holds(size):
        # A NUL: git names such a file without comparing lines.
        return Entry(entry.mode, aside.add(b"\0" + entry.oid))
    room.take(size)
    if entry.oid in objects.chunked:
        return Entry(entry.mode, aside.add(b"".join(objects.content(entry.oid))))
    return entry
