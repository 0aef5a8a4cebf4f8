"""`gitcp status`: prints the state of the work tree and of its branch."""

from contextlib import suppress

from gitcp.agents import resume
from gitcp.agents.bindings import Binding, latest_first
from gitcp.agents.health import agents_health, unprotected
from gitcp.checkpoints.own_notes import note_of
from gitcp.checkpoints.status import Status, status
from gitcp.cli import agent_lines, documents
from gitcp.cli.emit import Output, one_line, safe, safe_line, safe_path
from gitcp.cli.layout import age, fit, width
from gitcp.cli.options import command, reader, session_option, verbose_option
from gitcp.cli.render import (
    SIGNS,
    change_lines,
    count,
    decision_line,
    title_of,
)
from gitcp.cli.size_warning import tell_if_large
from gitcp.cli.spooling import documents as documents_of_unsent
from gitcp.cli.spooling import tell_unsent
from gitcp.cli.unshared import tell_failed_push
from gitcp.errors import GitcpError
from gitcp.maintenance import upkeep
from gitcp.project.installers import Done, all_installed
from gitcp.project.workspace import MAIN, Workspace, may_have_been_private

_SHOWN = 20
_AGENTS = 5


@command("status")
@session_option
@verbose_option
def status_command(out: Output, where: str | None) -> None:
    """Show where you are, and what a save would add.

    With `-s` it compares files with the newest checkpoint of one session. With `-v` it also
    lists every changed file, and shows for each agent whether its hooks run and when one
    last did.
    """
    workspace = reader(out)
    state = status(workspace, where)
    installed = all_installed(resume.place(workspace.top), workspace.repository)
    only = None if where is None or state.tip is None else state.tip.session
    agents = _at_work(workspace, only)
    if out.json:
        shown = state.current if where is None or state.tip is None else state.tip
        out.document(
            {
                "schema": "gitcp.status/1",
                "session": shown.session,
                "branch": shown.branch,
                "checkpoint": documents.checkpoint(state.tip),
                "changed": len(state.changes),
                "changes": documents.changes(state.changes),
                "skipped": state.skipped,
                "pending": documents.decisions(state.pending),
                "interrupted": state.interrupted.target if state.interrupted else None,
                "installed": [done._asdict() for done in installed],
                "agents": [_agent(binding) for binding in agents],
                "clients": [
                    agent_lines.document(one)
                    for one in agents_health(workspace, resume.place(workspace.top))
                    if one.installed
                ],
                "hooks_off": workspace.settings.hooks_off,
                "private_store": workspace.private_store,
                "left_behind": _left_behind(workspace),
                "size": _size(workspace),
                "unsent": documents_of_unsent(workspace),
            }
        )
        return
    _show(out, state)
    if out.verbose:
        _show_more(out, state)
        _show_agents(out, installed, agents)
        for one in agents_health(workspace, resume.place(workspace.top)):
            if one.installed:
                out.print(f"{one.name}: {agent_lines.detail(one)}")
                agent_lines.problems(out, one, 1)
    if installed and (off := workspace.settings.hooks_off):
        out.print(f"Agents' hooks make no checkpoints here: {off}")
    for warning in unprotected(workspace):
        out.warn(warning)
    _show_folder(out, workspace)
    tell_failed_push(out, workspace)
    tell_unsent(out, workspace)
    tell_if_large(out, workspace)


def _show_folder(out: Output, workspace: Workspace) -> None:
    if workspace.private_store is not None:
        out.print(
            f"A folder without git; its private store is {workspace.private_store}"
        )
    elif may_have_been_private(workspace):
        from gitcp.cli.private_folder import tell_left_behind

        tell_left_behind(out, workspace)


def _size(workspace: Workspace) -> dict[str, int | bool]:
    found = upkeep.size(workspace)
    return {"bytes": found.used, "limit": found.limit, "over": found.over}


def _at_work(workspace: Workspace, session: str | None) -> list[Binding]:
    """Returns the agents that append to a branch now, or to one of a session."""
    return [
        binding
        for binding in latest_first(workspace)
        if binding.session is not None
        and binding.superseded is None
        and session in {None, binding.session}
    ][:_AGENTS]


def _left_behind(workspace: Workspace) -> str | None:
    """Returns the name of the private store that `gitcp adopt` would move here."""
    with suppress(GitcpError):
        if may_have_been_private(workspace):
            from gitcp.project import folders

            found = folders.left_behind(workspace, workspace.top)
            return found.store if found is not None else None
    return None


def _agent(binding: Binding) -> dict[str, str | None]:
    return {
        "agent": binding.agent,
        "agent_session": binding.agent_session,
        "session": binding.session,
        "branch": binding.branch,
    }


def _show_agents(out: Output, installed: list[Done], agents: list[Binding]) -> None:
    for binding in agents:
        branch = safe_line(f"{binding.session}/{binding.branch}")
        out.print(f"{binding.agent} {safe(binding.agent_session)} saves to {branch}")
    for done in installed:
        scope = f" ({done.scope})" if done.scope else ""
        out.print(f"Installed: {done.what}{scope} in {safe(done.path)}")
        for note in done.notes:
            out.print(out.style(f"  {safe(note)}", fg="red"))


def _show(out: Output, state: Status) -> None:
    """Prints in three lines where the work tree is; more lines only if there is a problem."""
    if state.interrupted is not None:
        out.print(out.style("A restore was interrupted here.", fg="red", bold=True))
        out.print("  `gitcp restore --continue` finishes it, `--abort` undoes it")
    if state.missed is not None:
        out.warn(
            f"the watcher of core.fsmonitor missed a change of {state.missed!a}: each save"
            " compares every file (`gitcp doctor`)"
        )
    out.print(_where(out, state))
    out.print(_what(state))
    current = state.current
    branch = "" if current.branch == MAIN else f"/{current.branch}"
    line = f"Your own saves go to {safe(f'{current.session}{branch}')}"
    if state.pending:
        waiting = count(len(state.pending), "reason")
        line += (
            f"; {waiting} wait{('s' if len(state.pending) == 1 else '')} for the next"
            " one"
        )
    out.print(line)
    if state.skipped:
        out.print(f"{count(state.skipped, 'path')} would not be captured")


def _where(out: Output, state: Status) -> str:
    tip = state.tip
    if tip is None:
        return "Nothing was saved here yet: `gitcp save`"
    name = f"#{tip.number}" if tip.number else tip.id
    held = tip.manifest.conversation
    about = [age(tip.manifest.created)]
    if held is not None and held.agent_session is not None:
        about.append(title_of(held.kind))
    behind = f" ({', '.join(about)})"
    room = width()
    left = None if room is None else room - len(f"At {name} ") - len(behind)
    note = fit(one_line(note_of(tip) or f"[{tip.trigger}]"), left)
    return f"At {out.style(name, fg='cyan', bold=True)} {note}{behind}"


def _what(state: Status) -> str:
    if not state.changes:
        return "No changes since" if state.tip else "There is no file to save"
    names = [
        f"{SIGNS[change.status]} {safe_path(change.path)}"
        for change in state.changes[:_SHOWN]
    ]
    files = (
        f"{count(len(state.changes), 'file')} {'changed' if state.tip else 'to save'}"
    )
    line = f"{files}: {', '.join(names)}"
    if len(state.changes) > _SHOWN:
        line += ", …"
    return fit(line, width())


def _show_more(out: Output, state: Status) -> None:
    """Prints what `-v` adds: every changed file, and the pending reasons."""
    for line in change_lines(out, state.changes):
        out.print(line)
    for entry in state.pending:
        out.print(decision_line(out, entry))
