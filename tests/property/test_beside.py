"""Turns that ran beside another one: asked for one, or for all from the newest down."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcp.checkpoints import beside
from gitcp.checkpoints.beside import Beside
from gitcp.checkpoints.turns import BORDERS, ENDS, INNER
from gitcp.errors import CorruptError
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import MAIN_TREE, Assigned, encode_line, outlines
from gitcp.store.store import Store

TRIGGERS = sorted(INNER | ENDS | BORDERS | {"manual"})


class Numbers:
    """The list of numbers, in memory."""

    def __init__(self, entries: list[Assigned]) -> None:
        self.entries = entries
        self.read = 0

    def newest_first(self, *, below: int | None = None) -> Iterator[Assigned]:
        for entry in reversed(self.entries):
            if below is None or entry.number < below:
                self.read += 1
                yield entry

    def outlines(self) -> list[tuple[str, str, str, str, str]]:
        return outlines(b"\n" + b"".join(map(encode_line, self.entries)))

    def find(self, number: int) -> Assigned:
        raise CorruptError("no conversation can be read")


class InMemory(Store):
    """A store of nothing but that list."""

    def __init__(self, entries: list[Assigned]) -> None:
        self.listed = Numbers(entries)
        self.numbers = self.listed  # type: ignore[assignment]


def entries_of(events: list[tuple[str, str, int]]) -> list[Assigned]:
    """Entries of sessions with triggers, so many minutes after each other."""
    found, minutes = [], 0
    for number, (session, trigger, after) in enumerate(events, 1):
        minutes += after
        hours, rest = divmod(minutes, 60)
        created = f"2026-11-23T{hours:02}:{rest:02}:00.000Z"
        key = BranchKey(session, "main")
        one = Assigned(
            number, f"{number:012x}", "0" * 40, key, MAIN_TREE, created, trigger
        )
        found.append(one)
    return found


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["one", "two", "three"]),
            st.sampled_from(TRIGGERS),
            st.sampled_from([0, 1, 20, 45]),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_what_ran_beside_one_turn_does_not_depend_on_what_was_asked_before(events):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beside, "_FAR", 0)
        _compare(events)


def _compare(events: list[tuple[str, str, int]]) -> None:
    entries = entries_of(events)
    store = InMemory(entries)
    whole = Beside(store)
    whole.of(entries[-1])
    for entry in reversed(entries):
        alone = Beside(store)
        assert alone.of(entry) == whole.of(entry)
        assert alone.span(entry) == whole.span(entry)
        # Asked for what is above, it reads that, too.
        assert alone.of(entries[-1]) == whole.of(entries[-1])


def test_of_an_old_turn_nothing_is_read_but_what_is_near():
    turn = [("one", "turn-start", 0), ("one", "turn-end", 1)]
    entries = entries_of(turn * 600)
    store = InMemory(entries)
    Beside(store).of(entries[3])
    assert store.listed.read < 300
