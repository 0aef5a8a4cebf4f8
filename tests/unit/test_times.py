"""Times as people type them."""

from __future__ import annotations

import datetime
import time

import pytest

from gitcp.checkpoints import times
from gitcp.errors import UsageError

# A Sunday.
NOW = datetime.datetime(2026, 11, 22, 14, 30, tzinfo=datetime.UTC)


@pytest.fixture
def zone(monkeypatch):
    """Sets the user's zone; the clock stands still."""

    def use(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    monkeypatch.setattr("gitcp.checkpoints.times._now", lambda: int(NOW.timestamp()))
    use("UTC")
    yield use
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
        ("21 nov", "2026-11-21T14:30:00"),
        ("24 December 9am", "2025-12-24T09:00:00"),
        ("12am", "2026-11-22T00:00:00"),
        ("12:30 pm", "2026-11-22T12:30:00"),
        ("9 months ago", "2026-02-22T14:30:00"),
        ("a year ago", "2025-11-22T14:30:00"),
        ("@{5 min ago}", "2026-11-22T14:25:00"),
    ],
)
def test_a_time_is_what_it_says(zone, text, expected):
    assert times.when(text) == f"{expected}.000Z"
    assert times.is_time(text) or text == "2h"


def test_a_month_ago_on_the_31st_is_the_last_day_of_a_shorter_month(zone, monkeypatch):
    late = datetime.datetime(2026, 3, 31, 9, tzinfo=datetime.UTC)
    monkeypatch.setattr("gitcp.checkpoints.times._now", lambda: int(late.timestamp()))
    assert times.when("a month ago") == "2026-02-28T09:00:00.000Z"


def test_a_time_without_a_zone_is_the_users_own(zone):
    zone("CET-1CEST,M3.5.0,M10.5.0/3")
    assert times.when("yesterday 12:00") == "2026-11-21T11:00:00.000Z"
    # In summer the clock was an hour ahead of what it is now.
    assert times.when("2026-07-01 12:00") == "2026-07-01T10:00:00.000Z"
    assert times.when("2026-07-01 12:00 UTC") == "2026-07-01T12:00:00.000Z"


def test_the_end_of_a_second_is_meant_unless_a_fraction_is_named(zone):
    assert times.when("2026-11-20 09:30:00", end=True) == "2026-11-20T09:30:00.999Z"
    assert times.when("2026-11-20 09:30:00.25", end=True) == "2026-11-20T09:30:00.250Z"


@pytest.mark.parametrize(
    "text",
    [
        "99:99",
        "25:00",
        "12:60",
        "13pm",
        "2026-13-45",
        "2026-02-29 12:00",
        "45 nov",
        "0000-01-01",
        "12:00 +99:00",
        "4000 years ago",
    ],
)
def test_a_day_or_an_hour_that_does_not_exist_is_refused(zone, text):
    assert times.is_time(text)
    with pytest.raises(UsageError, match="is not a time: "):
        times.when(text)


@pytest.mark.parametrize(
    "text", ["foo", "5M", "min ago", "5 minx ago", "wednes", "5 hours hence", "25", ""]
)
def test_what_is_none_is_refused(zone, text):
    assert not times.is_time(text)
    with pytest.raises(UsageError, match="is not a time"):
        times.when(text)
