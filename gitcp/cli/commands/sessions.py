"""`gitcp sessions`, `branches` and `switch`: lists them, and changes the current one."""

from typing import Any

import click

from gitcp.checkpoints import fork, restore_plan
from gitcp.checkpoints.branch_index import ListedBranch, listed
from gitcp.checkpoints.restore_request import request_restore
from gitcp.checkpoints.selectors import split
from gitcp.cli import documents
from gitcp.cli.emit import Output, one_line
from gitcp.cli.options import command, left_out, reader, trust_option, yes_option
from gitcp.cli.render import headline
from gitcp.cli.restoring import carry_out, with_trust
from gitcp.errors import NotFoundError
from gitcp.project.workspace import Current, open_workspace
from gitcp.store.store import require_tip


def _branch_document(branch: ListedBranch) -> dict[str, Any]:
    return {"name": branch.branch, "tip": branch.id, "seq": branch.seq}


def _by_session(branches: list[ListedBranch]) -> dict[str, list[ListedBranch]]:
    sessions: dict[str, list[ListedBranch]] = {}
    for branch in branches:
        sessions.setdefault(branch.session, []).append(branch)
    return sessions


def _table(out: Output, branches: list[ListedBranch], current: Current) -> None:
    # There may be ten thousand: printed at once, and nothing is done twice.
    names = [one_line(f"{branch.session}/{branch.branch}") for branch in branches]
    width = max(map(len, names), default=0)
    lines = []
    for name, branch in zip(names, branches, strict=True):
        is_current = (branch.session, branch.branch) == (
            current.session,
            current.branch,
        )
        shown = out.style(f"{name:<{width}}", fg="cyan") if out.color else name
        created = branch.created[:19].replace("T", " ")
        note = one_line(branch.note, 50) if branch.note else ""
        mark = "*" if is_current else " "
        line = f"{mark} {shown:<{width}}  {branch.seq:>6}  {created}  {note}"
        lines.append(line.rstrip())
    out.print("\n".join(lines))


@command("sessions")
def sessions_command(out: Output) -> int:
    """List sessions and their branches."""
    workspace = reader(out)
    unreadable: list[str] = []
    entries = listed(workspace.store, unreadable=unreadable.append)
    current = workspace.current()
    if out.json:
        out.document(
            {
                "schema": "gitcp.sessions/1",
                "sessions": [
                    {
                        "name": name,
                        "branches": list(map(_branch_document, branches)),
                        "current": name == current.session,
                    }
                    for name, branches in _by_session(entries).items()
                ],
                "unreadable": unreadable,
            }
        )
    elif entries:
        _table(out, entries, current)
    elif not unreadable:
        out.note("no sessions yet; `gitcp save` makes one")
    return left_out(out, unreadable)


@command("branches")
@click.option("-s", "--session", "name", metavar="SESSION", help="Of which session")
def branches_command(out: Output, name: str | None) -> int:
    """List the branches of a session."""
    workspace = reader(out)
    current = workspace.current()
    session = name or current.session
    unreadable: list[str] = []
    everything = listed(workspace.store, unreadable=unreadable.append)
    branches = [branch for branch in everything if branch.session == session]
    if not branches:
        left_out(out, unreadable)
        raise NotFoundError(
            f"there is no session {session!a}", hint="`gitcp sessions` lists them"
        )
    if out.json:
        out.document(
            {
                "schema": "gitcp.branches/1",
                "session": session,
                "branches": list(map(_branch_document, branches)),
                "current": current.branch if session == current.session else None,
                "unreadable": unreadable,
            }
        )
    else:
        _table(out, branches, current)
    return left_out(out, unreadable)


@command("switch")
@click.argument("where", metavar="SESSION[/BRANCH]")
@click.option("--restore", "bring", is_flag=True, help="Bring its files, too")
@trust_option
@yes_option
def switch_command(
    out: Output, where: str, bring: bool, trust: bool, yes: bool
) -> None:
    """Make a branch the current one; the files stay.

    They change only with --restore.
    """
    workspace = open_workspace(out.directory)
    session, branch = split(where, workspace.current())
    if "/" not in where:
        # Switching to the current branch is never what is meant.
        branch = "main"
    workspace.refuse_if_interrupted()
    if bring:
        target = require_tip(workspace.store, session, branch)
        request = request_restore(
            target,
            onto=Current(session, branch),
            trust=with_trust(workspace, target, trust),
        )
        plan = restore_plan.plan_restore(workspace, request)
        carry_out(out, workspace, request, plan, yes=yes)
        return
    tip = fork.switch(workspace, session, branch)
    if out.json:
        out.document(
            {"schema": "gitcp.switch/1", "checkpoint": documents.checkpoint(tip)}
        )
    else:
        out.print(f"Now on {headline(out, tip)}")
