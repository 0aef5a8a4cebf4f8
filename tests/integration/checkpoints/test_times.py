"""Times as people type them."""

from __future__ import annotations

import datetime
import time

import pytest

from gitcp.checkpoints import times
from gitcp.errors import UsageError
from gitcp.project.workspace import open_workspace

# A Sunday.
NOW = datetime.datetime(2026, 11, 22, 14, 30, tzinfo=datetime.UTC)


@pytest.fixture
def workspace(repo, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr("gitcp.checkpoints.times._now", lambda: int(NOW.timestamp()))
    yield open_workspace(repo)
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 min ago", "2026-11-22T14:25:00"),
        ("22 min ago", "2026-11-22T14:08:00"),
        ("22 minutes ago", "2026-11-22T14:08:00"),
        ("90 secs ago", "2026-11-22T14:28:30"),
        ("an hour ago", "2026-11-22T13:30:00"),
        ("last hour", "2026-11-22T13:30:00"),
        ("2 fortnights ago", "2026-10-25T14:30:00"),
        ("a.week.ago", "2026-11-15T14:30:00"),
        ("2h", "2026-11-22T12:30:00"),
        ("yesterday", "2026-11-21T14:30:00"),
        ("Yesterday 12:00", "2026-11-21T12:00:00"),
        ("noon yesterday", "2026-11-21T12:00:00"),
        ("noon", "2026-11-22T12:00:00"),
        ("teatime", "2026-11-21T17:00:00"),
        ("15:00", "2026-11-21T15:00:00"),
        ("3pm yesterday", "2026-11-21T15:00:00"),
        ("monday 12:00", "2026-11-16T12:00:00"),
        ("friday", "2026-11-20T14:30:00"),
        ("last sunday", "2026-11-15T14:30:00"),
        ("yesterday 12:00 +05:00", "2026-11-21T07:00:00"),
        ("12:00 -0200", "2026-11-22T14:00:00"),
        ("2026-11-20 09:30", "2026-11-20T09:30:00"),
        ("2026-11-20T09:30:00Z", "2026-11-20T09:30:00"),
        ("21 nov 2025 3pm", "2025-11-21T15:00:00"),
        ("@{5 min ago}", "2026-11-22T14:25:00"),
    ],
)
def test_a_time_is_what_it_says(workspace, text, expected):
    assert times.when(workspace, text) == f"{expected}.000Z"
    assert times.is_time(text) or text == "2h"


@pytest.mark.parametrize(
    "text", ["foo", "min ago", "5 minx ago", "wednes", "5 hours hence", "25", ""]
)
def test_what_is_none_is_refused(workspace, text):
    assert not times.is_time(text)
    with pytest.raises(UsageError, match="is not a time"):
        times.when(workspace, text)
