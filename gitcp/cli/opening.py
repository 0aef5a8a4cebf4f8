"""Opens the project for a command, whether or not click parsed its arguments."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from gitcp.cli.emit import Output
from gitcp.cli.silence import changes_something

if TYPE_CHECKING:
    from gitcp.project.workspace import Workspace

# Enters a context that is left when the command ends.
Enter = Callable[[AbstractContextManager[None]], object]
# A restore of a few files takes some eighty reads; larger restores take thousands.
_READS_TO_WRITE = 200


@contextmanager
def shown_output(out: Output, name: str, given: Mapping[str, Any]) -> Iterator[None]:
    """Shows the progress of a command inside; `-q` silences a command that changes something."""
    out.silent = out.quiet and changes_something(name, given)
    with out.showing_progress():
        yield


def to_change(out: Output, enter: Enter) -> "Workspace":
    """Opens the workspace for a command that changes something.

    Such a command reads little, and git does that before libgit2 would be loaded. `enter`
    enters a context for these reads, which is left when the command ends.
    """
    from gitcp.project.workspace import open_workspace

    workspace = open_workspace(out.directory)
    enter(workspace.repository.objects.few_reads(_READS_TO_WRITE))
    return workspace
