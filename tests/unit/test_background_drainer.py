"""When a writer drains its write-ahead log itself."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from gitcp.wal import background
from gitcp.wal.background import LIMIT, BackgroundDrainer


class Writer:
    """A write-ahead log of some size, which only `drain` makes smaller."""

    label = "a log"

    def __init__(self, size: int) -> None:
        self.undrained = size
        self.drains = 0

    def drain(self) -> None:
        self.drains += 1
        self.undrained = 0


@pytest.fixture
def drainer(monkeypatch):
    """A drainer whose thread does nothing."""
    monkeypatch.setattr(BackgroundDrainer, "_work", lambda _: None)
    return BackgroundDrainer(Mock())


def test_a_writer_that_outruns_the_thread_drains_its_log_itself(drainer):
    writer = Writer(LIMIT + 1)
    drainer.note(writer)
    assert writer.drains == 1
    assert not drainer.waits_for(writer)


@pytest.mark.parametrize("size", [1, background.BYTES + 1, LIMIT])
def test_a_log_up_to_the_limit_is_left_to_the_thread(drainer, size):
    writer = Writer(size)
    drainer.note(writer)
    assert writer.drains == 0
    assert drainer.waits_for(writer)
    drainer.flush()
    assert writer.drains == 1
    assert not drainer.waits_for(writer)
