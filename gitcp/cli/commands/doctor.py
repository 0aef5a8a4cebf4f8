"""`gitcp doctor`: prints what keeps gitcp from working here."""

from contextlib import suppress
from pathlib import Path

from gitcp.agents import resume
from gitcp.agents.health import AgentHealth, agents_health
from gitcp.cli import agent_lines
from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command
from gitcp.errors import GitcpError
from gitcp.githooks.health import git_hooks
from gitcp.maintenance.doctor import doctor
from gitcp.project.workspace import Workspace, open_workspace

_HINT = 15


@command("doctor")
def doctor_command(out: Output) -> int:
    """Look for anything that keeps gitcp from working here.

    For each coding agent it says whether hooks are installed, whether the program that
    they call is there, whether the agent trusts them, and when the last one ran. Exits
    with 1 if something is not well. Nothing is changed, except that what killed
    processes left is cleared away.
    """
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
        _line(out, check.name, safe(check.detail), ok=check.ok)
        if check.hint:
            out.print(f"{'':{_HINT}} {safe(check.hint)}")
    for one in agents:
        if one.installed:
            _line(out, one.name, agent_lines.detail(one), ok=not one.is_unprotected)
            agent_lines.problems(out, one, _HINT)
    absent = [one.name for one in agents if not one.installed]
    if absent:
        out.print(f"    {'no hooks':<11} {', '.join(absent)}")
    return 0 if ok else 1


def _agents(out: Output) -> list[AgentHealth]:
    workspace: Workspace | None = None
    # The checks have reported why there is none.
    with suppress(GitcpError):
        workspace = open_workspace(out.directory)
    top = workspace.top if workspace else None
    return agents_health(workspace, resume.place(top))


def _line(out: Output, name: str, detail: str, *, ok: bool) -> None:
    word, color = ("ok", "green") if ok else ("!!", "red")
    mark = out.style(word, fg=color, bold=not ok)
    out.print(f"{mark}  {name:<11} {detail}")
