"""Widgets that draw only the visible lines: a list, a page, a single line of text."""

import functools
from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.strip import Strip
from textual.widget import Widget

from gitcp.cli.picker.lines import STYLES, Line, Page, Part, columns

# The style under the cursor, in the pane that has the keys, and in the list if the other has
# them.
_HERE = Style.parse("reverse")
THERE = Style.parse("bold underline")


@functools.cache
def ink(style: str) -> Style:
    """Returns a style by its name, or by the escape sequences that make it."""
    found = Text.from_ansi(f"{STYLES.get(style, style)}x").spans
    kept = found[0].style if found else ""
    return kept if isinstance(kept, Style) else Style.parse(kept)


def strip_of(parts: Sequence[Part], room: int, over: Style | None = None) -> Strip:
    """Returns parts as a strip of exactly so many columns."""
    filled = columns(parts, room)
    segments = [Segment(part.text, over or ink(part.style)) for part in filled]
    return Strip(segments, room)


class Lines(Widget, can_focus=False):
    """Lines with a cursor; only the lines in view are made.

    The owner calls the methods; the widget itself knows no keys. `elsewhere` is the style of
    the cursor if another pane has the keys.
    """

    elsewhere: Style | None = None

    DEFAULT_CSS = "Lines { height: 1fr; }"

    def __init__(self, *, ident: str) -> None:
        super().__init__(id=ident)
        self.top = 0
        self.at = 0
        self.active = False
        self.looked: Callable[[], None] | None = None
        self.chosen: Callable[[], None] | None = None

    @property
    def length(self) -> int:
        """The number of lines."""
        raise NotImplementedError

    def parts(self, at: int, room: int) -> Sequence[Part]:
        """Returns a line that is in view."""
        raise NotImplementedError

    def can_stop(self, at: int) -> bool:
        """Whether the cursor may be on a line."""
        del at
        return True

    @property
    def in_view(self) -> range:
        """The lines in view."""
        return range(self.top, min(self.length, self.top + max(1, self.size.height)))

    def render_line(self, y: int) -> Strip:
        """Draws one line of the screen."""
        room, at = self.size.width, self.top + y
        if at >= self.length:
            return Strip.blank(room)
        over = None
        if at == self.at:
            over = _HERE if self.active else self.elsewhere
        return strip_of(self.parts(at, room), room, over)

    def move(self, by: int) -> bool:
        """Moves the cursor by lines that it can stop at; returns whether it moved."""
        step = 1 if by > 0 else -1
        at, left = self.at, abs(by)
        found = at
        while left and 0 <= at + step < self.length:
            at += step
            if self.can_stop(at):
                found, left = at, left - 1
        return self.go(found)

    def go(self, at: int) -> bool:
        """Puts the cursor on a line and shows it; returns whether the cursor moved."""
        moved = at != self.at
        self.at = max(0, min(at, self.length - 1))
        self.show()
        return moved

    def show(self) -> None:
        """Scrolls so that the cursor is in view, with the headers directly above it."""
        height = max(1, self.size.height)
        before = self.at
        while (
            before and not self.can_stop(before - 1) and self.at - before < height - 1
        ):
            before -= 1
        self.top = max(min(self.top, before), self.at - height + 1)
        # Fill the screen: empty lines at its end would look like the end of the list.
        self.top = max(0, min(self.top, self.length - height))
        self.redraw()

    def scroll(self, by: int) -> None:
        """Scrolls, and moves the cursor so that it stays in view."""
        height = max(1, self.size.height)
        self.top = max(0, min(self.top + by, max(0, self.length - height)))
        inside = max(self.top, min(self.at, self.top + height - 1))
        if inside != self.at:
            self.at = inside
            if not self.can_stop(inside):
                self.move(1 if by > 0 else -1)
        self.redraw()

    def redraw(self) -> None:
        """Draws the lines in view again, and reports which they are."""
        self.refresh()
        if self.looked is not None:
            self.looked()

    def on_resize(self, event: Resize) -> None:
        """Keeps the cursor in view."""
        del event
        self.show()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scrolls by three lines, as terminals do."""
        event.stop()
        self.scroll(3)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scrolls by three lines, as terminals do."""
        event.stop()
        self.scroll(-3)

    def on_click(self, event: Click) -> None:
        """Puts the cursor where the mouse is."""
        event.stop()
        at = self.top + event.y
        if at < self.length and self.can_stop(at):
            self.go(at)
            if self.chosen is not None:
                self.chosen()


class Pane(Lines):
    """A page of lines."""

    DEFAULT_CSS = "Pane { height: 1fr; }"

    def __init__(self, *, ident: str) -> None:
        super().__init__(ident=ident)
        self.page = Page(())

    @property
    def length(self) -> int:
        """The number of lines of the page."""
        return len(self.page.lines)

    def parts(self, at: int, room: int) -> Sequence[Part]:
        """Returns a line of the page."""
        del room
        return self.page.lines[at].parts

    @property
    def line(self) -> Line | None:
        """The line at the cursor."""
        return self.page.lines[self.at] if self.page.lines else None

    def put(self, page: Page, *, keep: bool) -> None:
        """Shows a page; with `keep` at the position of the former one."""
        self.page = page
        if not keep:
            self.top = self.at = page.start
        self.at = max(0, min(self.at, self.length - 1))
        self.show()


class Bar(Widget):
    """One line of parts."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def __init__(self, *, ident: str) -> None:
        super().__init__(id=ident)
        self.content: tuple[Part, ...] = ()

    def put(self, *parts: Part) -> None:
        """Shows other parts."""
        if parts != self.content:
            self.content = parts
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draws the line."""
        del y
        return strip_of(self.content, self.size.width)
