"""gitcp restore, rollback, undo."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from gitcp.cli import documents
from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command, path_inside, reader, yes_option
from gitcp.cli.render import (
    count,
    headline,
    name_of,
    prompt_plan,
    step_line,
    whence,
)
from gitcp.errors import GitcpError, PartialError, UsageError
from gitcp.format.checkpoint import show_path
from gitcp.ops import extract, planning
from gitcp.ops import restore as ops
from gitcp.ops.agents import resume
from gitcp.ops.agents.resume import Resumption
from gitcp.ops.book import show_call
from gitcp.ops.effects import Behind
from gitcp.ops.planning import Plan
from gitcp.ops.restore import Restored
from gitcp.ops.select import select
from gitcp.ops.workspace import Workspace, open_workspace
from gitcp.sharing.executed import EXECUTED, OUTSIDE
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree import journal
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, Left


def document(
    target: Checkpoint | None,
    saved: Checkpoint | None,
    steps: FilePlan,
    left: list[Left],
    resume: str | None = None,
    behind: Behind = Behind(),  # noqa: B008  a value
) -> dict[str, Any]:
    """Returns the JSON document of a restore."""
    return {
        "schema": "gitcp.restore/1",
        "checkpoint": documents.checkpoint(target),
        "saved": documents.checkpoint(saved),
        "plan": documents.steps(steps),
        "left": documents.left(left),
        "resume": resume,
        "behind": [
            {"id": one.id, "name": one.name, "effect": one.effect, "state": one.state}
            for one in (*behind.outside, *behind.inside)
        ],
    }


_SINCE = 5
_HELD = frozenset({EXECUTED, OUTSIDE})


def _not_captured(target: Checkpoint) -> list[Left]:
    return [Left(path, f"not in it: {reason}") for path, reason in target.skipped()]


def _describe(out: Output, wanted: Plan) -> list[str]:
    lines = [f"Restore {headline(out, wanted.target)}", *whence(out, wanted.target)]
    what = []
    if wanted.files:
        what.append(f"{count(len(wanted.steps.steps), 'change')} to files")
    if wanted.conversation:
        said = wanted.target.manifest.conversation
        what.append(f"conversation of {count(said.messages if said else 0, 'message')}")
    lines.append(f"  {', '.join(what)}")
    lines += [step_line(out, step) for step in wanted.steps.steps]
    held = [left for left in wanted.steps.left if left.reason in _HELD]
    if held:
        lines.append(
            f"  {count(len(held), 'path')} not brought from elsewhere unasked"
            " (--trust brings them):"
        )
        lines += [
            f"  {'held':<6} {safe(show_path(left.path))} ({left.reason})"
            for left in held
        ]
    others = [left for left in wanted.steps.left if left.reason not in _HELD]
    for left in (*others, *_not_captured(wanted.target)):
        lines.append(
            f"  {'left':<6} {safe(show_path(left.path))} ({safe(left.reason)})"
        )
    for left in wanted.obstacles:
        lines.append(f"  {'stops':<6} {safe(show_path(left.path))} ({left.reason})")
    for tip in wanted.since[:_SINCE]:
        lines.append(f"  since  {headline(out, tip)} was saved by another session")
    for call in wanted.behind.outside:
        lines.append(
            f"  stays  step {safe(show_call(call))} ({call.effect}, {call.state}"
            f" {call.intent.at[:19].replace('T', ' ')}): not taken back"
        )
    for call in wanted.behind.inside[:_SINCE]:
        lines.append(f"  again  step {safe(show_call(call))} runs anew when called")
    if len(wanted.behind.inside) > _SINCE:
        lines.append(f"  again  and {len(wanted.behind.inside) - _SINCE} more steps")
    if wanted.operation:
        lines.append(f"  a {wanted.operation} is under way: git's state stays as it is")
    return lines


def carry_out(
    out: Output, workspace: Workspace, wanted: Plan, *, yes: bool, dry_run: bool = False
) -> Restored | None:
    """Shows a plan, asks, restores, and says what was done; None for a dry run."""
    if dry_run:
        if out.json:
            left = [
                *wanted.steps.left,
                *wanted.obstacles,
                *_not_captured(wanted.target),
            ]
            out.document(document(None, None, wanted.steps, left, behind=wanted.behind))
        else:
            for line in _describe(out, wanted):
                out.print(line)
        return None
    if not yes:
        prompt_plan(out, _describe(out, wanted))
    question = "Go on? What is there now is saved first."
    if wanted.behind.outside and not wanted.replay:
        names = ", ".join(
            safe(show_call(one)) for one in wanted.behind.outside[:_SINCE]
        )
        question = (
            f"What {names} did stays done, and its recorded result is given when it is"
            f" called again. To run it again, fork instead. {question}"
        )
    out.confirm(question, yes=yes)
    # Whoever was asked has seen it; a script has to say it.
    done = ops.restore(workspace, wanted if yes else wanted._replace(replay=True))
    with written_back(workspace, done.checkpoint, wanted.conversation) as resumption:
        _report(out, wanted.target, done, resumption, wanted.behind)
    return done


@contextmanager
def written_back(
    workspace: Workspace, made: Checkpoint, conversation: bool = True
) -> Iterator[Resumption | None]:
    """Writes the conversation back for its client, lets the caller report, then fails.

    The restore is done by then: that it was is told in any case.

    Raises:
        PartialError: the conversation could not be written.
    """
    resumption, failure = None, None
    if conversation:
        try:
            resumption = resume.write_back(workspace, made)
        except GitcpError as exc:
            failure = exc
    yield resumption
    if failure is not None:
        raise PartialError(
            f"the conversation could not be handed back: {failure.message}",
            left=["the conversation"],
            hint=f"`gitcp messages {made.id} -o FILE` writes it",
        )


def resume_line(out: Output, resumption: Resumption | None) -> None:
    """Prints how to go on with the conversation."""
    if resumption is not None:
        out.print("  the conversation goes on with:")
        out.print(f"    {safe(resumption.shown(out.directory))}")


def _report(
    out: Output,
    target: Checkpoint | None,
    done: Restored,
    resumption: Resumption | None,
    behind: Behind = Behind(),  # noqa: B008  a value
) -> None:
    left = [*done.left, *(_not_captured(target) if target else [])]
    if out.json:
        shown = resumption.shown(out.directory) if resumption else None
        out.document(
            document(done.checkpoint, done.saved, done.plan, left, shown, behind)
        )
        return
    name = name_of(out, target) if target else "the checkpoint"
    out.print(f"Restored {name}: {count(len(done.plan.steps), 'change')} to files")
    for line in whence(out, target) if target else []:
        out.print(line)
    out.print(f"  now at {headline(out, done.checkpoint)}")
    if done.saved is not None:
        out.print(
            f"  what was there is {name_of(out, done.saved)}; `gitcp undo` goes back"
        )
    resume_line(out, resumption)
    _say_left(out, left)


def _say_left(out: Output, left: list[Left]) -> None:
    for item in left:
        out.note(f"  left: {show_path(item.path)} ({item.reason})")
    if any(item.reason in _HELD for item in left):
        out.note("  look at these; the same command with --trust brings them")


@command("restore")
@click.argument("selector", metavar="SEL", required=False)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--files", is_flag=True, help="Restore the files only")
@click.option("--conversation", is_flag=True, help="Restore the conversation only")
@click.option("--dry-run", is_flag=True, help="Show what would be done")
@click.option("--to", "directory", metavar="DIR", help="Write into an empty directory")
@click.option("--agent", metavar="NAME", help="Whose conversation it has to be")
@click.option(
    "--trust",
    is_flag=True,
    help="Bring what a pulled checkpoint may not bring unasked",
)
@click.option("--continue", "go_on", is_flag=True, help="Finish an interrupted restore")
@click.option("--abort", is_flag=True, help="Take an interrupted restore back")
@click.option(
    "--replay",
    is_flag=True,
    help="Steps that reached outside since stay done; give their recorded results",
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
    yes: bool,
) -> None:
    """Bring files and conversation of a checkpoint back.

    What is there now is saved first; `gitcp undo` brings it back. Files that no
    checkpoint holds are never overwritten or deleted. The conversation of a coding agent
    is written where its client looks for it, under a new id, and the command that
    resumes it is printed.

    A checkpoint that was pulled does not bring files that tools execute by themselves
    or links that lead outside, unless --trust is given.
    """
    looks = dry_run or directory is not None
    workspace = reader(out) if looks else open_workspace(out.directory)
    if go_on or abort:
        if selector or (go_on and abort):
            raise UsageError(
                "--continue and --abort stand alone", hint="leave the rest out"
            )
        _end_interrupted(out, workspace, go_on=go_on)
        return
    if selector is None:
        raise UsageError(
            "which checkpoint?", hint="`gitcp log` lists them; `gitcp restore last`"
        )
    if files and conversation:
        files = conversation = False
    if paths and conversation:
        raise UsageError(
            "--conversation does not go with paths", hint="leave one of them out"
        )
    target = select(workspace, selector)
    if agent is not None and (files or paths or directory is not None):
        raise UsageError(
            "--agent is about the conversation, and only files would come back",
            hint="leave it away",
        )
    resume.check_agent(target, agent)
    inside = [path_inside(out, workspace.top, path) for path in paths]
    if directory is not None:
        if conversation:
            raise UsageError(
                "--conversation does not go with --to",
                hint="`gitcp messages SEL -o FILE` writes the conversation",
            )
        if dry_run:
            steps = extract.plan_whole(target, inside, trust=trust)
            _show_whole(out, target, directory, steps)
        else:
            _write_to(out, target, directory, inside, trust=trust)
        return
    workspace.refuse_if_interrupted()
    if yes and not dry_run:
        # Nobody reads the plan first: it is made once, under the lock.
        wanted = planning.unseen_plan(
            target,
            paths=inside,
            files=not conversation,
            conversation=not files,
            trust=trust,
        )._replace(replay=replay)
    else:
        wanted = planning.plan_restore(
            workspace,
            target,
            paths=inside,
            files=not conversation,
            conversation=not files,
            trust=trust,
            replay=replay,
        )
    carry_out(out, workspace, wanted, yes=yes, dry_run=dry_run)


def _end_interrupted(out: Output, workspace: Workspace, *, go_on: bool) -> None:
    entry = journal.read(workspace.directory)
    if go_on:
        done = ops.resume(workspace)
        said = entry is not None and entry.conversation
        with written_back(workspace, done.checkpoint, said) as resumption:
            _report(out, None, done, resumption)
        return
    back = ops.abort(workspace)
    if out.json:
        out.document(document(back, None, FilePlan((), ()), []))
    elif entry is not None and entry.checkpoint == back.id:
        out.print(
            f"The restore was complete: {headline(out, back)}; `gitcp undo` goes back"
        )
    else:
        out.print(
            f"Took the restore back; the files are those of {headline(out, back)}"
        )


def _show_whole(
    out: Output, target: Checkpoint, directory: str, steps: FilePlan
) -> None:
    if out.json:
        left = [*steps.left, *_not_captured(target)]
        out.document(document(None, None, steps, left))
        return
    out.print(f"Write {headline(out, target)} to {safe(shlex.quote(directory))}")
    for line in whence(out, target):
        out.print(line)
    for step in steps.steps:
        out.print(step_line(out, step))
    for item in steps.left:
        out.print(f"  {'left':<6} {safe(show_path(item.path))} ({safe(item.reason)})")


def _write_to(
    out: Output,
    target: Checkpoint,
    directory: str,
    paths: list[bytes],
    *,
    trust: bool,
) -> None:
    where = Path(os.path.join(out.directory, directory))
    try:
        where.mkdir(parents=True, exist_ok=True)
        root = Root(where)
    except OSError as exc:
        raise UsageError(
            f"{directory} cannot be used: {exc.strerror}", hint="name a new directory"
        ) from exc
    with root:
        steps = extract.write_to(target, root, paths, trust=trust)
    if out.json:
        left = [*steps.left, *_not_captured(target)]
        out.document(document(target, None, steps, left))
    else:
        out.print(
            f"Wrote {count(len(steps.steps), 'path')} of {headline(out, target)}"
            f" to {safe(shlex.quote(directory))}"
        )
        for line in whence(out, target):
            out.print(line)
        _say_left(out, list(steps.left))


@command("rollback")
@yes_option
def rollback_command(out: Output, yes: bool) -> None:
    """Go back to the last checkpoint (`restore last`)."""
    workspace = open_workspace(out.directory)
    workspace.refuse_if_interrupted()
    wanted = planning.plan_restore(workspace, select(workspace, "last"))
    carry_out(out, workspace, wanted, yes=yes)


@command("undo")
@click.option("--effects", is_flag=True, help="Undo what steps did, not a restore")
@click.option("--to", "to", metavar="SEL", help="With --effects: since a checkpoint")
@click.option(
    "--keep",
    multiple=True,
    metavar="NAME",
    help="With --effects: leave a step as it is",
)
@click.option(
    "--trust", is_flag=True, help="With --effects: run undos that were pulled"
)
@click.option("--dry-run", is_flag=True, help="Show what would be done")
@yes_option
def undo_command(
    out: Output,
    effects: bool,
    to: str | None,
    keep: tuple[str, ...],
    trust: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Go back to what the last restore replaced; again, and the restore is back.

    With --effects it undoes what durable steps did since a checkpoint (the newest, or
    --to), newest first, and stops where one cannot be undone.
    """
    workspace = open_workspace(out.directory)
    workspace.refuse_if_interrupted()
    if effects:
        from gitcp.cli.commands.compensation import undo_effects

        undo_effects(
            out, workspace, to, keep=keep, trust=trust, yes=yes, dry_run=dry_run
        )
        return
    if to is not None or keep or trust:
        raise UsageError(
            "--to, --keep and --trust go with --effects",
            hint="`gitcp restore SEL` goes back to a checkpoint",
        )
    replaced = ops.last_replaced(workspace)
    wanted = planning.plan_restore(
        workspace, replaced, note=f"undid a restore: back to {replaced.id}"
    )
    carry_out(out, workspace, wanted, yes=yes, dry_run=dry_run)
