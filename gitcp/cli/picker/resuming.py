"""The command that continues the conversation of a state."""

import os
import shlex
from collections.abc import Iterator

from gitcp.agents import resume
from gitcp.checkpoints.selectors import select
from gitcp.errors import NothingToDoError
from gitcp.project.workspace import Workspace


def resume_command(workspace: Workspace, number: str) -> Iterator[str]:
    """Yields the command, for a shell in any directory.

    If the client has the conversation just as in that state, it is the client's own command;
    else gitcp's command that restores the conversation and prints how to continue it. Writes
    nothing, and never returns a client's command for a conversation made elsewhere.

    Raises:
        NotFoundError: the state is gone.
        NothingToDoError: no client that gitcp knows can continue it.
    """
    checkpoint = select(workspace, number)
    if not resume.can_resume(checkpoint):
        raise NothingToDoError("this checkpoint has no client's conversation")
    there = resume.where_it_is(workspace, checkpoint)
    shown = there.shown(os.sep) if there is not None else None
    if shown is not None:
        yield shown
        return
    name = checkpoint.number or checkpoint.id
    top = shlex.quote(str(workspace.top))
    yield f"cd {top} && gitcp restore {name} --conversation"
