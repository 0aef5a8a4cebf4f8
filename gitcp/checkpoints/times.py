"""Parses times as people type them, in their own time zone."""

import datetime
import re
import time

from gitcp.errors import UsageError
from gitcp.format.checkpoint import timestamp

# In seconds.
_UNITS = {
    **dict.fromkeys(("second", "sec"), 1),
    **dict.fromkeys(("minute", "min"), 60),
    "hour": 3_600,
    "day": 86_400,
    "week": 604_800,
    "fortnight": 1_209_600,
}
# Their length differs, so they are counted on the calendar.
_MONTHS = {"month": 1, "year": 12}
# Patterns are compiled where a text may be a time, which most commands are not given.
_RELATIVE = (
    rf"(?i)(\d{{1,6}}|an?|one|last)[ .]({'|'.join([*_UNITS, *_MONTHS])})s?(?:[ .]ago)?"
)
_SHORT = r"(\d{1,6})([smhdw])"
_LETTERS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}
_WEEKDAY = (
    r"(?:last )?(?:mon|tue|tues|wed|wednes|thu|thurs|fri|sat|satur|sun)day"
    r"|(?:last )?(?:mon|tue|tues|wed|thu|thurs|fri|sat|sun)"
)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAY = (
    rf"(?P<weekday>{_WEEKDAY})|today|yesterday"
    r"|(?P<iso>\d{4}-\d\d?-\d\d?)"
    rf"|(?P<day_of_month>\d{{1,2}}) (?P<month>{'|'.join(_MONTH_NAMES)}"
    rf"|{'|'.join(name[:3] for name in _MONTH_NAMES)}|sept)(?: (?P<year>\d{{4}}))?"
)
_HOURS = {"noon": 12, "midnight": 0, "teatime": 17}
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?P<fraction>\.\d{1,9})?)?(?: ?(?P<half>[ap]m))?"
    rf"|(?P<hour_alone>\d{{1,2}}) ?(?P<half_alone>[ap]m)|(?P<named>{'|'.join(_HOURS)})"
)
_ZONE = r"(?: ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d))?"
_MOMENT = rf"(?i)now|(?P<day>{_DAY})(?:[ T](?P<clock>{_CLOCK}){_ZONE})?"
_CLOCK_FIRST = rf"(?i)(?P<clock>{_CLOCK}){_ZONE}(?: (?P<day>{_DAY}))?"
_BRACES = r"@\{(.+)\}"
_END = 0.999
_NOON = 12


def is_time(text: str) -> bool:
    """Whether a text can only be meant as a time."""
    return bool(_fits(_BRACES, text) or _fits(_RELATIVE, text) or _moment(text))


def when(text: str, *, end: bool = False) -> str:
    """Returns a time, in the user's zone where none is named, as checkpoints hold it.

    `2 hours ago`, `yesterday 12:00`, `2026-11-21`, `24h`, `@{...}` with one of these. With
    `end` it is the end of that second, unless a fraction of it is named.

    Raises:
        UsageError: the text is not a time, or there is no such day or hour.
    """
    inner = _fits(_BRACES, text)
    wanted = (inner[1] if inner else text).strip()
    try:
        epoch = _ago(wanted)
        if epoch is None:
            epoch = _absolute(wanted)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{text!a} is not a time: {error}", hint="look at the day and the hour"
        ) from None
    if epoch is None:
        raise UsageError(
            f"{text!a} is not a time",
            hint="for instance `2 hours ago`, `yesterday 12:00`, `2026-11-21 09:30`",
        )
    return timestamp(max(epoch, 0) + (_END if end and epoch == int(epoch) else 0))


def _fits(pattern: str, text: str) -> re.Match[str] | None:
    return re.fullmatch(pattern, text)


def _moment(text: str) -> re.Match[str] | None:
    return _fits(_MOMENT, text) or _fits(_CLOCK_FIRST, text)


def _ago(text: str) -> float | None:
    """Returns a time that is so long ago, in seconds since 1970, or None if the text is not one."""
    if short := _fits(_SHORT, text):
        number, unit = int(short[1]), _LETTERS[short[2]]
    elif match := _fits(_RELATIVE, text):
        number = int(match[1]) if match[1].isdecimal() else 1
        unit = match[2].lower()
    else:
        return None
    if unit in _UNITS:
        return float(_now() - number * _UNITS[unit])
    then = _here(_now())
    months = then.year * 12 + then.month - 1 - number * _MONTHS[unit]
    year, month = months // 12, months % 12 + 1
    # A month ago on the 31st is the last day of a shorter month.
    next_month = datetime.date(year + month // 12, month % 12 + 1, 1)
    last = (next_month - datetime.timedelta(days=1)).day
    return then.replace(year=year, month=month, day=min(then.day, last)).timestamp()


def _absolute(text: str) -> float | None:
    """Returns a time of a day, in seconds since 1970, or None if the text is not one.

    Raises:
        ValueError: there is no such day or hour.
    """
    match = _moment(text)
    if match is None:
        return None
    if text.lower() == "now":
        return float(_now())
    zone = _zone(match["zone"])
    now = _here(_now())
    day = _date(match, now.date())
    clock = _clock(match) if match["clock"] else now.time()
    epoch = datetime.datetime.combine(day, clock, zone).timestamp()
    if epoch <= _now():
        return epoch
    if not match["day"]:
        # A clock alone says when it was that late last.
        day -= datetime.timedelta(days=1)
    elif match["month"] and not match["year"]:
        day = day.replace(year=day.year - 1)
    else:
        return epoch
    return datetime.datetime.combine(day, clock, zone).timestamp()


def _date(match: re.Match[str], today: datetime.date) -> datetime.date:
    day = (match["day"] or "today").lower()
    if match["weekday"]:
        wanted = _WEEKDAYS.index(day.removeprefix("last ")[:3])
        return today - datetime.timedelta(days=(today.weekday() - wanted - 1) % 7 + 1)
    if match["iso"]:
        return datetime.date(*map(int, day.split("-")))
    if match["month"]:
        names = [name[:3] for name in _MONTH_NAMES]
        month = names.index(match["month"].lower()[:3]) + 1
        return datetime.date(
            int(match["year"] or today.year), month, int(match["day_of_month"])
        )
    return today - datetime.timedelta(days=day == "yesterday")


def _clock(match: re.Match[str]) -> datetime.time:
    if match["named"]:
        return datetime.time(_HOURS[match["named"].lower()])
    hour = int(match["hour"] or match["hour_alone"])
    if half := match["half"] or match["half_alone"]:
        if not 1 <= hour <= _NOON:
            raise ValueError(f"there is no {hour} {half}")
        hour = hour % _NOON + (_NOON if half.lower() == "pm" else 0)
    microsecond = int(float(match["fraction"] or 0) * 1_000_000)
    return datetime.time(
        hour, int(match["minute"] or 0), int(match["second"] or 0), microsecond
    )


def _zone(name: str | None) -> datetime.timezone | None:
    if name is None:
        return None
    if name.upper() in {"Z", "UTC"}:
        return datetime.UTC
    hours, minutes = int(name[1:3]), int(name[-2:])
    ahead = datetime.timedelta(hours=hours, minutes=minutes)
    return datetime.timezone(-ahead if name[0] == "-" else ahead)


def _now() -> int:
    return int(time.time())


def _here(epoch: int) -> datetime.datetime:
    """Returns a time in the user's zone, which it does not name."""
    return datetime.datetime.fromtimestamp(epoch)  # noqa: DTZ006  the user's own
