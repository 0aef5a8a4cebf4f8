"""Formats lines: text widths, truncation, ages, and times in the user's zone."""

import datetime
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY


# The columns of the terminal behind a pager.
_behind: int | None = None


@contextmanager
def terminal_of(columns: int | None) -> Iterator[None]:
    """Makes `width` return so many columns inside, wherever stdout leads."""
    global _behind  # noqa: PLW0603  one terminal, as there is one stdout
    before, _behind = _behind, columns
    try:
        yield
    finally:
        _behind = before


def width() -> int | None:
    """Returns the columns of the terminal; None, for no limit, if stdout is not one."""
    if _behind is not None:
        return _behind
    if not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def cells(text: str) -> int:
    """Returns the number of columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    # Most text needs no table of wide characters.
    from wcwidth import wcswidth

    return max(0, wcswidth(text))


def fit(text: str, room: int | None) -> str:
    """Returns a text, cut to so many columns if it is longer."""
    if room is None or cells(text) <= room:
        return text
    kept = text
    while kept and cells(kept) > room - 1:
        # Wide characters take two columns: cut by a first guess, then one by one.
        kept = kept[: max(0, min(len(kept) - 1, room - 1))]
    return f"{kept}…"


def wrap(text: str, room: int | None) -> Iterator[str]:
    """Yields a line in parts of so many columns, broken at spaces if there are any."""
    if room is None:
        yield text
        return
    at = 0
    while at < len(text):
        end = _fitting(text, at, room)
        if end < len(text):
            space = text.rfind(" ", at + 1, end + 1)
            end = space if space > 0 and text[at:space].strip() else end
        yield text[at:end]
        at = end
        while at < len(text) and text[at] == " ":
            at += 1
    if not text:
        yield text


# A label before a text in a column, or a bullet of a list: continuation lines are indented to
# the text.
_LABEL = r"\s*(?:[*>•-] |(?:\S{1,24} {2,}){1,2})?"
_WORD = r"(\s*)(\S+)"


def folded(
    text: str, room: int | None, *, bare: Callable[[str], str] = str
) -> Iterator[str]:
    """Yields a line as lines of so many columns, broken between words.

    `bare` returns a text without the sequences that take no column. A word that is longer
    than a line stays whole, because it may be a path or an id. Only a word in a script
    without spaces is broken.
    """
    if room is None or cells(bare(text)) <= room:
        yield text
        return
    label = re.match(_LABEL, bare(text))
    indent = len(label[0]) if label is not None else 0
    indent = indent if indent < room // 2 else 0
    line = ""
    for found in re.finditer(_WORD, text):
        gap, word = found.groups()
        longer = cells(bare(word)) > room - indent
        if longer and not bare(word).isascii() and bare(word) == word:
            # This word may be broken anywhere.
            start = f"{line}{gap}"
            if cells(bare(start)) > room - 2:
                yield line
                start = " " * indent
            *full, line = wrap(f"{start}{word}", room)
            yield from full
        elif bare(line)[indent:].strip() and cells(bare(f"{line}{gap}{word}")) > room:
            yield line
            line = f"{' ' * indent}{word}"
        else:
            line = f"{line}{gap}{word}"
    yield line


def _fitting(text: str, start: int, room: int) -> int:
    """Returns the end of the part of a text that fits into so many columns."""
    end = min(len(text), start + room)
    if text[start:end].isascii():
        return end
    from wcwidth import wcwidth

    used = 0
    for at in range(start, len(text)):
        used += max(0, wcwidth(text[at]))
        if used > room and at > start:
            return at
    return len(text)


def pad(text: str, columns: int) -> str:
    """Returns a text padded with spaces to so many columns."""
    return text + " " * max(0, columns - cells(text))


def age(created: str, now: float | None = None) -> str:
    """Returns the age of a checkpoint for people: `5 min ago`."""
    return age_of(datetime.datetime.fromisoformat(created).timestamp(), now)


def age_of(moment: float, now: float | None = None) -> str:
    """Returns the age of a moment, which is given in seconds since 1970."""
    passed = (time.time() if now is None else now) - moment
    if passed < _MINUTE:
        return "just now" if passed > -_MINUTE else _day_of(moment)
    if passed < _HOUR:
        return f"{passed // _MINUTE:.0f} min ago"
    if passed < _DAY:
        return f"{passed // _HOUR:.0f} h ago"
    if passed < _WEEK:
        return f"{passed // _DAY:.0f} d ago"
    return _day_of(moment)


def day(created: str) -> str:
    """Returns the date of a checkpoint in the user's zone."""
    return datetime.datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d")


def _day_of(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment).strftime("%Y-%m-%d")  # noqa: DTZ006  the user's zone
