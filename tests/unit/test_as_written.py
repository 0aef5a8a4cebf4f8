"""When a file that a restore wrote need not be read again, by its stat alone."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gitcp.worktree.replace import is_as_written

WRITTEN_NS = 1_700_000_000_123_456_789
# More than a step of any clock, and of one with fine stamps only.
LATER_NS = WRITTEN_NS + 5_000_000_000
SOON_NS = WRITTEN_NS + 30_000_000


def stat(**fields: int) -> os.stat_result:
    usual = {
        "st_dev": 1,
        "st_ino": 2,
        "st_size": 3,
        "st_mtime_ns": WRITTEN_NS,
        "st_ctime_ns": WRITTEN_NS,
    }
    found: Any = SimpleNamespace(**{**usual, **fields})
    return cast("os.stat_result", found)


@pytest.mark.parametrize("named", [LATER_NS, SOON_NS])
def test_a_file_with_the_same_stat_is_as_written(named):
    assert is_as_written(stat(st_ctime_ns=named), stat())


@pytest.mark.parametrize(
    "other",
    [
        {"st_ino": 4},
        {"st_dev": 4},
        {"st_size": 4},
        {"st_mtime_ns": WRITTEN_NS + 1},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_file_or_an_edited_one_has_to_be_read(other):
    assert not is_as_written(stat(st_ctime_ns=LATER_NS, **other), stat())


@pytest.mark.parametrize(
    "named",
    [
        WRITTEN_NS,
        WRITTEN_NS + 19_000_000,
        # A disk whose stamps are whole seconds may have steps of two.
        1_700_000_002_000_000_000,
    ],
)
def test_a_file_named_within_a_step_of_the_clock_has_to_be_read(named):
    """An edit in that step would leave the same time of the last write."""
    assert not is_as_written(stat(st_ctime_ns=named), stat())
