"""`gitcp decide` and `decisions`: adds to the decision log, and prints it."""

import os
import re
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import click

from gitcp import Checkpoint
from gitcp.agents.shells import in_shell_of
from gitcp.checkpoints import reasons
from gitcp.checkpoints.grounds import find as find_grounds
from gitcp.checkpoints.in_session import newest_in
from gitcp.checkpoints.selectors import LAST, select
from gitcp.cli import documents
from gitcp.cli.emit import Output
from gitcp.cli.options import (
    command,
    path_inside,
    reader,
    refuse_both,
    session_option,
    writer,
)
from gitcp.cli.render import decision_line
from gitcp.errors import UsageError
from gitcp.format.checkpoint import show_path
from gitcp.format.log import KINDS, Decision
from gitcp.project import pending_decisions
from gitcp.project.workspace import Workspace


@command("decide")
@click.argument("text")
@click.option("--why", metavar="T", help="The reason")
@click.option(
    "--kind", type=click.Choice(KINDS), default="decision", help="The kind of entry"
)
@click.option(
    "--path", "paths", multiple=True, metavar="P", help="A path that it is about"
)
def decide_command(
    out: Output, text: str, why: str | None, kind: str, paths: tuple[str, ...]
) -> None:
    """Record a decision for the next save.

    In the shell of an agent whose hooks save here, the entry goes into the next
    checkpoint of that agent's conversation.
    """
    workspace = writer(out)
    entry = Decision(
        text, why, kind, paths=tuple(show_path(os.fsencode(path)) for path in paths)
    )
    agent = in_shell_of(workspace, os.environ)
    pending_decisions.record(workspace, [entry], agent)
    if out.json:
        out.document(
            {
                "schema": "gitcp.decide/1",
                "agent": agent.agent if agent else None,
                "agent_session": agent.ident if agent else None,
                "pending": documents.decisions(pending_decisions.pending(workspace)),
            }
        )
    else:
        whose = " of this conversation" if agent else ""
        out.print(f"Noted for the next save{whose}:\n{decision_line(out, entry)}")


class _Log(NamedTuple):
    """Entries, their checkpoint, and those of them that were taken back."""

    checkpoint: Checkpoint
    entries: list[Decision]
    taken_back: frozenset[Decision] = frozenset()


def _log_of(workspace: Workspace, selector: str | None, where: str | None) -> _Log:
    """Returns the entries of a checkpoint, of a session, or of the work tree."""
    if where is not None:
        checkpoint = newest_in(workspace, where)
        return _Log(checkpoint, checkpoint.decisions()[::-1])
    if selector in {None, LAST} and not workspace.bare:
        gathered = reasons.of_work_tree(workspace)
        if gathered.newest is not None:
            foreign = [reversed(each.decisions()) for each in gathered.elsewhere]
            return _Log(
                gathered.newest,
                [*gathered.entries, *chain(*foreign)],
                gathered.taken_back,
            )
    checkpoint = select(workspace, selector)
    return _Log(checkpoint, checkpoint.decisions())


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as exc:
        raise UsageError(
            f"{text!a} is not a regular expression: {exc}", hint="escape it with \\"
        ) from exc


def _about(
    out: Output, workspace: Workspace, log: _Log, path: str | None
) -> Callable[[Decision], bool]:
    """Returns a function that tells whether an entry is about a path; None is any path."""
    if path is None:
        return lambda _: True
    raw = path_inside(out, workspace.top, path)
    inside = os.fsdecode(raw)
    if not inside:
        return lambda _: True
    # Entries keep paths as they were written; the command line may spell the path otherwise.
    names = {path.rstrip("/"), inside}
    # An entry without paths is about the files that its turn changed.
    unnamed = [entry for entry in log.entries if not entry.paths]
    grounds = find_grounds(workspace, unnamed)
    touching = {entry for entry in grounds if grounds[entry].touches([raw])}

    def about(entry: Decision) -> bool:
        return entry in touching or any(
            named == name or named.startswith(f"{name}/")
            for named in entry.paths
            for name in names
        )

    return about


@command("decisions")
@click.argument("selector", metavar="[SEL]", required=False)
@session_option
@click.option("--kind", metavar="K", help="Only entries of one kind")
@click.option(
    "--path", metavar="P", help="Only entries about a path, or of turns that changed it"
)
@click.option("--grep", metavar="RE", help="Only entries whose text or reason matches")
def decisions_command(
    out: Output,
    selector: str | None,
    where: str | None,
    kind: str | None,
    path: str | None,
    grep: str | None,
) -> None:
    """Print what was decided, tried and found.

    Without SEL it lists the entries of all conversations in this work tree that led to
    the present state, newest first. With `-s` it lists those of one session, newest
    first. With SEL it prints the decision log of a checkpoint, oldest first. A decision
    counts as taken back if all files that its turn changed are as they were before it.
    """
    refuse_both(selector, where)
    pattern = _pattern(grep or "")
    workspace = reader(out, paged=True)
    log = _log_of(workspace, selector, where)
    # A pending entry belongs to no session yet.
    pending = pending_decisions.pending(workspace) if where is None else []

    about = _about(out, workspace, log, path)
    entries = [
        entry
        for entry in log.entries
        if (kind is None or entry.kind == kind)
        and about(entry)
        and (pattern.search(entry.text) or pattern.search(entry.why or ""))
    ]
    if out.json:
        out.document(
            {
                "schema": "gitcp.decisions/1",
                "checkpoint": log.checkpoint.id,
                "decisions": documents.reasons(entries, log.taken_back),
                "pending": documents.decisions(pending),
            }
        )
        return
    for entry in entries:
        out.print(decision_line(out, entry))
        if entry in log.taken_back:
            out.print(f"{'':12}taken back: its files are as they were before it")
    if not entries:
        out.note("No matching entries in the decision log.")
    if pending:
        out.note(f"{len(pending)} more wait for the next save")
