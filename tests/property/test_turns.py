"""Whatever is in a timeline, its rows are counted as they are folded."""

from hypothesis import given
from hypothesis import strategies as st

from gitcp.checkpoints.turns import BORDERS, ENDS, INNER, count_rows, rows
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import MAIN_TREE, Assigned

TRIGGERS = sorted(INNER | ENDS | BORDERS | {"manual"})


@given(
    st.lists(
        st.tuples(st.sampled_from(["one", "two"]), st.sampled_from(TRIGGERS)),
        max_size=30,
    )
)
def test_rows_are_counted_as_they_are_folded(events: list[tuple[str, str]]):
    entries = [
        Assigned(
            number=len(events) - at,
            id=f"{at:012x}",
            commit="0" * 40,
            key=BranchKey(session, "main"),
            place=MAIN_TREE,
            created="2026-11-23T10:00:00.000Z",
            trigger=trigger,
        )
        for at, (session, trigger) in enumerate(events)
    ]
    folded = list(rows(entries))
    assert count_rows([(one.key, one.trigger) for one in entries]) == len(folded)
    assert sorted(one for row in folded for one in row.entries) == sorted(entries)
