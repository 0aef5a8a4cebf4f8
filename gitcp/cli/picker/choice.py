"""The result of the picker: the chosen action, and the view at that moment."""

from typing import TYPE_CHECKING, NamedTuple

from gitcp.cli.picker.timeline import NOW, Name
from gitcp.cli.picker.views import CHANGES

if TYPE_CHECKING:
    from gitcp.cli.picker.plans import Planned


class Into(NamedTuple):
    """A fork into a new work tree: its state, its name, and its directory."""

    number: str
    name: str
    directory: str


class Choice(NamedTuple):
    """The action to carry out once the picker has left the terminal.

    `page` selects the state whose session to write as a page.
    """

    planned: "Planned | None" = None
    into: Into | None = None
    page: str | None = None

    @property
    def returns(self) -> bool:
        """Whether the picker comes back: after a page, or after a restore of a part."""
        if self.page is not None:
            return True
        return self.planned is not None and bool(self.planned.wanted.paths)


class Look:
    """The view of the picker, which is the same when it comes back."""

    def __init__(self) -> None:
        self.name = Name(NOW)
        self.tab = CHANGES
        self.now = False
        self.tools = False
        self.tree = True
        self.words = ""
