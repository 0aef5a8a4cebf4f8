"""Draws the timeline: a line for each row, its columns as wide as there is room for."""

from collections.abc import Sequence

from gitcp.checkpoints.history import Listed
from gitcp.checkpoints.own_notes import note_of
from gitcp.cli.emit import one_line
from gitcp.cli.layout import age, cells, fit, pad
from gitcp.cli.picker import timeline
from gitcp.cli.picker.lines import Part
from gitcp.cli.picker.timeline import HEAD, NOW, Item, Name
from gitcp.cli.picker.widgets import Lines
from gitcp.cli.render import title_of
from gitcp.cli.row_marks import row_counts, row_mark

_NUMBER = 6
_AGE = 11
# Columns of a prompt that marks and clients leave free.
_PROMPT = 12


class Timeline(Lines):
    """The rows of the timeline."""

    DEFAULT_CSS = "Timeline { height: 1fr; }"

    def __init__(self, *, ident: str) -> None:
        super().__init__(ident=ident)
        self.items: list[Item] = [Item(Name(NOW))]
        self.marked: list[Name] = []
        self.about_now = ""
        self.by_client = False

    @property
    def length(self) -> int:
        """How many rows there are."""
        return len(self.items)

    def can_stop(self, at: int) -> bool:
        """Whether a row stands for a state."""
        return self.items[at].selectable

    @property
    def item(self) -> Item:
        """The row that the cursor is on."""
        return self.items[min(self.at, len(self.items) - 1)]

    def replace(self, items: list[Item]) -> None:
        """Shows other rows; what was read of them is kept, and the cursor where it is."""
        before = {each.name: each for each in self.items}
        for each in items:
            known = before.get(each.name)
            if known is None or known.row is None or each.row is None:
                continue
            if known.row.last.commit == each.row.last.commit:
                each.listed, each.by_hand = known.listed, known.by_hand
                each.about = each.about or known.about
        self.take(items)

    def take(self, items: list[Item]) -> None:
        """Shows rows as they are, with those that were done by hand below them."""
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
            return Part("(now)", "bold"), Part(f"  {self.about_now}", "dim")
        indent = "  " * item.depth
        if item.name.kind == HEAD:
            sign = "└ " if item.depth else ""
            text = f"{'  ' * (item.depth - 1)}{sign}{item.about or '…'}"
            return (Part(fit(text, room), "bold"),)
        mark = "▌" if item.name in self.marked else " "
        assert item.row is not None
        last = item.row.last
        name = f"#{last.number}" if last.number else last.id
        left = f"{indent}{name:>{_NUMBER}} {age(last.created):>{_AGE}}  "
        parts = [Part(mark, "warn"), Part(left, "number")]
        if item.listed is None:
            return [*parts, Part("cannot be read" if item.gone else "…", "dim")]
        room -= cells(left) + 1
        return [*parts, *self._about(item.listed, room)]

    def _about(self, listed: Listed, room: int) -> list[Part]:
        """Returns the prompt with its badges and counts, as far as they fit."""
        checkpoint = listed.checkpoint
        badges = [Part(row_mark(listed, full=False), "mark")]
        if checkpoint.trigger == "test-failure":
            badges = [Part("✕ failed ", "bad")]
        held = checkpoint.manifest.conversation
        if self.by_client and held is not None:
            badges.insert(0, Part(f"{title_of(held.kind)} ", "dim"))
        counts = row_counts(listed)
        room -= cells(counts) + 2 if counts else 0
        room -= sum(cells(badge.text) for badge in badges)
        text = one_line(listed.prompt or note_of(checkpoint))
        room = max(room, _PROMPT)
        parts = [*badges, Part(pad(fit(text, room), room))]
        if counts:
            parts.append(Part(f"  {counts}", "dim"))
        return parts
