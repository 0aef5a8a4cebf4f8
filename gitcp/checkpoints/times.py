"""Understands times as people type them; git does the reading."""

import datetime
import re
import time
from contextlib import suppress

from gitcp.errors import UsageError
from gitcp.format.checkpoint import timestamp
from gitcp.project.workspace import Workspace

# In seconds. Months and years, whose length differs, git counts.
_SECONDS = {
    **dict.fromkeys(("second", "sec"), 1),
    **dict.fromkeys(("minute", "min"), 60),
    "hour": 3_600,
    "day": 86_400,
    "week": 604_800,
    "fortnight": 1_209_600,
}
_RELATIVE = re.compile(
    rf"(\d{{1,6}}|an?|one|last)[ .]({'|'.join(_SECONDS)}|month|year)s?(?:[ .]ago)?",
    re.IGNORECASE,
)
_WEEKDAY = (
    r"(?:last )?(?:mon|tue|tues|wed|wednes|thu|thurs|fri|sat|satur|sun)day"
    r"|(?:last )?(?:mon|tue|tues|wed|thu|thurs|fri|sat|sun)"
)
_DAY = (
    rf"(?P<weekday>{_WEEKDAY})|today|yesterday"
    r"|\d{4}-\d\d?-\d\d?|\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"[a-z]*(?: \d{4})?"
)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAMED = {"noon": "12:00", "midnight": "00:00", "teatime": "17:00"}
_CLOCK = (
    r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[ap]m)?|\d{1,2} ?[ap]m"
    rf"|{'|'.join(_NAMED)}"
)
_ZONE = r"(?: ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d))?"
# What git would read is anything at all: `foo` is now, and `5 min ago` the fifth.
_MOMENT = re.compile(
    rf"now|(?P<day>{_DAY})(?:[ T](?P<clock>{_CLOCK}){_ZONE})?", re.IGNORECASE
)
_CLOCK_FIRST = re.compile(
    rf"(?P<clock>{_CLOCK}){_ZONE}(?: (?P<day>{_DAY}))?", re.IGNORECASE
)
_SHORT = re.compile(r"(\d{1,6})(s|m|h|d|w)")
_DATED = re.compile(r"\d{4}-\d\d-\d\d[ T]")
_END = 0.999
_DAY_LONG = 86_400
_WORDS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_BRACES = re.compile(r"@\{(.+)\}")


def is_time(text: str) -> bool:
    """Whether a text can only be meant as a time."""
    return bool(_BRACES.fullmatch(text) or _RELATIVE.fullmatch(text) or _moment(text))


def _moment(text: str) -> re.Match[str] | None:
    return _MOMENT.fullmatch(text) or _CLOCK_FIRST.fullmatch(text)


def when(workspace: Workspace, text: str, *, end: bool = False) -> str:
    """Returns a time, in the user's zone where none is named, as checkpoints hold it.

    `2 hours ago`, `yesterday 12:00`, `2026-11-21`, `24h`, `@{...}` with one of these. With
    `end` it is the end of that second: git reads no fraction.

    Raises:
        UsageError: it is no time.
    """
    inner = _BRACES.fullmatch(text)
    wanted = (inner[1] if inner else text).strip()
    if short := _SHORT.fullmatch(wanted):
        wanted = f"{short[1]} {_WORDS[short[2]]} ago"
    if _DATED.match(wanted) and _moment(wanted):
        with suppress(ValueError):
            return timestamp(datetime.datetime.fromisoformat(wanted).timestamp())
    epoch = _relative(workspace, wanted)
    if epoch is None:
        epoch = _absolute(workspace, wanted)
    if epoch is None:
        raise UsageError(
            f"{text!a} is not a time",
            hint="for instance `2 hours ago`, `yesterday 12:00`, `2026-11-21 09:30`",
        )
    return timestamp(epoch + (_END if end else 0))


def _relative(workspace: Workspace, text: str) -> float | None:
    """Returns a time that is so long ago, in seconds since 1970, or None."""
    match = _RELATIVE.fullmatch(text)
    if match is None:
        return None
    number = int(match[1]) if match[1].isdecimal() else 1
    unit = match[2].lower()
    seconds = _SECONDS.get(unit)
    if seconds is None:
        return _read_by_git(workspace, f"{number} {unit}s ago")
    return float(max(_now() - number * seconds, 0))


def _absolute(workspace: Workspace, text: str) -> float | None:
    """Returns a time of a day, in seconds since 1970, or None."""
    match = _moment(text)
    if match is None:
        return None
    if text.lower() == "now":
        return float(_now())
    now = datetime.datetime.fromtimestamp(_now())  # noqa: DTZ006  the user's own
    clock = _NAMED.get((match["clock"] or "").lower(), match["clock"])
    day = _date(match, now.date())
    epoch = _read_by_git(workspace, f"{day} {clock or now.strftime('%H:%M:%S')}")
    if match["zone"]:
        # Git leaves out a zone behind such words.
        read = datetime.datetime.fromtimestamp(epoch)  # noqa: DTZ006  as git read it
        epoch = read.replace(tzinfo=_zone(match["zone"])).timestamp()
    # A clock alone says when it was that late last.
    return epoch if match["day"] or epoch <= _now() else epoch - _DAY_LONG


def _date(match: re.Match[str], today: datetime.date) -> str:
    """Returns the day that is meant, in a form that git reads as nothing else."""
    day = (match["day"] or "today").lower()
    if match["weekday"]:
        wanted = _WEEKDAYS.index(day.removeprefix("last ")[:3])
        today -= datetime.timedelta(days=(today.weekday() - wanted - 1) % 7 + 1)
    elif day == "yesterday":
        today -= datetime.timedelta(days=1)
    elif day != "today":
        return day
    return today.isoformat()


def _now() -> int:
    return int(time.time())


def _zone(name: str) -> datetime.timezone:
    if name.upper() in {"Z", "UTC"}:
        return datetime.UTC
    hours, minutes = int(name[1:3]), int(name[-2:])
    ahead = datetime.timedelta(hours=hours, minutes=minutes)
    if ahead >= datetime.timedelta(days=1):
        raise UsageError(f"{name} is no time zone", hint="write it as +02:00")
    return datetime.timezone(-ahead if name[0] == "-" else ahead)


def _read_by_git(workspace: Workspace, text: str) -> float:
    said = workspace.repository.git("rev-parse", f"--since={text}")
    return float(said.strip().rpartition(b"=")[2])
