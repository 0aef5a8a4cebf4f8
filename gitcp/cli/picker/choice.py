"""The result of the picker: the chosen action, and the view at that moment."""

from typing import TYPE_CHECKING, NamedTuple

from gitcp.cli.picker.timeline import NOW, Name
from gitcp.cli.picker.views import CHANGES

if TYPE_CHECKING:
    from gitcp.cli.picker.plans import Planned


class Into(NamedTuple):
    """A fork into a new work tree: of which state, its name, and where."""

    number: str
    name: str
    directory: str


class Choice(NamedTuple):
    """What to do in the terminal once the picker has left it.

    `page` selects the state whose session is to be written as a page.
    """

    planned: "Planned | None" = None
    into: Into | None = None
    page: str | None = None

    @property
    def returns(self) -> bool:
        """Whether the picker comes back: a page was written, or only a part restored."""
        if self.page is not None:
            return True
        return self.planned is not None and bool(self.planned.wanted.paths)


class Look:
    """How the picker looks; it is the same when it comes back."""

    def __init__(self) -> None:
        self.name = Name(NOW)
        self.tab = CHANGES
        self.now = False
        self.tools = False
        self.tree = True
        self.words = ""
