"""Formats a row of the timeline to the width of the terminal."""

from collections.abc import Sequence

from gitcp.checkpoints.history import Listed
from gitcp.checkpoints.own_notes import note_of
from gitcp.cli.emit import one_line
from gitcp.cli.layout import age, cells, fit, pad
from gitcp.cli.picker.lines import Part
from gitcp.cli.picker.timeline import HEAD, Item
from gitcp.cli.render import title_of
from gitcp.cli.row_marks import row_counts, row_mark

_NUMBER = 6
_AGE = 11
# Below so many columns ages are short (`5m`), which leaves room for the prompt.
_NARROW = 50
_SHORT_AGE = 6
_UNITS = {"min": "m", "h": "h", "d": "d"}
# Columns that marks and clients leave free for a prompt.
_PROMPT = 12


def now_parts(about: str) -> tuple[Part, ...]:
    """Returns the row of the present state."""
    return Part("(now)", "bold"), Part(f"  {about}", "dim")


def row_parts(
    item: Item, room: int, *, marked: bool = False, by_client: bool = False
) -> Sequence[Part]:
    """Returns the columns of a row, or of a header."""
    if item.name.kind == HEAD:
        sign = "└ " if item.depth else ""
        text = f"{'  ' * (item.depth - 1)}{sign}{item.about or '…'}"
        return (Part(fit(text, room), "bold"),)
    mark = "▌" if marked else " "
    assert item.row is not None
    last = item.row.last
    name = f"#{last.number}" if last.number else last.id
    indent = "  " * item.depth
    when = age(last.created)
    when = f"{_short(when):>{_SHORT_AGE}}" if room < _NARROW else f"{when:>{_AGE}}"
    left = f"{indent}{name:>{_NUMBER}} {when}  "
    parts = [Part(mark, "warn"), Part(left, "number")]
    if item.listed is None:
        return [*parts, Part("cannot be read" if item.gone else "…", "dim")]
    room -= cells(left) + 1
    return [*parts, *_about(item.listed, room, item.tested, by_client=by_client)]


def _short(when: str) -> str:
    """Returns an age in at most five columns: `5m`, `3h`, `2d`; a date without its year."""
    words = when.split()
    if len(words) == 3 and words[1] in _UNITS:  # noqa: PLR2004  `5 min ago`
        return f"{words[0]}{_UNITS[words[1]]}"
    return "now" if when == "just now" else when[-5:]


def _about(
    listed: Listed, room: int, tested: bool | None, *, by_client: bool
) -> list[Part]:
    """Returns the prompt with its badges and counts, as far as they fit."""
    checkpoint = listed.checkpoint
    badges = [Part(row_mark(listed, full=False), "mark")]
    if checkpoint.trigger == "test-failure":
        badges = [Part("✕ failed ", "bad")]
    elif tested is not None:
        badges.append(Part("✓ tests ", "mark") if tested else Part("✕ tests ", "bad"))
    held = checkpoint.manifest.conversation
    if by_client and held is not None:
        badges.insert(0, Part(f"{title_of(held.kind)} ", "dim"))
    counts = row_counts(listed)
    room -= sum(cells(badge.text) for badge in badges)
    if counts and room - cells(counts) - 2 >= _PROMPT:
        room -= cells(counts) + 2
    else:
        counts = ""
    text = one_line(listed.prompt or note_of(checkpoint))
    room = max(room, _PROMPT)
    parts = [*badges, Part(pad(fit(text, room), room))]
    if counts:
        parts.append(Part(f"  {counts}", "dim"))
    return parts
