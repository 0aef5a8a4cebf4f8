"""`gitcp decide` and `decisions`: adds to the decision log, and prints it."""

import os
import re
from itertools import chain

import click

from gitcp import Checkpoint
from gitcp.agents.shells import in_shell_of
from gitcp.checkpoints import reasons
from gitcp.checkpoints.in_session import newest_in
from gitcp.checkpoints.selectors import select
from gitcp.cli import documents
from gitcp.cli.emit import Output
from gitcp.cli.options import (
    command,
    path_inside,
    reader,
    refuse_both,
    session_option,
)
from gitcp.cli.render import decision_line
from gitcp.errors import UsageError
from gitcp.format.checkpoint import show_path
from gitcp.format.log import KINDS, Decision
from gitcp.project.workspace import Workspace, open_workspace


@command("decide")
@click.argument("text")
@click.option("--why", metavar="T", help="The reason")
@click.option("--kind", type=click.Choice(KINDS), default="decision", help="What it is")
@click.option("--path", "paths", multiple=True, metavar="P", help="What it is about")
def decide_command(
    out: Output, text: str, why: str | None, kind: str, paths: tuple[str, ...]
) -> None:
    """Add to the decision log; it goes into the next save.

    In the shell of an agent whose hooks save here, it goes into the next checkpoint of that
    agent's conversation.
    """
    workspace = open_workspace(out.directory)
    entry = Decision(
        text, why, kind, paths=tuple(show_path(os.fsencode(path)) for path in paths)
    )
    agent = in_shell_of(workspace, os.environ)
    workspace.add_pending([entry], agent)
    if out.json:
        out.document(
            {
                "schema": "gitcp.decide/1",
                "agent": agent.agent if agent else None,
                "agent_session": agent.ident if agent else None,
                "pending": documents.decisions(workspace.pending()),
            }
        )
    else:
        whose = " of this conversation" if agent else ""
        out.print(f"Noted for the next save{whose}:\n{decision_line(out, entry)}")


def _log_of(
    workspace: Workspace, selector: str | None, where: str | None
) -> tuple[Checkpoint, list[Decision]]:
    """Returns the entries of a checkpoint, of a session, or of the work tree."""
    if where is not None:
        checkpoint = newest_in(workspace, where)
        return checkpoint, checkpoint.decisions()[::-1]
    if selector is None and not workspace.bare:
        gathered = reasons.of_work_tree(workspace)
        if gathered.newest is not None:
            foreign = [reversed(each.decisions()) for each in gathered.elsewhere]
            return gathered.newest, [*gathered.entries, *chain(*foreign)]
    checkpoint = select(workspace, selector)
    return checkpoint, checkpoint.decisions()


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as exc:
        raise UsageError(
            f"{text!a} is not a regular expression: {exc}", hint="escape it with \\"
        ) from exc


@command("decisions")
@click.argument("selector", metavar="[SEL]", required=False)
@session_option
@click.option("--kind", metavar="K", help="Of one kind only")
@click.option("--path", metavar="P", help="About a path, or below it")
@click.option("--grep", metavar="RE", help="Whose text or reason matches")
def decisions_command(
    out: Output,
    selector: str | None,
    where: str | None,
    kind: str | None,
    path: str | None,
    grep: str | None,
) -> None:
    """Print what was decided, tried and found.

    Without SEL by any conversation in this work tree, newest first, as far as it led to the
    present state; with `-s` in one session, newest first; with SEL the decision log of a
    checkpoint, oldest first.
    """
    refuse_both(selector, where)
    pattern = _pattern(grep or "")
    workspace = reader(out, paged=True)
    checkpoint, log = _log_of(workspace, selector, where)
    # What waits belongs to no session yet.
    pending = workspace.pending() if where is None else []

    # Entries keep paths as they were written; here it may be written in another way.
    names = set()
    if path is not None:
        inside = os.fsdecode(path_inside(out, workspace.top, path))
        names = {path.rstrip("/"), inside} if inside else {"."}

    def about(entry: Decision) -> bool:
        return "." in names or any(
            path == name or path.startswith(f"{name}/")
            for path in entry.paths
            for name in names
        )

    entries = [
        entry
        for entry in log
        if (kind is None or entry.kind == kind)
        and (path is None or about(entry))
        and (pattern.search(entry.text) or pattern.search(entry.why or ""))
    ]
    if out.json:
        out.document(
            {
                "schema": "gitcp.decisions/1",
                "checkpoint": checkpoint.id,
                "decisions": documents.decisions(entries),
                "pending": documents.decisions(pending),
            }
        )
        return
    for entry in entries:
        out.print(decision_line(out, entry))
    if not entries:
        out.note("No matching entries in the decision log.")
    if pending:
        out.note(f"{len(pending)} more wait for the next save")
