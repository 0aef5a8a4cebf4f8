"""A restore at the terminal: what it would do, whether to do it, what was done."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gitcp.cli import documents
from gitcp.cli.emit import Output, safe
from gitcp.cli.render import (
    count,
    headline,
    name_of,
    prompt_plan,
    step_line,
    whence,
)
from gitcp.errors import GitcpError, PartialError
from gitcp.format.checkpoint import show_path
from gitcp.ops import restore as ops
from gitcp.ops.agents import resume
from gitcp.ops.agents.resume import Resumption
from gitcp.ops.book import show_call
from gitcp.ops.effects import Behind
from gitcp.ops.planning import Plan
from gitcp.ops.restore import Restored
from gitcp.ops.workspace import Workspace
from gitcp.sharing.executed import EXECUTED, OUTSIDE
from gitcp.store.checkpoint import Checkpoint
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


def not_captured(target: Checkpoint) -> list[Left]:
    """Returns what a checkpoint says it does not hold."""
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
    for left in (*others, *not_captured(wanted.target)):
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
                *not_captured(wanted.target),
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
        report(out, wanted.target, done, resumption, wanted.behind)
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


def report(
    out: Output,
    target: Checkpoint | None,
    done: Restored,
    resumption: Resumption | None,
    behind: Behind = Behind(),  # noqa: B008  a value
) -> None:
    """Says what a restore did; `target` is None where one that was cut off was ended."""
    left = [*done.left, *(not_captured(target) if target else [])]
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
    say_left(out, left)


def say_left(out: Output, left: list[Left]) -> None:
    """Says which paths stayed as they were, and why."""
    for item in left:
        out.note(f"  left: {show_path(item.path)} ({item.reason})")
    if any(item.reason in _HELD for item in left):
        out.note("  look at these; the same command with --trust brings them")
