"""Lists turns at a terminal and asks for one: `gitcp restore` without a picker."""

from itertools import islice

import click

from gitcp import Checkpoint
from gitcp.checkpoints import history
from gitcp.checkpoints.history import Filters
from gitcp.checkpoints.numbered import with_numbers
from gitcp.checkpoints.scopes import Scope, find
from gitcp.checkpoints.selectors import select
from gitcp.cli.emit import Output
from gitcp.cli.log_page import LogPage
from gitcp.cli.options import reading_in
from gitcp.errors import GitcpError, NothingToDoError
from gitcp.project.workspace import Workspace

# So many rows fit on a screen, together with some headers.
_ROWS = 15


def ask_which(out: Output, workspace: Workspace) -> Checkpoint:
    """Prints the newest turns and returns the one that the user names.

    Accepts any selector, too; asks again if it finds nothing.

    Raises:
        NothingToDoError: there are no turns, or the user named none.
    """
    with_numbers(workspace)
    unreadable: list[str] = []
    with reading_in(workspace):
        found = find(workspace, Scope(), unreadable)
        listed = history.listing(workspace, found, Filters(), unreadable, full=False)
        page, rows = LogPage(out, workspace, (), full=False), 0
        for row in islice(listed, _ROWS):
            page.row(row)
            rows += 1
    for line in unreadable:
        out.warn(line)
    if not rows:
        raise NothingToDoError("no checkpoints yet", hint="`gitcp save` makes one")
    while True:
        answer = click.prompt(
            "Restore which number? (Enter for none)",
            default="",
            show_default=False,
            err=True,
        ).strip()
        if not answer:
            raise NothingToDoError("nothing was changed")
        try:
            return select(workspace, answer)
        except GitcpError as exc:
            out.error(exc.message, exc.hint)
