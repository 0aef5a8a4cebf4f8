"""`gitcp sessions`, `branches` and `switch`: lists them, and changes the current one."""

from typing import Any

import click

from gitcp.checkpoints import fork, restore_plan
from gitcp.checkpoints.branch_index import ListedBranch, listed
from gitcp.checkpoints.in_session import named
from gitcp.checkpoints.own_notes import note_of_tip
from gitcp.checkpoints.restore_request import request_restore
from gitcp.cli import documents, layout
from gitcp.cli.emit import Output, one_line
from gitcp.cli.layout import age, cells, fit
from gitcp.cli.options import (
    command,
    left_out,
    reader,
    trust_option,
    writer,
    yes_option,
)
from gitcp.cli.render import headline, title_of
from gitcp.cli.restoring import carry_out, with_trust
from gitcp.errors import UsageError
from gitcp.project.workspace import MAIN, Current, Workspace


def _branch_document(branch: ListedBranch) -> dict[str, Any]:
    return {"name": branch.branch, "tip": branch.id, "seq": branch.seq}


def _by_session(branches: list[ListedBranch]) -> dict[str, list[ListedBranch]]:
    sessions: dict[str, list[ListedBranch]] = {}
    for branch in branches:
        sessions.setdefault(branch.session, []).append(branch)
    return sessions


def _table(
    out: Output,
    workspace: Workspace,
    branches: list[ListedBranch],
    *,
    whole_names: bool = False,
) -> None:
    """Prints a line for each branch: its name for `-s`, its age, its subject."""
    # There may be ten thousand branches, so print all lines at once.
    names = [
        one_line(
            branch.session
            if branch.branch == MAIN and not whole_names
            else f"{branch.session}/{branch.branch}"
        )
        for branch in branches
    ]
    width = max(map(len, names), default=0)
    columns = layout.width()
    current = workspace.current()
    own = (current.session, current.branch)
    lines = []
    for name, branch in zip(names, branches, strict=True):
        is_current = (branch.session, branch.branch) == own
        shown = out.style(f"{name:<{width}}", fg="cyan") if out.color else name
        left = (
            f"{'*' if is_current else ' '} {{:<{width}}}  {age(branch.created):>10}  "
        )
        room = columns - cells(left.format("")) if columns else None
        about = fit(_about(workspace, branch), max(1, room) if room else None)
        lines.append(f"{left.format(shown)}{about}".rstrip())
    out.print("\n".join(lines), whole=True)


def _about(workspace: Workspace, branch: ListedBranch) -> str:
    """Returns a branch's subject: the client and prompt, or else its newest note."""
    if branch.agent:
        asked = f' · "{one_line(branch.asked)}"' if branch.asked else ""
        return f"{title_of(branch.agent)}{asked}"
    return one_line(note_of_tip(workspace.store, branch))


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
        newest = sorted(entries, key=lambda one: one.created, reverse=True)
        _table(out, workspace, newest)
    elif not unreadable:
        out.note("no sessions yet; `gitcp save` makes one")
    return left_out(out, unreadable)


@command("branches")
@click.argument("session", metavar="[SESSION]", required=False)
@click.option("-s", "--session", "name", metavar="SESSION", help="The session to list")
def branches_command(out: Output, session: str | None, name: str | None) -> int:
    """List the branches of a session.

    Without SESSION it lists those of the session that your own saves go to.
    """
    if session is not None and name is not None:
        raise UsageError("SESSION and -s mean the same", hint="drop one of them")
    workspace = reader(out)
    current = workspace.current()
    asked = session or name
    chosen = named(workspace, asked).session if asked else current.session
    unreadable: list[str] = []
    everything = listed(workspace.store, unreadable=unreadable.append)
    branches = [branch for branch in everything if branch.session == chosen]
    if out.json:
        out.document(
            {
                "schema": "gitcp.branches/1",
                "session": chosen,
                "branches": list(map(_branch_document, branches)),
                "current": current.branch if chosen == current.session else None,
                "unreadable": unreadable,
            }
        )
    elif branches:
        _table(out, workspace, branches, whole_names=True)
    elif not unreadable:
        out.note(
            f"your own saves go to {one_line(chosen)}, where nothing was saved"
            " yet; `gitcp sessions` lists the other sessions"
        )
    return left_out(out, unreadable)


@command("switch")
@click.argument("where", metavar="SESSION[/BRANCH]")
@click.option("--restore", "bring", is_flag=True, help="Also restore its files")
@trust_option
@yes_option
def switch_command(
    out: Output, where: str, bring: bool, trust: bool, yes: bool
) -> None:
    """Make a branch the current one, without changing files.

    Your own saves then go to that branch. With --restore its files are restored, too.
    """
    workspace = writer(out)
    place = workspace.current().named(where)
    if "/" not in where:
        # A user never means to switch to the current branch.
        place = Current(place.session, MAIN)
    workspace.refuse_if_interrupted()
    if bring:
        target = workspace.store.require_tip(place.session, place.branch)
        request = request_restore(
            target,
            onto=place,
            trust=with_trust(workspace, target, trust),
        )
        plan = restore_plan.plan_restore(workspace, request)
        carry_out(out, workspace, request, plan, yes=yes)
        return
    tip = fork.switch(workspace, place.session, place.branch)
    if out.json:
        out.document(
            {"schema": "gitcp.switch/1", "checkpoint": documents.checkpoint(tip)}
        )
    else:
        out.print(f"Now on {headline(out, tip)}")
