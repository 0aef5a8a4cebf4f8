"""The lines above and below the picker: the place in the timeline, and the keys."""

from collections.abc import Sequence

from gitcp.cli.emit import one_line, safe_path
from gitcp.cli.layout import cells
from gitcp.cli.picker import keys
from gitcp.cli.picker.lines import BLANK, Line, Page, Part, line
from gitcp.cli.picker.views import CHANGES, TABS
from gitcp.cli.render import count

# Below so many columns there is room for only one side.
NARROW = 72


def title(directory: str, found: str, state: str) -> tuple[Part, ...]:
    """Returns the first line: the project, the number of rows, and a state or problem."""
    parts = [
        Part(" gitcp ", "tab"),
        Part(f" {safe_path(directory)}  "),
        Part(found, "dim"),
    ]
    if state:
        parts.append(Part(f"  {one_line(state)}", "warn"))
    return tuple(parts)


def rows_told(length: int) -> str:
    """Returns the number of rows, as text."""
    return count(length, "row")


def left_width(room: int) -> int:
    """Returns the columns of a screen for the rows."""
    return room if room < NARROW else room * 9 // 20


def right_width(room: int) -> int:
    """Returns the columns for the right side, without a line and a space."""
    return max(8, room if room < NARROW else room - left_width(room) - 2)


def tabs(tab: str, room: int, *, now: bool) -> tuple[Part, ...]:
    """Returns the names of the tabs, with their keys if there is room.

    With `now` the changes are those against the present files.
    """
    own = {name: "against now" if now and name == CHANGES else name for name in TABS}
    names = [f" {at} {own[name]} " for at, name in enumerate(TABS, 1)]
    if sum(map(cells, names)) > room:
        names = [f" {own[name]} " for name in TABS]
    if sum(map(cells, names)) > room:
        names = [f" {own[name] if name == tab else own[name][:1]} " for name in TABS]
    return tuple(
        Part(text, "tab" if name == tab else "")
        for name, text in zip(TABS, names, strict=True)
    )


def hints(
    pairs: Sequence[tuple[str, str]], room: int, last: Sequence[tuple[str, str]] = ()
) -> tuple[Part, ...]:
    """Returns keys with their words, as many as fit; those in `last` always stay."""
    kept: list[tuple[str, str]] = []
    used = sum(cells(f" {key} {word} ") for key, word in last)
    for key, word in pairs:
        used += cells(f" {key} {word} ")
        if used > room:
            break
        kept.append((key, word))
    parts: list[Part] = []
    for key, word in (*kept, *last):
        parts += [Part(f" {key}", "key"), Part(f" {word} ", "dim")]
    return tuple(parts)


LAST = (("?", "keys"), ("q", "quit"))


def of_list() -> list[tuple[str, str]]:
    """Returns the hints of the list."""
    found = map(keys.hint, keys.HINTS)
    return [(key.shown, key.hint) for key in found]


def of_pane(*, hunks: bool) -> list[tuple[str, str]]:
    """Returns the hints of the right side."""
    hunk = [("h", "restore hunk")] if hunks else [("w", "against now")]
    return [("Esc", "back"), ("Enter", "lines"), ("r", "restore file"), *hunk]


def of_plan(*, nothing: bool, fork: bool) -> list[tuple[str, str]]:
    """Returns the hints of a plan."""
    if nothing:
        return [("Esc", "back")]
    parts = [] if fork else [("b", "both"), ("f", "files"), ("t", "talk")]
    return [("y", "do it"), ("Esc", "leave it"), *parts]


def help_page() -> Page:
    """Returns the page that `?` shows."""
    lines: list[Line] = []
    for heading, group in (
        ("Rows", keys.LIST),
        ("Right side", keys.PANE),
        ("A plan", keys.PLAN),
    ):
        lines += [*([BLANK] if lines else []), line(heading, "bold")]
        lines += [
            Line((Part(f"  {key.shown:<10} ", "key"), Part(key.about))) for key in group
        ]
    return Page(lines)
