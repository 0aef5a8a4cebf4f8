"""The rows of the picker: reads those in view, checks for new ones, finds by words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from gitcp.cli.picker import bars, timeline
from gitcp.cli.picker.jobs import Steps
from gitcp.cli.picker.timeline import Item, Name, Named, Read
from gitcp.cli.picker.views import Found
from gitcp.cli.picker.window import Window
from gitcp.errors import GitcpError
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    from gitcp.cli.picker.finding import Finder
    from gitcp.cli.picker.first_paint import First


class _Beside(Protocol):
    """The part that shows the selected row."""

    @property
    def shown(self) -> object | None:
        """The page shown; None before the first one."""

    def look(self, *, again: bool = False) -> None:
        """Shows the selected row."""


class Listing:
    """The rows, and their content as far as it is read.

    `found` is None until they are read. `matches` are the results of a search.
    """

    # Set by the code that makes both objects.
    beside: _Beside

    def __init__(self, app: Window, first: "First | None") -> None:
        self.app = app
        self.first = first
        self.found: tuple[Named, ...] | None = None
        self.matches: Found | None = None
        self.trouble = ""
        self._items = timeline.Items()
        self._finder: Finder | None = None
        self._state: tuple[object, ...] | None = None
        # The row to come back to, and whether to read the page again.
        self._sought: Name | None = app.look.name
        self._again = False
        # The names of rows that are being read.
        self.reading: set[Name] = set()

    def about(self) -> tuple[str, str]:
        """Returns the number of rows, and a state or problem, as texts."""
        if self.found is None:
            return ("reading …", self.trouble)
        told = bars.rows_told(len(self.found))
        words = self.app.look.words
        if words and self.matches is not None:
            more = "" if self.matches.whole else " …"
            told = f"/{words}: {len(self.matches.names):,} of {told}{more}"
        if not self.found:
            told = "no checkpoints yet: `gitcp save` makes one"
        return (told, self.trouble)

    def begin(self) -> None:
        """Reads the rows; reads the selected page once the rows in view are there."""
        self.app.rows.looked = self.read_view
        if self.first is None:
            self._ask_rows(timeline.first_rows)
        else:
            self._items = self.first.items
            self._listed(self.first.found)
        self.poll()

    def reload(self) -> None:
        """Reads the rows again."""
        self._again = True
        self._ask_rows(timeline.all_rows)

    def _ask_rows(self, steps: Steps) -> None:
        self.app.reads.ask("rows", steps, self._listed, failed=self.failed, rank=0)

    def poll(self) -> None:
        """Checks for new saves."""
        self.app.reads.ask("state", _state, self._look_at, failed=self.failed)

    def _look_at(self, state: tuple[object, ...]) -> None:
        before, self._state = self._state, state
        if before is None:
            # Every save from now on counts as a change.
            self._ask_rows(timeline.all_rows)
            self.beside.look()
        elif before != state:
            self.reload()

    def failed(self, exc: GitcpError) -> None:
        """Reports an error while reading; rows read before stay."""
        self.trouble = timeline.refusal(exc)
        self.app.tell()

    def _listed(self, found: tuple[Named, ...]) -> None:
        self.trouble = ""
        before, self.found = self.found, found
        self.arrange()
        if self._sought is not None and self._go_to(self._sought):
            self._sought = None
        look = self.app.look
        if (before is None and look.words) or self.matches is not None:
            self.find(look.words)
        if self._again or not found:
            self.beside.look(again=self._again)
            self._again = False
        self.app.tell()

    def arrange(self) -> None:
        """Arranges the rows to show."""
        found = self.found or ()
        if self.matches is not None:
            names = self.matches.names
            found = tuple(each for each in found if each.name in names)
        rows = self.app.rows
        rows.by_client = not self.app.look.tree
        rows.take(self._items.arranged(found, tree=self.app.look.tree))

    def _go_to(self, name: Name) -> bool:
        for at, item in enumerate(self.app.rows.items):
            if item.name == name:
                self.app.rows.go(at)
                return True
        return False

    def read_view(self) -> None:
        """Reads the rows in view, and those a page below."""
        rows = self.app.rows
        view = rows.in_view
        ahead = range(view.start, min(rows.length, view.stop + len(view)))
        due = [rows.items[at] for at in ahead if _is_due(rows.items[at])]
        names = {item.name for item in due}
        if names <= self.reading:
            return
        self.reading = names
        self.app.reads.ask(
            "view",
            lambda workspace: timeline.read_rows(workspace, due),
            self._read,
            failed=self._unread,
            rank=0,
        )

    def _unread(self, exc: GitcpError) -> None:
        self.reading = set()
        self.failed(exc)

    def _read(self, done: list[Read]) -> None:
        rows = self.app.rows
        items = {item.name: item for item in rows.items}
        for read in done:
            item = items.get(read.name)
            self.reading.discard(read.name)
            if item is not None:
                timeline.fill(item, read)
        if any(len(read.listed) > 1 for read in done):
            rows.take(rows.items)
        else:
            rows.redraw()
        if self.beside.shown is None:
            self.beside.look()

    def find(self, words: str) -> None:
        """Shows only the rows that contain all of some words."""
        self.app.look.words = words
        if not words.strip():
            self.app.reads.drop("find")
            self.matches = None
            self.arrange()
            self.beside.look()
            return
        found = self.found or ()
        self.app.reads.ask(
            "find",
            lambda workspace: self._find(workspace, found, words),
            self._matched,
            failed=self.failed,
            rank=2,
        )

    def _find(
        self, workspace: Workspace, rows: tuple[Named, ...], words: str
    ) -> Iterator[Found | None]:
        from gitcp.cli.picker.finding import Finder

        self._finder = self._finder or Finder()
        return self._finder.steps(workspace, rows, words)

    def _matched(self, matches: Found) -> None:
        self.matches = matches
        self.arrange()
        self.beside.look()
        self.app.tell()


def _is_due(item: Item) -> bool:
    return item.row is not None and item.listed is None and not item.gone


def _state(workspace: Workspace) -> Iterator[tuple[object, ...]]:
    yield timeline.state_of(workspace)
