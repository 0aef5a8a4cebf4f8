"""`gitcp fork`: begins a branch at a checkpoint."""

import click

from gitcp.checkpoints import fork as ops
from gitcp.checkpoints.selectors import select
from gitcp.cli.emit import Output
from gitcp.cli.forking import fork_at_present, fork_into_worktree, print_fork
from gitcp.cli.options import command, trust_option, writer, yes_option
from gitcp.cli.restoring import Handed, carry_out, with_trust
from gitcp.errors import UsageError
from gitcp.names import check_typed, quoted


@command("fork")
@click.argument("arguments", metavar="[SEL] NAME", nargs=-1, required=True)
@click.option("--worktree", metavar="DIR", help="Fork into a new git work tree")
@click.option("--no-switch", is_flag=True, help="Only create the branch")
@trust_option
@yes_option
def fork_command(
    out: Output,
    arguments: tuple[str, ...],
    worktree: str | None,
    no_switch: bool,
    trust: bool,
    yes: bool,
) -> None:
    """Start a new, named branch at a checkpoint."""
    if len(arguments) > 2:  # noqa: PLR2004  SEL and NAME
        raise UsageError(
            "fork requires SEL and NAME",
            hint="for instance `gitcp fork 3 try-other-way`",
        )
    if len(arguments) == 1 and arguments[0].isdecimal():
        raise UsageError(
            "a branch needs a name that is not a number",
            hint=f"to fork from #{arguments[0]}, run `gitcp fork {quoted(arguments[0])} NAME`",
        )
    name = check_typed(arguments[-1], "branch")
    workspace = writer(out)
    workspace.refuse_if_interrupted()
    start = select(workspace, arguments[0] if len(arguments) > 1 else None)
    trust = with_trust(workspace, start, trust)
    if worktree is not None:
        fork_into_worktree(out, workspace, start, name, worktree, trust=trust)
        return
    if no_switch:
        print_fork(out, ops.fork_only(workspace.store, start, name), None, Handed())
        return
    plan = ops.plan_fork(workspace, start, name, trust=trust)
    if ops.at_present(plan):
        fork_at_present(out, workspace, start, name, trust=trust)
        return
    carry_out(out, workspace, plan.request, plan, yes=yes)
