"""`gitcp log`: lists what happened in a work tree, one row for each turn."""

import os
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import click

from gitcp import Checkpoint
from gitcp.checkpoints import history
from gitcp.checkpoints.history import Filters, Listed
from gitcp.checkpoints.scopes import Found, Scope, find
from gitcp.cli.emit import Output
from gitcp.cli.log_page import LogPage
from gitcp.cli.options import command, left_out, path_inside, reader, session_option
from gitcp.cli.render import count
from gitcp.cli.row_marks import STATUSES, by_status
from gitcp.cli.unshared import tell_failed_push_once
from gitcp.errors import UsageError
from gitcp.project.workspace import Workspace, may_have_been_private

# How many rows are listed by default: a screen or two.
_ROWS = 30


class _Graph:
    """Columns of a graph: one for each line that continues below."""

    def __init__(self) -> None:
        self._columns: list[bytes] = []

    def row(self, checkpoint: Checkpoint) -> str:
        """Returns the marks for a checkpoint's line; `/` if a fork joins it."""
        mine = [at for at, oid in enumerate(self._columns) if oid == checkpoint.oid]
        if not mine:
            self._columns.append(checkpoint.oid)
            mine = [len(self._columns) - 1]
        marks = ["*" if at == mine[0] else "|" for at in range(len(self._columns))]
        if len(mine) > 1:
            marks = ["/" if at in mine[1:] else mark for at, mark in enumerate(marks)]
            self._columns = [
                oid for at, oid in enumerate(self._columns) if at not in mine[1:]
            ]
        if checkpoint.raw.parents:
            self._columns[mine[0]] = checkpoint.raw.parents[0]
        else:
            del self._columns[mine[0]]
        return " ".join(marks)


def _document(workspace: Workspace, listed: Listed) -> dict[str, Any]:
    from gitcp.cli import documents
    from gitcp.cli.beside_lines import beside_documents

    made = documents.checkpoint(listed.checkpoint)
    assert made is not None
    made["changed"] = listed.changed._asdict()
    if listed.touched is not None:
        made["touched"] = documents.changes(listed.touched)
    made["by_hand"] = listed.by_hand
    if not listed.by_hand and (listed.prompt is not None or listed.row.is_turn):
        made["turn"] = {
            "prompt": listed.prompt,
            "checkpoints": listed.ids,
            "beside": beside_documents(workspace, listed.beside),
            "unsure": dict(zip(STATUSES, by_status(listed.unsure), strict=True)),
        }
    return made


def _documents(
    workspace: Workspace, found: Found, shown: list[Listed], unreadable: list[str]
) -> dict[str, Any]:
    inside = {ident for listed in shown for ident in listed.ids}
    hidden = sum(entry.id not in inside for entry in found.entries)
    return {
        "schema": "gitcp.log/1",
        "checkpoints": [_document(workspace, listed) for listed in shown],
        "hidden": hidden + len(inside) - len(shown),
        "unreadable": unreadable,
    }


def _filters(
    out: Output,
    workspace: Workspace,
    since: str | None,
    until: str | None,
    grep: str | None,
    text: str | None,
    agent: str | None,
    paths: Sequence[str],
) -> Filters:
    from gitcp.checkpoints.times import when

    try:
        words = re.compile(grep, re.IGNORECASE) if grep is not None else None
    except re.error as exc:
        raise UsageError(
            f"{grep!a} is not a regular expression: {exc}", hint="escape it with \\"
        ) from exc
    inside = tuple(path_inside(out, workspace.top, path) for path in paths)
    return Filters(
        when(since) if since else None,
        when(until) if until else None,
        words,
        os.fsencode(text) if text is not None else None,
        agent,
        () if b"" in inside else inside,
    )


def _scope(
    workspace: Workspace, where: str | None, *, everything: bool, imported: bool
) -> Scope:
    if everything or where is None:
        # A bare store has no work tree on any of its branches.
        return Scope(everything=everything or workspace.bare, imported=imported)
    from gitcp.checkpoints.in_session import named

    session, branch = named(workspace, where)
    return Scope(session=session, branch=branch)


def _opened(out: Output) -> Workspace:
    workspace = reader(out, paged=True)
    if may_have_been_private(workspace):
        from gitcp.cli.private_folder import tell_left_behind

        tell_left_behind(out, workspace)
    return workspace


@command("log")
@click.option(
    "-n", "--count", "count", type=click.IntRange(min=1), help="Show at most N rows"
)
@session_option
@click.option("--all", "everything", is_flag=True, help="Cover the whole repository")
@click.option(
    "--imported", is_flag=True, help="Include imported conversations, by their time"
)
@click.option("--full", is_flag=True, help="Include checkpoints made during turns")
@click.option("--graph", is_flag=True, help="Draw the branches")
@click.option("--since", metavar="TIME", help="Only rows since then")
@click.option("--until", metavar="TIME", help="Only rows until then")
@click.option(
    "--grep", metavar="RE", help="Only rows whose note, prompt or reasons match"
)
@click.option(
    "-S",
    "--text",
    "text",
    metavar="TEXT",
    help="Only rows that added or removed a text in files",
)
@click.option("--agent", metavar="NAME", help="Only rows of one agent")
@click.argument("paths", metavar="[-- PATH...]", nargs=-1)
def log_command(
    out: Output,
    count: int | None,
    where: str | None,
    everything: bool,
    imported: bool,
    full: bool,
    graph: bool,
    since: str | None,
    until: str | None,
    grep: str | None,
    text: str | None,
    agent: str | None,
    paths: tuple[str, ...],
) -> int:
    """List what happened here, newest first.

    Each row is one turn of an agent, or a single checkpoint. It covers all sessions and
    clients that worked in this work tree. `[by hand]` marks changes that were there when a
    turn began. `+1 ~2 -3` counts the files that were added, modified and deleted; with a
    single PATH it is A, M or D. `inside #45` was saved during that turn, before one of its
    commands. `beside #47` marks a turn that ran at the same time as #47, by another agent;
    `~1?` is a file that either of them may have changed.
    """
    workspace = _opened(out)
    unreadable: list[str] = []
    # A graph shows all branches and every checkpoint, because its lines connect them.
    everything, full = everything or (graph and where is None), full or graph
    scope = _scope(workspace, where, everything=everything, imported=imported)
    found = find(workspace, scope, unreadable)
    filters = _filters(out, workspace, since, until, grep, text, agent, paths)
    rows = history.listing(workspace, found, filters, unreadable, full=full)
    if out.json:
        shown = list(islice(rows, count))
        out.document(_documents(workspace, found, shown, unreadable))
        return left_out(out, unreadable)
    # A search covers whole turns, and the whole repository.
    searched = filters != Filters() or everything or imported
    limit = count or (None if searched else _ROWS)
    page = LogPage(out, workspace, filters.paths, full=full)
    listed = list(islice(rows, limit))
    columns = _Graph()
    for each in listed:
        prefix = f"{columns.row(each.checkpoint)}  " if graph else ""
        page.row(each, prefix, headers=not graph)
    if listed and not searched:
        older = found.count_older(listed[-1].row.first.number, full=full)
        _tell_rest(out, len(listed), older, full=full)
    if not listed and not unreadable:
        _tell_empty(out, workspace, found, agent, everything=everything)
    tell_failed_push_once(out, workspace)
    return left_out(out, unreadable)


def _tell_rest(out: Output, shown: int, older: int, *, full: bool) -> None:
    if older:
        what = "checkpoint" if full else "turn"
        out.note(
            f"{count(older, f'older {what}')}: -n {shown + older}"
            " (--all: the whole repository)"
        )


def _tell_empty(
    out: Output,
    workspace: Workspace,
    found: Found,
    agent: str | None,
    *,
    everything: bool,
) -> None:
    from gitcp.cli.agent_lines import tell_other_names

    others = len(workspace.store.refs())
    if next(iter(found.entries), None) is not None:
        where_else = "" if everything else "; --all looks in the whole repository"
        out.note(f"no checkpoint here matches{where_else}")
        tell_other_names(out, agent)
    elif others:
        out.note(
            "nothing was saved in this work tree yet; `gitcp log --all` covers"
            " the whole repository"
        )
    else:
        out.note("no checkpoints yet; `gitcp save` makes one")
