"""gitcp sessions, branches, switch."""

from typing import Any

import click

from gitcp.cli import documents
from gitcp.cli.commands.restore import carry_out
from gitcp.cli.emit import Output, one_line, safe
from gitcp.cli.options import command, left_out, yes_option
from gitcp.cli.render import headline, when
from gitcp.errors import NotFoundError
from gitcp.ops import fork, planning
from gitcp.ops.fork import BranchInfo, SessionInfo
from gitcp.ops.select import split
from gitcp.ops.workspace import Current, open_workspace
from gitcp.store.store import require_tip


def _branch_document(branch: BranchInfo) -> dict[str, Any]:
    return {"name": branch.name, "tip": branch.tip.id, "seq": branch.tip.seq}


def _table(out: Output, found: list[SessionInfo], current: Current) -> None:
    names = [
        (f"{session.name}/{branch.name}", Current(session.name, branch.name), branch)
        for session in found
        for branch in session.branches
    ]
    width = max((len(one_line(name)) for name, _, _ in names), default=0)
    for name, place, branch in names:
        mark = "*" if place == current else " "
        shown = out.style(f"{safe(name):<{width}}", fg="cyan")
        note = one_line(branch.tip.note or "", 50)
        out.print(
            f"{mark} {shown}  {f'#{branch.tip.seq}':>6}  {when(branch.tip)}  {note}".rstrip()
        )


@command("sessions")
def sessions_command(out: Output) -> int:
    """List sessions and their branches."""
    workspace = open_workspace(out.directory)
    unreadable: list[str] = []
    found = fork.sessions(workspace.store, unreadable=unreadable.append)
    current = workspace.current()
    if out.json:
        out.document(
            {
                "schema": "gitcp.sessions/1",
                "sessions": [
                    {
                        "name": session.name,
                        "branches": list(map(_branch_document, session.branches)),
                        "current": session.name == current.session,
                    }
                    for session in found
                ],
                "unreadable": unreadable,
            }
        )
    elif found:
        _table(out, found, current)
    elif not unreadable:
        out.note("no sessions yet; `gitcp save` makes one")
    return left_out(out, unreadable)


@command("branches")
@click.option("-s", "name", metavar="SESSION", help="Of which session")
def branches_command(out: Output, name: str | None) -> int:
    """List the branches of a session."""
    workspace = open_workspace(out.directory)
    current = workspace.current()
    wanted = name or current.session
    unreadable: list[str] = []
    everything = fork.sessions(workspace.store, unreadable=unreadable.append)
    found = [one for one in everything if one.name == wanted]
    if not found:
        left_out(out, unreadable)
        raise NotFoundError(
            f"there is no session {wanted!a}", hint="`gitcp sessions` lists them"
        )
    if out.json:
        out.document(
            {
                "schema": "gitcp.branches/1",
                "session": wanted,
                "branches": list(map(_branch_document, found[0].branches)),
                "current": current.branch if wanted == current.session else None,
                "unreadable": unreadable,
            }
        )
    else:
        _table(out, found, current)
    return left_out(out, unreadable)


@command("switch")
@click.argument("where", metavar="SESSION[/BRANCH]")
@click.option("--restore", "bring", is_flag=True, help="Bring its files, too")
@yes_option
def switch_command(out: Output, where: str, bring: bool, yes: bool) -> None:
    """Make a branch the current one; files change only with --restore."""
    workspace = open_workspace(out.directory)
    session, branch = split(where, workspace.current())
    if "/" not in where:
        # Going where one is already is what nobody means.
        branch = "main"
    workspace.refuse_if_interrupted()
    if bring:
        target = require_tip(workspace.store, session, branch)
        wanted = planning.plan_restore(workspace, target, onto=Current(session, branch))
        carry_out(out, workspace, wanted, yes=yes)
        return
    tip = fork.switch(workspace, session, branch)
    if out.json:
        out.document(
            {"schema": "gitcp.switch/1", "checkpoint": documents.checkpoint(tip)}
        )
    else:
        out.print(f"Now on {headline(out, tip)}")
