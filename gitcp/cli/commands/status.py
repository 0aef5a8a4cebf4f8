"""`gitcp status`: prints the state of the work tree and of its branch."""

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
    state = status(workspace)
    installed = all_installed(place(workspace.top))
    # Those that grow a branch now; one that lost it has a say again when it is resumed.
    agents = [
        binding
        for binding in latest_first(workspace)
        if binding.session is not None and binding.superseded is None
    ][:_AGENTS]
    if out.json:
        out.document(
            {
                "schema": "gitcp.status/1",
                "session": state.current.session,
                "branch": state.current.branch,
                "checkpoint": documents.checkpoint(state.tip),
                "changed": len(state.changes),
                "changes": documents.changes(state.changes),
                "skipped": state.skipped,
                "pending": documents.decisions(state.pending),
                "interrupted": state.interrupted.target if state.interrupted else None,
                "installed": [done._asdict() for done in installed],
                "agents": [_agent(binding) for binding in agents],
            }
        )
        return
    _show(out, state)
    _show_agents(out, installed, agents)


def _agent(binding: Binding) -> dict[str, str | None]:
    return {
        "agent": binding.agent,
        "agent_session": binding.agent_session,
        "session": binding.session,
        "branch": binding.branch,
    }


def _show_agents(out: Output, installed: list[Done], agents: list[Binding]) -> None:
    for binding in agents:
        branch = safe(f"{binding.session}/{binding.branch}")
        out.print(f"{binding.agent} {safe(binding.agent_session)} grows {branch}")
    for done in installed:
        scope = f" ({done.scope})" if done.scope else ""
        out.print(f"Installed: {done.what}{scope} in {safe(done.path)}")
        for note in done.notes:
            out.print(out.style(f"  {safe(note)}", fg="red"))


def _show(out: Output, state: Status) -> None:
    if state.interrupted is not None:
        out.print(out.style("a restore was interrupted here", fg="red", bold=True))
        out.print("  `gitcp restore --continue` finishes it, `--abort` takes it back")
    branch = safe(f"{state.current.session}/{state.current.branch}")
    if state.tip is None:
        out.print(f"On {out.style(branch, fg='cyan')}, which has no checkpoint yet")
    else:
        out.print(f"On {headline(out, state.tip)}")
    if not state.changes:
        out.print("No file changed since" if state.tip else "There is no file to save")
    else:
        count = len(state.changes)
        files = "1 file" if count == 1 else f"{count:,} files"
        out.print(f"{files} changed since:" if state.tip else f"{files} to save:")
        for line in change_lines(out, state.changes[:_SHOWN]):
            out.print(line)
        if count > _SHOWN:
            out.print(f"  … and {count - _SHOWN:,} more")
    if state.skipped:
        out.print(f"{state.skipped:,} paths would not be captured")
    if state.pending:
        out.print("Waiting for the next save:")
        for entry in state.pending:
            out.print(decision_line(out, entry))
