"""Carries out the action chosen in the picker, through the functions of the commands."""

from gitcp.checkpoints import fork
from gitcp.checkpoints.selectors import select
from gitcp.cli.emit import Output
from gitcp.cli.forking import fork_at_present, fork_into_worktree
from gitcp.cli.options import reading_in
from gitcp.cli.picker.choice import Choice
from gitcp.cli.picker.plans import Planned
from gitcp.cli.restoring import Handed, carry_out_agreed, with_trust
from gitcp.project.workspace import open_workspace


def perform(out: Output, choice: Choice) -> Handed | None:
    """Carries out the chosen action; returns how the conversation continues, if it does.

    Raises:
        GitcpError: as by the command for the same action.
    """
    if choice.into is not None:
        workspace = open_workspace(out.directory)
        workspace.refuse_if_interrupted()
        start = select(workspace, choice.into.number)
        trust = with_trust(workspace, start, trust=False)
        return fork_into_worktree(
            out,
            workspace,
            start,
            choice.into.name,
            choice.into.directory,
            trust=trust,
        )
    if choice.page is not None:
        from gitcp.cli.commands.view import write_page

        workspace = open_workspace(out.directory, bare=out.directory != ".")
        with reading_in(workspace):
            write_page(out, workspace, choice.page)
    if choice.planned is not None:
        return _carry_out(out, choice.planned)
    return None


def _carry_out(out: Output, planned: Planned) -> Handed:
    workspace, plan = planned.workspace, planned.plan
    name = planned.wanted.name
    if name is not None and fork.at_present(plan):
        target = planned.request.target
        return fork_at_present(
            out, workspace, target, name, trust=planned.request.trust
        )
    return carry_out_agreed(out, workspace, planned.request, plan).handed
