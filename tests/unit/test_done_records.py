"""Which records of a batch are done, as intervals."""

from __future__ import annotations

import random

import pytest

from gitcp.checkpoints.done_records import DoneRecords


@pytest.mark.parametrize("seed", range(5))
def test_records_in_any_order_come_to_the_same_as_a_set(seed):
    chance = random.Random(seed)
    done, expected = DoneRecords(), set()
    for _ in range(60):
        number = chance.randrange(40)
        done.add(number)
        expected.add(number)
        assert {one for one in range(45) if one in done} == expected
        assert done.count == len(expected)
        assert done.end == max(expected) + 1
        assert done.offset == min(set(range(41)) - expected)
        # It is saved, and read back.
        again = DoneRecords.of(done.position)
        assert again.position == done.position
        assert (again.count, again.end) == (done.count, done.end)


def test_neighbours_become_one_interval():
    done = DoneRecords()
    for number in (1, 3, 2):
        done.add(number)
    assert done.position == {"offset": 0, "done": [[1, 4]]}
    done.add(0)
    assert done.position == {"offset": 4}


@pytest.mark.parametrize(
    "behind",
    [
        7,
        [7],
        [[3]],
        [[2, 5]],
        [[4, 4]],
        [[5, 7], [6, 9]],
        [[5, 7], [7, 9]],
        [[True, 9]],
    ],
)
def test_a_position_with_other_intervals_is_refused(behind):
    """Intervals neither overlap nor touch one another, nor what the offset covers."""
    with pytest.raises(ValueError, match="offset"):
        DoneRecords.of({"offset": 2, "done": behind})
