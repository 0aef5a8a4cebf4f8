"""Moves around in the picker: rows, marks, tabs, the page of the selected row."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitcp.cli.picker import bars, timeline
from gitcp.cli.picker.asking import Asking
from gitcp.cli.picker.lines import Page, line, styled_lines
from gitcp.cli.picker.listing import Listing
from gitcp.cli.picker.timeline import NOW, Item
from gitcp.cli.picker.views import CHANGES, TABS, TALK, View
from gitcp.cli.picker.window import Window
from gitcp.errors import GitcpError
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    from textual.timer import Timer


# In seconds: a key held down must not cause a page to be read for every row on its way.
_PAUSE = 0.06


class Browsing:
    """The state of browsing: handles each key for the app, and reads the pages to show."""

    def __init__(self, app: Window, listing: Listing) -> None:
        self.app = app
        self.listing = listing
        listing.beside = self
        self.path: bytes | None = None
        self.compared: tuple[str, str] | None = None
        self._due: Timer | None = None
        self.shown: View | None = None

    @property
    def against_now(self) -> bool:
        """Whether the page compares with the present files."""
        own = self.app.look.now or self.item.name.kind == NOW
        return own and self.app.look.tab == CHANGES and self.compared is None

    @property
    def item(self) -> Item:
        """The selected row."""
        return self.app.rows.item

    @property
    def number(self) -> str | None:
        """The selector of that row's checkpoint; None for the present state."""
        return timeline.selector(self.item)

    # --- the page ---------------------------------------------------------------------

    def look(self, *, again: bool = False) -> None:
        """Shows the selected row, once no key has come for a moment."""
        if again:
            self.shown = None
        if self._due is not None:
            self._due.stop()
        self._due = self.app.set_timer(_PAUSE, self.show)
        self.app.look.name = self.item.name

    def resized(self) -> None:
        """Lays out the page for another width."""
        self.app.tell()
        self.look()

    @property
    def view(self) -> View:
        """The view to show on the right."""
        look, room = self.app.look, bars.right_width(self.app.size.width)
        if self.compared is not None:
            first, second = self.compared
            return View(first, CHANGES, room, path=self.path, other=second)
        number = self.number
        now = look.now and number is not None
        return View(number, look.tab, room, now, look.tools, self.path)

    def show(self) -> None:
        """Reads the page of the selected row, unless it is there."""
        app, view = self.app, self.view
        if view == self.shown or self.listing.found is None:
            return
        if not self.listing.found:
            app.pane.put(_welcome(), keep=False)
            return
        before, self.shown = self.shown, view
        keep = before is not None and before._replace(room=view.room) == view
        app.reads.drop("page")
        app.heavy.drop("page")
        first = [not keep]

        def got(found: Page) -> None:
            app.pane.put(found, keep=not first[0])
            first[0] = False

        jobs = app.heavy if self.against_now else app.reads
        jobs.ask("page", lambda place: _page(place, view), got, failed=self._no_page)

    def _no_page(self, exc: GitcpError) -> None:
        room = self.view.room
        told = [line(one.text, "warn") for one in styled_lines(exc.message, room)]
        self.app.pane.put(
            Page([*told, *styled_lines(exc.hint or "", room)]), keep=False
        )

    # --- keys -------------------------------------------------------------------------

    def pressed(self, key: str) -> bool:
        """Handles a key; False if it has no meaning here."""
        if self._moved(key) or self._into(key):
            return True
        if key in {"1", "2", "3", "4"}:
            self.show_tab(TABS[int(key) - 1])
            return True
        todo = {
            "space": self._mark,
            " ": self._mark,
            "d": self._compare,
            "w": self._toggle_now,
            "f": self._toggle_tools,
            "t": self._toggle_tree,
            "/": self._ask_words,
        }.get(key)
        if todo is not None:
            todo()
        return todo is not None

    def _moved(self, key: str) -> bool:
        lines = self.app.pane if self.app.in_pane else self.app.rows
        screen = max(1, lines.size.height - 1)
        by = {
            "j": 1,
            "down": 1,
            "k": -1,
            "up": -1,
            "pagedown": screen,
            "pageup": -screen,
            "G": lines.length,
            "end": lines.length,
            "g": -lines.length,
            "home": -lines.length,
        }.get(key)
        if by is not None:
            lines.move(by)
        elif key in {"[", "]"} and not self.app.in_pane:
            self._next_head(1 if key == "]" else -1)
        else:
            return False
        if lines is self.app.rows:
            self.path = self.compared = None
            self.look()
        return True

    def _next_head(self, step: int) -> None:
        """Goes to the first row of the next conversation, or of the one before."""
        rows, items = self.app.rows, self.app.rows.items
        pairs = enumerate(itertools.pairwise(items), 1)
        firsts = (at for at, (a, b) in pairs if b.selectable and not a.selectable)
        starts = [0, *firsts]
        if step > 0:
            rows.go(next((at for at in starts if at > rows.at), rows.at))
        else:
            rows.go(max((at for at in starts if at < rows.at), default=0))

    def _into(self, key: str) -> bool:
        app = self.app
        if key == "enter" and not app.in_pane:
            app.focus_pane(on=True)
        elif key == "enter":
            self._open()
        elif key == "escape" and self.path is not None:
            self.path = None
            self.show()
        elif key == "escape" and app.in_pane:
            app.focus_pane(on=False)
        elif key == "escape" and self.compared is not None:
            self.compared = None
            self.show()
        elif key == "escape" and (app.look.words or app.rows.marked):
            app.rows.marked.clear()
            self.listing.find("")
        else:
            return False
        return True

    def _open(self) -> None:
        """Goes from a file to its lines; reads them if they are missing."""
        pane = self.app.pane
        place = pane.line.place if pane.line is not None else None
        if place is None or place.hunk is not None:
            return
        for at, each in enumerate(pane.page.lines):
            if each.place is not None and each.place == (place.path, 0):
                pane.go(at)
                pane.top = min(at, max(0, pane.length - pane.size.height))
                pane.redraw()
                return
        self.path = place.path
        self.show()

    def show_tab(self, tab: str) -> None:
        """Shows another tab."""
        self.app.look.tab = tab
        self.path = self.compared = None
        self.show()

    def _toggle_now(self) -> None:
        self.app.look.now = not self.app.look.now
        self.show_tab(CHANGES)

    def _toggle_tools(self) -> None:
        look = self.app.look
        look.tools = not look.tools
        if look.tab != TALK:
            # The change is not visible here otherwise.
            self.app.say(f"tool calls are {('shown' if look.tools else 'folded')}")
        self.show()

    def _toggle_tree(self) -> None:
        self.app.look.tree = not self.app.look.tree
        self.listing.arrange()

    def _ask_words(self) -> None:
        self.app.focus_pane(on=False)
        asking = Asking(
            "/", lambda _: None, text=self.app.look.words, typed=self.listing.find
        )
        self.app.ask(asking)

    def _mark(self) -> None:
        rows = self.app.rows
        name = self.item.name
        if name.kind == NOW:
            self.app.say("(now) is compared with w; mark other rows")
            return
        if name in rows.marked:
            rows.marked.remove(name)
        else:
            rows.marked = [*rows.marked[-1:], name]
        rows.move(1)
        self.look()
        rows.refresh()

    def _compare(self) -> None:
        items = [one for one in self.app.rows.items if one.name in self.app.rows.marked]
        if len(items) == 1 and self.item.name not in self.app.rows.marked:
            items.append(self.item)
        numbers = [
            number for one in items if (number := timeline.selector(one)) is not None
        ]
        if len(numbers) != 2:  # noqa: PLR2004  two sides
            self.app.say(
                "mark two rows with space, or mark one and put the cursor on another"
            )
            return
        order = sorted(items, key=lambda one: one.row.last.created if one.row else "")
        first, second = (timeline.selector(one) for one in order)
        assert first is not None
        assert second is not None
        self.compared, self.path = (first, second), None
        self.app.look.tab = CHANGES
        self.show()


def _page(workspace: Workspace, view: View) -> Iterator[Page]:
    # The reading thread loads it, once the rows are on the screen.
    from gitcp.cli.picker.pages import page

    return page(workspace, view)


def _welcome() -> Page:
    return Page(
        [
            line("No checkpoints yet", "bold"),
            line("  gitcp save                 makes one now"),
            line("  gitcp install claude-code  makes one at every turn"),
        ]
    )
