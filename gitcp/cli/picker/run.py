"""Runs the picker and the chosen action, then offers to continue."""

import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from gitcp import notices, progress
from gitcp.cli.emit import Output
from gitcp.cli.picker.choice import Choice, Look
from gitcp.cli.picker.first_paint import painted
from gitcp.cli.picker.jobs import Jobs
from gitcp.project.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from gitcp.cli.restoring import Handed


def run(out: Output) -> None:
    """Shows the picker until the user leaves it, or an action ends it.

    Raises:
        GitcpError: the chosen action failed; the error says how to continue.
    """
    # Report a problem with the directory before the screen changes.
    top = open_workspace(out.directory, bare=out.directory != ".")
    name = str(top.repository.top or out.directory)
    look = Look()
    while True:
        choice = show(out, look, top, name)
        if choice is None:
            return
        from gitcp.cli.picker.performing import perform

        handed = perform(out, choice)
        if not choice.returns:
            if handed is not None and handed.resumption is not None:
                _offer(out, handed)
            return
        if not click.confirm("Back to the picker?", default=True, err=True):
            return


def show(out: Output, look: Look, top: Workspace, name: str) -> Choice | None:
    """Shows the picker once, and returns the user's choice."""
    bare = out.directory != "."
    reads, heavy = (Jobs(out.directory, bare=bare) for _ in range(2))
    told: list[str] = []
    quietly = notices.listening(told.append), progress.shown_by(lambda *_: None)
    with ExitStack() as stack:
        for each in quietly:
            stack.enter_context(each)
        first = stack.enter_context(painted(top, name, tree=look.tree))
        from gitcp.cli.picker.app import Picker

        for jobs in (reads, heavy):
            stack.callback(jobs.close)
            jobs.start()
        app = Picker(reads, heavy, look, name, first)
        if first is not None:
            first.taken = True
        choice = app.run()
    for crash in (reads.crash, heavy.crash):
        if crash is not None:
            raise crash
    for text in told:
        out.warn(text)
    if app.interrupted:
        raise KeyboardInterrupt
    if app.return_code:
        raise RuntimeError("the picker ended with an error")
    return choice


def _offer(out: Output, handed: "Handed") -> None:
    """Asks whether to continue the conversation here; if so, its client replaces this process."""
    resumption = handed.resumption
    assert resumption is not None
    if not resumption.command:
        return
    from gitcp.agents.resume import become
    from gitcp.cli.render import title_of

    client = title_of(resumption.agent)
    if shutil.which(resumption.command[0]) is None:
        out.note(f"  {resumption.command[0]} is not on PATH here")
        return
    if click.confirm(f"Resume {client} here?", default=True, err=True):
        become(resumption)
