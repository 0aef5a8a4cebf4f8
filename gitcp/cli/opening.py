"""Opens the project for a command, whichever way its arguments were parsed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from gitcp.cli.emit import Output
from gitcp.cli.silence import changes_something

if TYPE_CHECKING:
    from gitcp.project.workspace import Workspace

# Enters what is to be left when the command ends.
Enter = Callable[[AbstractContextManager[None]], object]
# To restore a few files takes some eighty; what takes more takes thousands.
_READS_TO_WRITE = 200


@contextmanager
def shown_output(out: Output, name: str, given: Mapping[str, Any]) -> Iterator[None]:
    """Shows the progress of a command inside; with `-q` one that changes something is silent."""
    out.silent = out.quiet and changes_something(name, given)
    with out.showing_progress():
        yield


def to_change(out: Output, enter: Enter) -> "Workspace":
    """Opens the workspace for a command that changes something.

    It reads less than it writes, and git reads little sooner than libgit2 loads: `enter`
    is given that, to be left when the command ends.
    """
    from gitcp.project.workspace import open_workspace

    workspace = open_workspace(out.directory)
    enter(workspace.repository.objects.few_reads(_READS_TO_WRITE))
    return workspace
