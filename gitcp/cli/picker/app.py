"""The application of the picker: its widgets, and the handler of each key."""

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Event, Key, Paste, Resize

from gitcp.cli.emit import safe_line
from gitcp.cli.picker import bars
from gitcp.cli.picker.asking import Asking
from gitcp.cli.picker.browsing import Browsing
from gitcp.cli.picker.choice import Look
from gitcp.cli.picker.doing import Doing
from gitcp.cli.picker.jobs import Jobs
from gitcp.cli.picker.lines import Page, Part
from gitcp.cli.picker.listing import Listing
from gitcp.cli.picker.views import TABS
from gitcp.cli.picker.widgets import Bar
from gitcp.cli.picker.window import Window

if TYPE_CHECKING:
    from gitcp.cli.picker.first_paint import First

# Seconds after which a reading thread yields to the keys; Python's default is 5 ms.
_SWITCH = 0.001
_POLL = 1.0
_AGES = 30.0


class Picker(Window):
    """The timeline on the left, the selected state on the right."""

    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    #right { width: 1fr; border-left: solid ansi_bright_black; padding-left: 1; }
    #full { display: none; }
    Screen.narrow #right { border-left: none; padding-left: 0; }
    """
    TITLE: str | None = "gitcp"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        reads: Jobs,
        heavy: Jobs,
        look: Look,
        name: str,
        first: "First | None" = None,
    ) -> None:
        super().__init__(reads, heavy, look)
        self.project = name
        self.interrupted = False
        self.title_bar, self.tab_bar = Bar(ident="title"), Bar(ident="tabs")
        self.hint_bar = Bar(ident="hints")
        self.right = Vertical(self.tab_bar, self.pane, id="right")
        self.both = Horizontal(self.rows, self.right, id="both")
        self.asking: Asking | None = None
        self.listing = Listing(self, first)
        self.browsing = Browsing(self, self.listing)
        self.doing = Doing(self, self.browsing)

    def compose(self) -> ComposeResult:
        """Lays the widgets out."""
        yield self.title_bar
        yield self.both
        yield self.full
        yield self.hint_bar

    def on_mount(self) -> None:
        """Takes the results so far, and asks for the rest."""
        self.pane.chosen = lambda: self.focus_pane(on=True)
        self.rows.chosen = lambda: self.focus_pane(on=False)
        sys.setswitchinterval(_SWITCH)
        loop = asyncio.get_running_loop()
        for ending in (signal.SIGTERM, signal.SIGHUP):
            # Otherwise the terminal would stay in the picker's mode.
            loop.add_signal_handler(ending, self.interrupt)
        for jobs in (self.reads, self.heavy):
            jobs.deliver_to(self._post, self._crashed)
        self.listing.begin()
        self.set_interval(_POLL, self.listing.poll)
        self.set_interval(_AGES, self.rows.refresh)
        self.focus_pane(on=False)

    def _post(self, what: Callable[[], None]) -> None:
        self.call_later(what)

    def _crashed(self) -> None:
        self.exit(None)

    # --- the screen -------------------------------------------------------------------

    @property
    def narrow(self) -> bool:
        """Whether there is room for only one side."""
        return self.size.width < bars.NARROW

    def on_resize(self, event: Resize) -> None:
        """Shows both sides, or one; a page is laid out again for its new width."""
        del event
        # Textual takes down the new size only after this.
        self.call_later(self.arrange)
        self.call_after_refresh(self.browsing.resized)

    def arrange(self) -> None:
        """Shows the sides that there is room for."""
        narrow, full = self.narrow, self.doing.shown
        self.screen.set_class(narrow, "narrow")
        self.both.display = not full
        self.full.display = full
        self.rows.styles.width = bars.left_width(self.size.width)
        self.rows.display = not (narrow and self.in_pane)
        self.right.display = not narrow or self.in_pane
        self.tell()

    def focus_pane(self, *, on: bool) -> None:
        """Directs the keys to the right side, or to the rows."""
        self.in_pane = on
        self.pane.active, self.rows.active = on, not on
        self.arrange()
        self.pane.refresh()
        self.rows.refresh()

    def show_full(self, page: Page | None) -> None:
        """Shows a page over everything, or removes it."""
        if page is not None:
            self.full.put(page, keep=False)
        self.arrange()

    def say(self, text: str, *, bad: bool = False) -> None:
        """Shows a message until the next key."""
        self.message = Part(f" {safe_line(text)}", "warn" if bad else "bold")
        self.tell()

    def ask(self, asking: Asking) -> None:
        """Lets the user type a line."""
        self.asking = asking
        self.tell()

    def tell(self) -> None:
        """Draws the lines above and below."""
        room = self.size.width
        self.title_bar.put(*bars.title(self.project, *self.listing.about()))
        look = self.look
        self.tab_bar.put(*bars.tabs(look.tab, bars.right_width(room), now=look.now))
        if self.asking is not None:
            self.hint_bar.put(*self.asking.parts())
        elif self.message is not None:
            self.hint_bar.put(self.message)
        else:
            pairs = self.doing.hints
            if pairs is None and self.in_pane:
                pairs = bars.of_pane(hunks=self.browsing.against_now)
            last = bars.LAST if self.doing.hints is None else ()
            self.hint_bar.put(*bars.hints(pairs or bars.of_list(), room, last))

    # --- keys -------------------------------------------------------------------------

    async def on_event(self, event: Event) -> None:
        """Handles keys and pasted text; Textual handles all other events.

        Textual would handle some keys at once and pass the others on to a widget first: if a
        user typed `a b` while it drew, the space came first.
        """
        if isinstance(event, Key):
            self._took(event)
        elif isinstance(event, Paste):
            if self.asking is not None:
                self.asking.add(event.text)
                self.tell()
        else:
            await super().on_event(event)

    def interrupt(self) -> None:
        """Ends the picker, as Ctrl-C ends every command."""
        self.interrupted = True
        self.exit(None)

    def _took(self, event: Key) -> None:
        if event.key == "ctrl+c":
            self.interrupt()
        elif event.key == "ctrl+q":
            self._pressed("q", None)
        else:
            self._pressed(event.key, event.character)

    def _pressed(self, key: str, character: str | None) -> None:
        if self.asking is not None:
            self._typed(self.asking, key, character)
        elif self.message is not None and key == "escape":
            self.message = None
        else:
            self.message = None
            name = character if character and character.isprintable() else key
            if not self.doing.pressed(name) and not self.browsing.pressed(name):
                self._own(name)
        self.tell()

    def _typed(self, asking: Asking, key: str, character: str | None) -> None:
        if key == "escape":
            self.asking = None
            asking.clear()
        elif key == "enter":
            self.asking = None
            asking.done(asking.text)
        elif key == "backspace":
            asking.erase()
        elif key == "ctrl+u":
            asking.clear()
        elif key in {"up", "down"}:
            self.browsing.pressed(key)
        else:
            asking.add(" " if key == "space" else character or "")

    def _own(self, name: str) -> None:
        if name == "q":
            self.exit(None)
        elif name == "?":
            self.doing.show_help()
        elif name in {"tab", "shift+tab"}:
            self.focus_pane(on=not self.in_pane)
        elif name in {"left", "right"}:
            at = TABS.index(self.look.tab) + (1 if name == "right" else -1)
            self.browsing.show_tab(TABS[at % len(TABS)])
