"""The list of the timeline's rows, and which of them is selected."""

from collections.abc import Sequence

from rich.style import Style

from gitcp.cli.picker import timeline
from gitcp.cli.picker.lines import Part
from gitcp.cli.picker.row_parts import now_parts, row_parts
from gitcp.cli.picker.timeline import NOW, Item, Name
from gitcp.cli.picker.widgets import THERE, Lines


class Timeline(Lines):
    """The rows of the timeline."""

    DEFAULT_CSS = "Timeline { height: 1fr; }"
    elsewhere: Style | None = THERE

    def __init__(self, *, ident: str) -> None:
        super().__init__(ident=ident)
        self.items: list[Item] = [Item(Name(NOW))]
        self.marked: list[Name] = []
        self.about_now = ""
        self.by_client = False

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(self.items)

    def can_stop(self, at: int) -> bool:
        """Whether a row stands for a state."""
        return self.items[at].selectable

    @property
    def item(self) -> Item:
        """The row at the cursor."""
        return self.items[min(self.at, len(self.items) - 1)]

    def take(self, items: list[Item]) -> None:
        """Shows rows, with changes made by hand as rows below them."""
        here = self.item.name
        self.items = timeline.with_hand(items)
        at = next((at for at, one in enumerate(self.items) if one.name == here), None)
        self.at = at if at is not None else self._nearest()
        self.show()

    def _nearest(self) -> int:
        at = min(self.at, len(self.items) - 1)
        while at and not self.can_stop(at):
            at -= 1
        return at

    def parts(self, at: int, room: int) -> Sequence[Part]:
        """Returns the columns of a row."""
        item = self.items[at]
        if item.name.kind == NOW:
            return now_parts(self.about_now)
        marked = item.name in self.marked
        return row_parts(item, room, marked=marked, by_client=self.by_client)
