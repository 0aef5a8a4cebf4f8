"""`gitcp rollback` and `undo`: restores the last checkpoint; undoes a restore."""

import click

from gitcp.checkpoints import restore_plan
from gitcp.checkpoints.restore_request import request_restore
from gitcp.checkpoints.selectors import select
from gitcp.cli.emit import Output
from gitcp.cli.options import command, trust_option, writer, yes_option
from gitcp.cli.restoring import carry_out, with_trust
from gitcp.cli.undoing import undo_request
from gitcp.errors import UsageError


@command("rollback")
@trust_option
@yes_option
def rollback_command(out: Output, trust: bool, yes: bool) -> None:
    """Go back to the last checkpoint (`restore last`)."""
    workspace = writer(out)
    workspace.refuse_if_interrupted()
    last = select(workspace, "last")
    request = request_restore(last, trust=with_trust(workspace, last, trust))
    plan = restore_plan.plan_restore(workspace, request)
    carry_out(out, workspace, request, plan, yes=yes)


@command("undo")
@click.option(
    "--effects", is_flag=True, help="Undo the effects of steps instead of a restore"
)
@click.option(
    "--to", "to", metavar="SEL", help="With --effects: undo back to this checkpoint"
)
@click.option(
    "--keep",
    multiple=True,
    metavar="NAME",
    help="With --effects: do not undo this step",
)
@click.option("--trust", is_flag=True, help="Also undo steps that were pulled")
@click.option("--dry-run", is_flag=True, help="Show what would change")
@click.option(
    "--force", is_flag=True, help="Also replace databases that another process has open"
)
@yes_option
def undo_command(
    out: Output,
    effects: bool,
    to: str | None,
    keep: tuple[str, ...],
    trust: bool,
    dry_run: bool,
    force: bool,
    yes: bool,
) -> None:
    """Undo the last restore.

    A second undo redoes the restore.

    With --effects it undoes the effects of durable steps since a checkpoint (the newest,
    or --to), newest first. It stops at a step that cannot be undone.
    """
    workspace = writer(out)
    workspace.refuse_if_interrupted()
    if effects:
        from gitcp.cli.commands.compensation import undo_effects

        undo_effects(
            out, workspace, to, keep=keep, trust=trust, yes=yes, dry_run=dry_run
        )
        return
    if to is not None or keep:
        raise UsageError(
            "--to and --keep require --effects",
            hint="`gitcp restore SEL` goes back to a checkpoint",
        )
    request = undo_request(workspace, trust=trust)._replace(force=force)
    # If no plan is shown, the plan is made only once, under the lock.
    shown = dry_run or not yes
    plan = restore_plan.plan_restore(workspace, request) if shown else None
    carry_out(out, workspace, request, plan, yes=yes, dry_run=dry_run)
