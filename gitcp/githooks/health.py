"""Checks git's hooks for `gitcp doctor`."""

from gitcp.githooks import scripts
from gitcp.maintenance.doctor_check import DoctorCheck
from gitcp.project.workspace import Workspace


def git_hooks(workspace: Workspace) -> DoctorCheck:
    """Returns whether the installed hooks still run."""
    state = scripts.state(workspace.repository)
    if state is None:
        return DoctorCheck("git-hooks", ok=True, detail="not installed")
    problems = scripts.problems(workspace.repository)
    if not problems:
        return DoctorCheck("git-hooks", ok=True, detail=f"joined in {state.directory}")
    return DoctorCheck(
        "git-hooks",
        ok=False,
        detail="; ".join(problems),
        hint="run `gitcp install git-hooks` again",
    )
