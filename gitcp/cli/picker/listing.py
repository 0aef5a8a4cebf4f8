"""The rows of the picker: reads those in view, looks for new ones, finds by words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitcp.checkpoints.turns import Row
from gitcp.cli.picker import timeline
from gitcp.cli.picker.finding import Finder, Found
from gitcp.cli.picker.timeline import HEAD, NOW, Item, Name, Read
from gitcp.cli.render import count
from gitcp.errors import GitcpError
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    from gitcp.cli.picker.app import Picker


class Listing:
    """Which rows there are, and what is known of them.

    `found` is None until they are read. `matches` are those that were searched for.
    """

    def __init__(self, app: "Picker") -> None:
        self.app = app
        self.found: tuple[Row, ...] | None = None
        self.matches: Found | None = None
        self.trouble = ""
        self._finder = Finder()
        self._state: tuple[object, ...] | None = None
        # The rows that are being read, by name.
        self.reading: set[Name] = set()

    def about(self) -> tuple[str, str]:
        """Returns how many rows there are, and what is the matter."""
        if self.found is None:
            return ("reading …", self.trouble)
        told = count(len(self.found), "row")
        words = self.app.look.words
        if words and self.matches is not None:
            more = "" if self.matches.whole else " …"
            told = f"/{words}: {len(self.matches.names):,} of {told}{more}"
        if not self.found:
            told = "no checkpoints yet: `gitcp save` makes one"
        return (told, self.trouble)

    def begin(self) -> None:
        """Reads the rows, and what is selected."""
        self.app.rows.looked = self.read_view
        self.app.reads.ask("state", _state, self._first_state, failed=self.failed)
        self.reload()

    def reload(self) -> None:
        """Reads the rows again."""
        app = self.app
        app.reads.ask("rows", _found, self._listed, failed=self.failed, rank=0)

    def poll(self) -> None:
        """Looks whether something was saved."""
        self.app.reads.ask("state", _state, self._look_at, failed=self.failed, rank=3)

    def _first_state(self, state: tuple[object, ...]) -> None:
        self._state = state

    def _look_at(self, state: tuple[object, ...]) -> None:
        if state != self._state:
            self._state = state
            self.reload()

    def failed(self, exc: GitcpError) -> None:
        """Says what could not be read; what was read before stays."""
        self.trouble = timeline.refusal(exc)
        self.app.tell()

    def _listed(self, found: tuple[Row, ...]) -> None:
        self.trouble = ""
        before, self.found = self.found, found
        self.arrange()
        if before is None and self.app.look.name.kind != NOW:
            self._go_to(self.app.look.name)
        if (before is None and self.app.look.words) or self.matches is not None:
            self.find(self.app.look.words)
        self.app.browsing.look(again=True)
        self.app.tell()

    def arrange(self) -> None:
        """Arranges the rows that are to be seen."""
        found = self.found or ()
        if self.matches is not None:
            names = self.matches.names
            found = tuple(row for row in found if timeline.name_of(row) in names)
        rows = self.app.rows
        rows.by_client = not self.app.look.tree
        rows.replace(timeline.arranged(found, tree=self.app.look.tree))

    def _go_to(self, name: Name) -> None:
        for at, item in enumerate(self.app.rows.items):
            if item.name == name:
                self.app.rows.go(at)

    def read_view(self) -> None:
        """Reads the rows that are in view, and those a page below."""
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
                item.about = item.about or read.about
                item.listed = read.listed[0] if read.listed else None
                item.gone = not read.listed
                if len(read.listed) > 1 and item.name.kind != HEAD:
                    item.by_hand = read.listed[1]
        if any(len(read.listed) > 1 for read in done):
            rows.take(rows.items)
        else:
            rows.redraw()

    def find(self, words: str) -> None:
        """Shows only the rows in which all of some words occur."""
        self.app.look.words = words
        if not words.strip():
            self.app.reads.drop("find")
            self.matches = None
            self.arrange()
            self.app.browsing.look()
            return
        found = self.found or ()
        self.app.reads.ask(
            "find",
            lambda workspace: self._finder.steps(workspace, found, words),
            self._matched,
            failed=self.failed,
            rank=2,
        )

    def _matched(self, matches: Found) -> None:
        self.matches = matches
        self.arrange()
        self.app.browsing.look()
        self.app.tell()


def _is_due(item: Item) -> bool:
    return item.row is not None and item.listed is None and not item.gone


def _state(workspace: Workspace) -> Iterator[tuple[object, ...]]:
    yield timeline.state_of(workspace)


def _found(workspace: Workspace) -> Iterator[tuple[Row, ...]]:
    yield timeline.found_rows(workspace)
