"""gitcp status."""

from gitcp.agents.bindings import Binding, latest_first
from gitcp.agents.resume import place
from gitcp.checkpoints.status import Status, status
from gitcp.cli import documents
from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command, reader
from gitcp.cli.render import change_lines, decision_line, headline
from gitcp.project.installers import Done, all_installed

_SHOWN = 20
_AGENTS = 5


@command("status")
def status_command(out: Output) -> None:
    """Show the current session, and what a save would add."""
    workspace = reader(out)
    found = status(workspace)
    installed = all_installed(place(workspace.top))
    # Those that grow a branch now; one that lost it has a say again when it is resumed.
    agents = [
        one
        for one in latest_first(workspace)
        if one.session is not None and one.superseded is None
    ][:_AGENTS]
    if out.json:
        out.document(
            {
                "schema": "gitcp.status/1",
                "session": found.current.session,
                "branch": found.current.branch,
                "checkpoint": documents.checkpoint(found.tip),
                "changed": len(found.changes),
                "changes": documents.changes(found.changes),
                "skipped": found.skipped,
                "pending": documents.decisions(found.pending),
                "interrupted": found.interrupted.target if found.interrupted else None,
                "installed": [done._asdict() for done in installed],
                "agents": [_agent(one) for one in agents],
            }
        )
        return
    _show(out, found)
    _show_agents(out, installed, agents)


def _agent(one: Binding) -> dict[str, str | None]:
    return {
        "agent": one.agent,
        "agent_session": one.agent_session,
        "session": one.session,
        "branch": one.branch,
    }


def _show_agents(out: Output, installed: list[Done], agents: list[Binding]) -> None:
    for one in agents:
        place = safe(f"{one.session}/{one.branch}")
        out.print(f"{one.agent} {safe(one.agent_session)} grows {place}")
    for done in installed:
        scope = f" ({done.scope})" if done.scope else ""
        out.print(f"Installed: {done.what}{scope} in {safe(done.path)}")
        for note in done.notes:
            out.print(out.style(f"  {safe(note)}", fg="red"))


def _show(out: Output, found: Status) -> None:
    if found.interrupted is not None:
        out.print(out.style("a restore was interrupted here", fg="red", bold=True))
        out.print("  `gitcp restore --continue` finishes it, `--abort` takes it back")
    place = safe(f"{found.current.session}/{found.current.branch}")
    if found.tip is None:
        out.print(f"On {out.style(place, fg='cyan')}, which has no checkpoint yet")
    else:
        out.print(f"On {headline(out, found.tip)}")
    if not found.changes:
        out.print("No file changed since" if found.tip else "There is no file to save")
    else:
        count = len(found.changes)
        files = "1 file" if count == 1 else f"{count:,} files"
        out.print(f"{files} changed since:" if found.tip else f"{files} to save:")
        for line in change_lines(out, found.changes[:_SHOWN]):
            out.print(line)
        if count > _SHOWN:
            out.print(f"  … and {count - _SHOWN:,} more")
    if found.skipped:
        out.print(f"{found.skipped:,} paths would not be captured")
    if found.pending:
        out.print("Waiting for the next save:")
        for entry in found.pending:
            out.print(decision_line(out, entry))
