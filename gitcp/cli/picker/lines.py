"""Lines that the picker draws: plain text in a few styles, never markup."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gitcp.cli.emit import safe, spans, unstyled
from gitcp.cli.layout import cells, fit, folded, pad


class Part(NamedTuple):
    """A piece of a line, safe for a terminal; the style is a name or escape sequences."""

    text: str
    style: str = ""


class Place(NamedTuple):
    """The place that a line of a page stands for: a file, and a hunk of its diff, from 0 on."""

    path: bytes
    hunk: int | None = None


class Line(NamedTuple):
    """A line of a page."""

    parts: tuple[Part, ...]
    place: Place | None = None

    @property
    def text(self) -> str:
        """Its text, without styles."""
        return "".join(part.text for part in self.parts)


class Page(NamedTuple):
    """The content of a pane: lines, and the line to begin at."""

    lines: Sequence[Line]
    start: int = 0


BLANK = Line(())
# Escape sequences by the names of styles.
STYLES = {
    "": "",
    "dim": "\033[2m",
    "bold": "\033[1m",
    "number": "\033[36m",
    "mark": "\033[32m",
    "bad": "\033[1;31m",
    "A": "\033[32m",
    "M": "\033[33m",
    "D": "\033[31m",
    "tab": "\033[1;7m",
    "key": "\033[1m",
    "warn": "\033[1;33m",
}


def line(text: str, style: str = "", place: Place | None = None) -> Line:
    """Returns a line in one style; the text must be safe."""
    return Line((Part(text, style),), place)


def styled(text: str, place: Place | None = None) -> Line:
    """Returns a safe line from a text that `Output.style` has styled."""
    return Line(tuple(Part(piece, style) for style, piece in spans(text)), place)


def styled_lines(text: str, room: int) -> Iterator[Line]:
    """Yields the same, broken between words into lines of so many columns."""
    for row in text.split("\n"):
        for part in folded(row, room, bare=_bare):
            yield styled(part)


def _bare(text: str) -> str:
    return safe(unstyled(text))


def columns(parts: Sequence[Part], room: int) -> tuple[Part, ...]:
    """Returns parts that fill so many columns: the last part is cut or padded."""
    kept: list[Part] = []
    left = room
    for part in parts:
        text = fit(part.text, left) if left > 0 else ""
        if text:
            kept.append(Part(text, part.style))
        left -= cells(text)
        if left <= 0:
            break
    if left > 0:
        kept.append(Part(pad("", left)))
    return tuple(kept)
