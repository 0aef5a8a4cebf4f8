"""Understands times as people type them; git does the reading."""

import datetime
import re
from contextlib import suppress

from gitcp.errors import UsageError
from gitcp.format.checkpoint import timestamp
from gitcp.project.workspace import Workspace

_UNIT = r"(?:second|sec|minute|min|hour|day|week|fortnight|month|year)s?"
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_DAY = (
    rf"(?:(?:last )?{_WEEKDAY}|today|yesterday|now|noon|midnight|teatime"
    r"|\d{4}-\d\d?-\d\d?|\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"[a-z]*(?: \d{4})?)"
)
_CLOCK = (
    r"(?:\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[ap]m)?|\d{1,2} ?[ap]m|noon|midnight)"
)
_ZONE = r"(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
# What git would read is anything at all: `foo` is now.
_TIME = re.compile(
    rf"(?:\d+|an?|one|last)[ .]{_UNIT}(?:[ .]ago)?"
    rf"|{_DAY}(?:[ T]{_CLOCK}{_ZONE})?|{_CLOCK}{_ZONE}(?: {_DAY})?",
    re.IGNORECASE,
)
_SHORT = re.compile(r"(\d{1,6})(s|m|h|d|w)")
_DATED = re.compile(r"\d{4}-\d\d-\d\d[ T]")
_END = 0.999
_WORDS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_BRACES = re.compile(r"@\{(.+)\}")


def is_time(text: str) -> bool:
    """Whether a text can only be meant as a time."""
    return bool(_BRACES.fullmatch(text) or _TIME.fullmatch(text))


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
    if not _TIME.fullmatch(wanted):
        raise UsageError(
            f"{text!a} is not a time",
            hint="for instance `2 hours ago`, `yesterday 12:00`, `2026-11-21 09:30`",
        )
    if _DATED.match(wanted):
        with suppress(ValueError):
            return timestamp(datetime.datetime.fromisoformat(wanted).timestamp())
    said = workspace.repository.git("rev-parse", f"--since={wanted}")
    epoch = said.strip().rpartition(b"=")[2]
    return timestamp(float(epoch) + (_END if end else 0))
