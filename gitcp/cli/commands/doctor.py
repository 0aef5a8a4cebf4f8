"""`gitcp doctor`: prints the problems that keep gitcp from working here."""

from contextlib import suppress
from pathlib import Path

import click

from gitcp.agents import resume
from gitcp.agents.health import AgentHealth, agents_health
from gitcp.agents.hook_trial import try_hook
from gitcp.cli import agent_lines
from gitcp.cli.emit import Output, safe_line
from gitcp.cli.options import command
from gitcp.clients import registry
from gitcp.errors import GitcpError
from gitcp.githooks.health import git_hooks
from gitcp.maintenance.doctor import doctor
from gitcp.project.workspace import Workspace, open_workspace

_HINT = 15


@command("doctor")
@click.option(
    "--test",
    "tried",
    metavar="CLIENT",
    type=click.Choice(registry.NAMES),
    help="Run this client's hook in a temporary project",
)
def doctor_command(out: Output, tried: str | None) -> int:
    """Check for anything that keeps gitcp from working here.

    For each coding agent it shows whether hooks are installed, whether the program that
    they call exists, whether the agent trusts them, and when the last hook ran. Exits
    with 1 if it finds a problem. It changes nothing, except that it removes what killed
    processes left behind.

    With --test it checks one client only: it runs the command from the client's settings
    in a temporary repository, as the client would run it before a prompt.
    """
    if tried is not None:
        return _try(out, tried)
    checks = list(doctor(Path(out.directory), [git_hooks]))
    agents = _agents(out)
    ok = all(check.ok for check in checks)
    ok = ok and not any(one.is_unprotected for one in agents)
    if out.json:
        out.document(
            {
                "schema": "gitcp.doctor/1",
                "ok": ok,
                "checks": [check._asdict() for check in checks],
                "agents": [agent_lines.document(one) for one in agents],
            }
        )
        return 0 if ok else 1
    for check in checks:
        _line(out, check.name, safe_line(check.detail), ok=check.ok)
        if check.hint:
            out.print(f"{'':{_HINT}} {safe_line(check.hint)}")
    for one in agents:
        if one.installed:
            _line(out, one.name, agent_lines.detail(one), ok=not one.is_unprotected)
            agent_lines.problems(out, one, _HINT)
    absent = [one.name for one in agents if not one.installed]
    if absent:
        out.print(f"    {'no hooks':<11} {', '.join(absent)}")
    return 0 if ok else 1


def _try(out: Output, agent: str) -> int:
    """Fires a hook, and reports the result."""
    top = None
    with suppress(GitcpError):
        top = open_workspace(out.directory).top
    trial = try_hook(agent, resume.place(top))
    ok = trial.problem is None
    if out.json:
        out.document(
            {
                "schema": "gitcp.doctor-test/1",
                "ok": ok,
                "agent": trial.agent,
                "scope": trial.scope,
                "hook": trial.hook,
                "seconds": trial.seconds,
                "problem": trial.problem,
            }
        )
    else:
        made = f"hook {trial.hook} ({trial.scope}) made a checkpoint"
        detail = trial.problem or f"{made} in {trial.seconds:.2f} s"
        _line(out, trial.agent, safe_line(detail), ok=ok)
    return 0 if ok else 1


def _agents(out: Output) -> list[AgentHealth]:
    workspace: Workspace | None = None
    # The checks have reported why there is no workspace.
    with suppress(GitcpError):
        workspace = open_workspace(out.directory)
    top = workspace.top if workspace else None
    return agents_health(workspace, resume.place(top))


def _line(out: Output, name: str, detail: str, *, ok: bool) -> None:
    word, color = ("ok", "green") if ok else ("!!", "red")
    mark = out.style(word, fg=color, bold=not ok)
    out.print(f"{mark}  {name:<11} {detail}")
