"""The interface of the picker's window for its parts: screen, reader thread, messages."""

from abc import abstractmethod

from textual.app import App

from gitcp.cli.picker.asking import Asking
from gitcp.cli.picker.choice import Choice, Look
from gitcp.cli.picker.jobs import Jobs
from gitcp.cli.picker.lines import Page, Part
from gitcp.cli.picker.rows import Timeline
from gitcp.cli.picker.widgets import Pane


class Window(App[Choice | None]):
    """Rows on the left, a pane on the right, `full` over both if it is shown."""

    def __init__(self, reads: Jobs, heavy: Jobs, look: Look) -> None:
        super().__init__(ansi_color=True)
        self.reads = reads
        self.heavy = heavy
        self.look = look
        self.rows = Timeline(ident="left")
        self.pane = Pane(ident="pane")
        self.full = Pane(ident="full")
        self.message: Part | None = None
        self.in_pane = False

    @abstractmethod
    def focus_pane(self, *, on: bool) -> None:
        """Directs the keys to the right side, or to the rows."""

    @abstractmethod
    def show_full(self, page: Page | None) -> None:
        """Shows a page over everything, or removes it."""

    @abstractmethod
    def say(self, text: str, *, bad: bool = False) -> None:
        """Shows a message until the next key."""

    @abstractmethod
    def ask(self, asking: Asking) -> None:
        """Lets the user type a line."""

    @abstractmethod
    def tell(self) -> None:
        """Draws the lines above and below."""
