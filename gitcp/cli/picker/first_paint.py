"""Paints the rows before Textual is loaded, because loading takes longer than reading them.

Keys that the user types meanwhile are not echoed, and reach the picker once it runs.
"""

import os
import shutil
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gitcp.cli.options import reading_in
from gitcp.cli.picker import bars, timeline
from gitcp.cli.picker.lines import STYLES, Part, columns
from gitcp.cli.picker.row_parts import now_parts, row_parts
from gitcp.cli.picker.timeline import NOW, Item, Items, Named
from gitcp.errors import GitcpError
from gitcp.project.workspace import Workspace

_CLEARED = "\033[?1049h\033[?25l\033[2J"
_HOME = "\033[H"
_BACK = "\033[?25h\033[?1049l"
_PLAIN = "\033[0m"


class First:
    """The first screen: the newest rows, and the content read of them.

    Once it is `taken`, the picker has to leave the screen.
    """

    def __init__(self, found: tuple[Named, ...], items: Items) -> None:
        self.found = found
        self.items = items
        self.taken = False


@contextmanager
def painted(
    workspace: Workspace, project: str, *, tree: bool
) -> Iterator[First | None]:
    """Paints the first screen while the modules inside load.

    None if the rows cannot be read; the picker reports why.
    """
    try:
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
    except (OSError, termios.error):
        yield None
        return
    quiet = [*before]
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
    first = None
    try:
        with reading_in(workspace), workspace.repository.objects.few_reads():
            first = _found(workspace)
            if first is not None:
                # Draw numbers and ages at once: a row may have changed very many files.
                _write(_CLEARED)
                _draw(first, project, tree=tree)
                _read(workspace, first, tree=tree)
                _draw(first, project, tree=tree)
        yield first
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)
        if first is not None and not first.taken:
            _write(_BACK)


def _found(workspace: Workspace) -> First | None:
    try:
        return First(next(timeline.first_rows(workspace)), Items())
    except GitcpError:
        return None


def _read(workspace: Workspace, first: First, *, tree: bool) -> None:
    """Reads as many rows as a screen has."""
    due = [item for item in _shown(first, tree=tree) if item.row is not None]
    # If this fails, the picker reads the rows again, and reports the error.
    with suppress(GitcpError):
        for done in timeline.read_rows(workspace, due):
            by_name = {read.name: read for read in done}
            for item in due:
                if item.name in by_name:
                    timeline.fill(item, by_name[item.name])


def _shown(first: First, *, tree: bool) -> list[Item]:
    lines = shutil.get_terminal_size((80, 24)).lines
    return first.items.arranged(first.found, tree=tree)[: max(1, lines - 2)]


def _draw(first: First, project: str, *, tree: bool) -> None:
    """Draws the title and the rows in the picker's layout."""
    size = shutil.get_terminal_size((80, 24))
    left = bars.left_width(size.columns)
    told = bars.title(project, bars.rows_told(len(first.found)), "")
    lines = [_line(columns(told, size.columns))]
    for item in timeline.with_hand(_shown(first, tree=tree)):
        now = item.name.kind == NOW
        parts = now_parts("") if now else row_parts(item, left)
        lines.append(_line(columns(parts, left)))
    _write(_HOME + "\r\n".join(lines[: size.lines - 1]))


def _line(parts: tuple[Part, ...]) -> str:
    if os.environ.get("NO_COLOR"):
        return "".join(part.text for part in parts)
    return "".join(f"{STYLES.get(part.style, '')}{part.text}{_PLAIN}" for part in parts)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
