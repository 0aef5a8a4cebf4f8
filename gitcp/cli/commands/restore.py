"""`gitcp restore`: restores the files and the conversation of a checkpoint."""

import click

from gitcp import Checkpoint
from gitcp.agents import resume
from gitcp.checkpoints import export_files, finish_restore, restore_plan
from gitcp.checkpoints.open_restore import under_way
from gitcp.checkpoints.restore_request import RestoreRequest, request_restore
from gitcp.checkpoints.selectors import select
from gitcp.cli.commands.ui import at_terminal, can_pick, run_picker
from gitcp.cli.emit import Output, path_line, safe_path
from gitcp.cli.options import (
    command,
    path_inside,
    reader,
    trust_option,
    writer,
    yes_option,
)
from gitcp.cli.plan_lines import not_captured, step_lines
from gitcp.cli.render import (
    count,
    headline,
    provenance,
)
from gitcp.cli.restoring import (
    carry_out,
    document,
    refuse_withheld,
    report,
    say_left,
    stoppable,
    with_trust,
    written_back,
)
from gitcp.errors import UsageError
from gitcp.project.workspace import Workspace
from gitcp.trust.withheld import Bounds
from gitcp.worktree.plan import FilePlan


@command("restore")
@click.argument("selector", metavar="SEL", required=False)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--files", is_flag=True, help="Restore the files only")
@click.option("--conversation", is_flag=True, help="Restore the conversation only")
@click.option("--dry-run", is_flag=True, help="Show what would change")
@click.option(
    "--to",
    "directory",
    metavar="DIR",
    help="Write the files into an empty directory instead",
)
@click.option(
    "--agent", metavar="NAME", help="Require the conversation to be of this client"
)
@trust_option
@click.option("--continue", "go_on", is_flag=True, help="Finish an interrupted restore")
@click.option("--abort", is_flag=True, help="Undo an interrupted restore")
@click.option(
    "--replay",
    is_flag=True,
    help="Keep the results of later steps that reached outside the project",
)
@click.option(
    "--force", is_flag=True, help="Also replace databases that another process has open"
)
@yes_option
def restore_command(
    out: Output,
    selector: str | None,
    paths: tuple[str, ...],
    files: bool,
    conversation: bool,
    dry_run: bool,
    directory: str | None,
    agent: str | None,
    trust: bool,
    go_on: bool,
    abort: bool,
    replay: bool,
    force: bool,
    yes: bool,
) -> None:
    """Restore files and conversation from a checkpoint.

    Without SEL, at a terminal, it lets you choose a turn (`gitcp ui`). It saves the present
    state first; `gitcp undo` brings that back. It never overwrites or deletes files that no
    checkpoint holds. If other files change while it asks, it shows them and asks again. It
    writes an agent's conversation to where the client looks for it, under a new id, and
    prints the command that resumes it.

    From a pulled checkpoint it does not restore files that tools execute by themselves,
    links that lead outside the project, or the client's conversation, unless you give
    --trust.
    """
    looks = dry_run or directory is not None
    plain = not (dry_run or conversation or agent or go_on or abort)
    if plain and _write_bare(out, selector, directory, paths, trust=trust):
        return
    workspace = reader(out) if looks else writer(out)
    if go_on or abort:
        alone = not (selector or looks or (go_on and abort))
        _end_interrupted(out, workspace, go_on=go_on, alone=alone)
        return
    files, conversation = files and not conversation, conversation and not files
    _check_options(paths, directory, conversation=conversation)
    asks, bare = not (looks or yes), plain and not (files or trust or replay or force)
    if (target := _chosen(out, workspace, selector, asks=asks, bare=bare)) is None:
        return
    trust = with_trust(workspace, target, trust)
    _check_agent(
        target, agent, only_files=bool(files or paths) or directory is not None
    )
    inside = [path_inside(out, workspace.top, path) for path in paths]
    if directory is not None:
        _export(out, workspace, target, directory, inside, dry_run=dry_run, trust=trust)
        return
    workspace.refuse_if_interrupted()
    request = request_restore(
        target,
        paths=inside,
        files=not conversation,
        conversation=not files,
        trust=trust,
        replay=replay,
    )._replace(force=force)
    _restore_here(out, workspace, request, yes=yes, dry_run=dry_run)


def _restore_here(
    out: Output,
    workspace: Workspace,
    request: RestoreRequest,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    # If no plan is shown, the plan is made only once, under the lock.
    shown = dry_run or not yes
    plan = restore_plan.plan_restore(workspace, request) if shown else None
    carry_out(out, workspace, request, plan, yes=yes, dry_run=dry_run)


def _chosen(
    out: Output, workspace: Workspace, selector: str | None, *, asks: bool, bare: bool
) -> Checkpoint | None:
    """Returns the checkpoint to restore; None if the picker has done all the work.

    With `asks` a user at a terminal may choose: in the picker only if the command is `bare`,
    because the picker does not know options.

    Raises:
        UsageError: no checkpoint was named, and there is no terminal to ask at.
    """
    if selector is not None:
        return select(workspace, selector)
    if not (asks and at_terminal(out)):
        raise UsageError(
            "no checkpoint was given",
            hint="`gitcp log` lists them; `gitcp restore last` restores the newest",
        )
    if bare and can_pick():
        run_picker(out)
        return None
    from gitcp.cli.turn_list import ask_which

    workspace.refuse_if_interrupted()
    return ask_which(out, workspace)


def _check_options(
    paths: tuple[str, ...],
    directory: str | None,
    *,
    conversation: bool,
) -> None:
    if paths and conversation:
        raise UsageError(
            "--conversation cannot be combined with paths", hint="drop one of them"
        )
    if directory is not None and conversation:
        raise UsageError(
            "--conversation cannot be combined with --to",
            hint="`gitcp messages SEL -o FILE` writes the conversation",
        )


def _check_agent(target: Checkpoint, agent: str | None, *, only_files: bool) -> None:
    if agent is not None and only_files:
        raise UsageError(
            "--agent has no effect when only files are restored",
            hint="remove --agent",
        )
    resume.check_agent(target, agent)


def _export(
    out: Output,
    workspace: Workspace,
    target: Checkpoint,
    directory: str,
    paths: list[bytes],
    *,
    dry_run: bool,
    trust: bool,
) -> None:
    """Writes a checkpoint's files into another directory, or shows what it would write."""
    bounds = restore_plan.bounds_for(workspace, target, trust=trust)
    if dry_run:
        steps = export_files.plan_whole(target, paths, bounds=bounds, trust=trust)
        _show_whole(out, target, directory, steps)
    else:
        _write_to(out, target, directory, paths, bounds, trust=trust)


def _end_interrupted(
    out: Output, workspace: Workspace, *, go_on: bool, alone: bool
) -> None:
    if not alone:
        raise UsageError(
            "--continue and --abort take no other arguments",
            hint="drop the other arguments",
        )
    entry = under_way(workspace)
    if go_on:
        with stoppable():
            done = finish_restore.resume(workspace)
        conversation = entry is not None and entry.conversation
        trust = entry is not None and entry.trust
        with written_back(
            workspace, done.checkpoint, conversation, trust=trust
        ) as handed:
            report(out, workspace, None, done, handed)
        refuse_withheld(done.left)
        return
    with stoppable():
        back = finish_restore.abort(workspace)
    if out.json:
        out.document(document(back, None, FilePlan((), ()), []))
    elif entry is not None and entry.checkpoint == back.id:
        out.print(
            f"The restore was already complete: {headline(out, back)}; `gitcp"
            " undo` undoes it"
        )
    else:
        out.print(f"Undid the restore; the files are those of {headline(out, back)}")


def _write_bare(
    out: Output,
    selector: str | None,
    directory: str | None,
    paths: tuple[str, ...],
    *,
    trust: bool,
) -> bool:
    """Writes the files of a commit from a repository with any damage, as a last resort.

    Returns False if no directory is given, or the selector is not a commit made here.
    """
    if selector is None or directory is None:
        return False
    from gitcp.checkpoints import bare_commit

    commit = bare_commit.find(out.directory, selector)
    if commit is None or not (trust or commit.checkpoint.origin.files is None):
        return False
    inside = [path_inside(out, commit.top, path) for path in paths]
    _write_to(out, commit.checkpoint, directory, inside, Bounds(), trust=trust)
    return True


def _show_whole(
    out: Output, target: Checkpoint, directory: str, steps: FilePlan
) -> None:
    if out.json:
        left = [*steps.left, *not_captured(target)]
        out.document(document(None, None, steps, left))
        return
    import shlex

    out.print(f"Write {headline(out, target)} to {safe_path(shlex.quote(directory))}")
    for line in provenance(out, target):
        out.print(line)
    for line in step_lines(out, steps.steps):
        out.print(line)
    for item in steps.left:
        out.print(f"  {'left':<6} {path_line(item.path, item.reason)}")


def _write_to(
    out: Output,
    target: Checkpoint,
    directory: str,
    paths: list[bytes],
    bounds: Bounds,
    *,
    trust: bool,
) -> None:
    with export_files.made(out.directory, directory) as root:
        steps = export_files.write_to(target, root, paths, bounds=bounds, trust=trust)
    if out.json:
        left = [*steps.left, *not_captured(target)]
        out.document(document(target, None, steps, left))
    else:
        import shlex

        out.print(
            f"Wrote {count(len(steps.steps), 'path')} of {headline(out, target)}"
            f" to {safe_path(shlex.quote(directory))}"
        )
        for line in provenance(out, target):
            out.print(line)
        say_left(out, list(steps.left))
    refuse_withheld(steps.left)
