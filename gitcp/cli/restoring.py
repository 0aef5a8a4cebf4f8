"""A restore at the terminal: shows the plan, asks, and reports the result."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gitcp import Checkpoint
from gitcp.checkpoints import restore_plan
from gitcp.checkpoints.agreed_plan import PlanOutdatedError
from gitcp.checkpoints.finish_restore import Restored
from gitcp.checkpoints.restore import Performed, perform
from gitcp.checkpoints.restore_observer import RewoundSteps
from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.checkpoints.standing import before_newest
from gitcp.cli import open_clients
from gitcp.cli.emit import Output, path_line, safe, safe_line, safe_path
from gitcp.cli.plan_lines import changes_of, describe, outcome, outdated, stays
from gitcp.cli.render import (
    count,
    headline,
    name_of,
    provenance,
    whose,
)
from gitcp.errors import GitcpError, PartialError
from gitcp.ledger.call import show_call
from gitcp.project.workspace import Workspace
from gitcp.trust.withheld import HELD
from gitcp.worktree.plan import FilePlan, Left

if TYPE_CHECKING:
    # It imports every client, and most restores are of files alone.
    from gitcp.agents.resume import Resumption


def document(
    target: Checkpoint | None,
    saved: Checkpoint | None,
    steps: FilePlan,
    left: list[Left],
    resume: str | None = None,
    behind: RewoundSteps = RewoundSteps(),  # noqa: B008  a value
) -> dict[str, Any]:
    """Returns the JSON document of a restore."""
    from gitcp.cli import documents

    return {
        "schema": "gitcp.restore/1",
        "checkpoint": documents.checkpoint(target),
        "saved": documents.checkpoint(saved),
        "plan": documents.steps(steps),
        "left": documents.left(left),
        "resume": resume,
        "behind": [
            {
                "id": call.id,
                "name": call.name,
                "effect": call.effect,
                "state": call.state,
            }
            for call in (*behind.outside, *behind.inside)
        ],
    }


_SINCE = 5
# How many lines of a plan to print above the question: a screen has few more.
_STEPS = 16


class Handed(NamedTuple):
    """The result of writing a conversation for its client, and how to resume it.

    `foreign` is the checkpoint that has the conversation, if it was made elsewhere; `held`
    says that it was withheld for that reason.
    """

    resumption: "Resumption | None" = None
    foreign: Checkpoint | None = None
    held: bool = False

    def shown(self, directory: str) -> str | None:
        """Returns the command that resumes the conversation, for a shell in a directory."""
        return self.resumption.shown(directory) if self.resumption else None


def carry_out(
    out: Output,
    workspace: Workspace,
    request: RestoreRequest,
    plan: RestorePlan | None,
    *,
    yes: bool,
    dry_run: bool = False,
) -> Restored | None:
    """Shows a plan, asks, restores, and reports the result; None for a dry run.

    Without a `plan`, which needs `yes`, it restores at once.
    """
    if dry_run and plan is not None:
        _show(out, workspace, plan)
        return None
    diff = None
    if plan is not None and not yes:
        for line in describe(out, workspace, plan, _STEPS):
            out.tell(line)
        # A script gets its checkpoint all the same, so that its next undo is of this
        # restore.
        if not out.json and is_at(workspace, plan):
            out.print(AT_IT)
            return None
        if plan.changes:
            diff = partial(_tell_diff, out, workspace, plan)
    out.confirm(question_of(request, plan), yes=yes, diff=diff)
    return carry_out_agreed(out, workspace, request, plan, yes=yes).done


AT_IT = "Nothing to do: this is the present state."


def question_of(
    request: RestoreRequest, plan: RestorePlan | None, asked: str = "Restore?"
) -> str:
    """Returns the question for a user who has seen a plan."""
    question = f"{asked} The present state is saved first."
    if plan is None or not plan.behind.outside or request.replay:
        return question
    names = ", ".join(
        safe_line(show_call(call)) for call in plan.behind.outside[:_SINCE]
    )
    return (
        f"The effects of {names} stay, and a later call gets the recorded result."
        f" To run it again, fork instead. {question}"
    )


class CarriedOut(NamedTuple):
    """A finished restore, and how its conversation continues."""

    done: Restored
    handed: Handed


def carry_out_agreed(
    out: Output,
    workspace: Workspace,
    request: RestoreRequest,
    plan: RestorePlan | None,
    *,
    yes: bool = False,
) -> CarriedOut:
    """Restores by a plan that a user has seen and agreed to, and reports the result.

    Without a `plan`, which needs `yes`, the user has seen none.
    """
    if plan is not None and not yes and request.target.origin.files is not None:
        # A restore of the user's own checkpoint withholds nothing.
        from gitcp.cli.asking import ask_about_withheld

        request = ask_about_withheld(workspace, plan)
    if not yes:
        # A user who was asked has seen the note on effects; a script has to pass an option.
        request = request._replace(replay=True)
    agreed = plan if plan is not None and not yes else None
    done, followed = _restore(out, workspace, request, agreed)
    with written_back(
        workspace,
        done.checkpoint,
        request.conversation,
        source=request.target,
        trust=request.trust,
    ) as handed:
        report(out, workspace, request, done, handed, followed.behind)
    refuse_withheld(done.left)
    return CarriedOut(done, handed)


def _restore(
    out: Output,
    workspace: Workspace,
    request: RestoreRequest,
    agreed: RestorePlan | None,
) -> Performed:
    """Restores; asks again if files have changed since the user agreed to a plan."""
    while True:
        try:
            with stoppable():
                return perform(
                    workspace, request, agreed.steps if agreed is not None else None
                )
        except PlanOutdatedError as exc:
            agreed = exc.plan
            for line in outdated(out, exc):
                out.tell(line)
        diff = partial(_tell_diff, out, workspace, agreed)
        out.confirm("Restore?", yes=False, diff=diff)


def _tell_diff(out: Output, workspace: Workspace, plan: RestorePlan) -> None:
    """Prints the changes in files that a plan would make, before the question."""
    from gitcp.cli.plan_diff import tell_diff

    tell_diff(out, workspace, plan)


def _show(out: Output, workspace: Workspace, plan: RestorePlan) -> None:
    if out.json:
        staying, _ = stays(workspace, plan.target, plan.steps)
        left = [*staying, *plan.obstacles]
        out.document(document(None, None, plan.steps, left, behind=plan.behind))
        return
    for line in describe(out, workspace, plan):
        out.print(line)


def is_at(workspace: Workspace, plan: RestorePlan) -> bool:
    """Whether a work tree is at a plan's target, and no client needs the conversation."""
    if plan.request.fork is not None or plan.request.onto is not None:
        return False
    if plan.steps.steps or plan.obstacles or plan.steps.left or any(plan.behind):
        return False
    if plan.conversation and _can_resume(plan.target):
        return False
    newest = before_newest(workspace, 0)
    return newest is not None and newest.id == plan.target.id


def _can_resume(checkpoint: Checkpoint) -> bool:
    if checkpoint.manifest.conversation is None:
        return False
    from gitcp.agents import resume

    return resume.can_resume(checkpoint)


def with_trust(workspace: Workspace, target: Checkpoint, trust: bool) -> bool:
    """Whether a checkpoint is trusted: by the option, or by its origin."""
    if trust or not target.origin.foreign:
        return trust
    from gitcp.trust.trusted_remotes import is_trusted

    return is_trusted(workspace.store, target)


@contextmanager
def stoppable() -> Iterator[None]:
    """Makes SIGTERM stop a restore as Ctrl-C does, which prints how to finish it."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def written_back(
    workspace: Workspace,
    checkpoint: Checkpoint,
    conversation: bool = True,
    *,
    source: Checkpoint | None = None,
    trust: bool = False,
) -> Iterator[Handed]:
    """Writes the conversation for its client, lets the caller report, then raises any failure.

    `checkpoint` has the conversation of `source`, which the report names as its origin. A
    conversation that was made elsewhere is written only with `trust`. The restore itself is
    done by then, so the caller reports it in any case.

    Raises:
        PartialError: the conversation could not be written.
    """
    handed, failure = Handed(), None
    if conversation and _can_resume(checkpoint):
        from gitcp.agents import resume

        foreign = resume.is_foreign(checkpoint)
        handed = Handed(
            foreign=(source or checkpoint) if foreign else None,
            held=foreign and not trust,
        )
        try:
            if not handed.held:
                handed = handed._replace(
                    resumption=resume.write_back(workspace, checkpoint)
                )
        except GitcpError as exc:
            failure = exc
    yield handed
    if failure is not None:
        raise PartialError(
            f"the conversation could not be restored for its client: {failure.message}",
            left=["the conversation"],
            hint=f"`gitcp messages {checkpoint.number or checkpoint.id} -o FILE` writes it",
        )


def resume_line(out: Output, handed: Handed) -> None:
    """Prints how to continue the conversation, and whose it is."""
    if handed.held and handed.foreign is not None:
        out.note(
            f"  the conversation is {whose(handed.foreign)}: it was not restored"
            " for its client; repeat the command with --trust to do that"
        )
    if handed.resumption is None:
        return
    if handed.foreign is not None:
        out.print(
            f"  the conversation is {whose(handed.foreign)}; records that approve"
            " or run something were left out"
        )
    out.print("  to continue the conversation:")
    how = handed.resumption.shown(out.directory) or handed.resumption.told or ""
    out.print(f"    {safe(how)}", whole=True)


def report(
    out: Output,
    workspace: Workspace,
    request: RestoreRequest | None,
    done: Restored,
    handed: Handed,
    behind: RewoundSteps = RewoundSteps(),  # noqa: B008  a value
) -> None:
    """Reports a restore; `request` is None if an interrupted restore was ended."""
    target = request.target if request is not None else None
    left: list[Left] = list(done.left)
    absent: list[Left] = []
    if target is not None:
        left, absent = stays(workspace, target, done.plan)
    if out.json:
        shown = handed.shown(out.directory)
        out.document(
            document(done.checkpoint, done.saved, done.plan, left, shown, behind)
        )
        return
    if request is not None:
        name = name_of(out, request.target)
        out.print(f"Restored {name}: {outcome(request, done.plan)}")
    else:
        out.print(f"Restored the checkpoint: {changes_of(done.plan)}")
    for line in provenance(out, target) if target else []:
        out.print(line)
    out.print(f"  now at {headline(out, done.checkpoint)}")
    if done.saved is not None:
        out.print(f"  your previous state is saved as {name_of(out, done.saved)}")
    if request is not None and request.undoes is not None:
        out.print("  a second `gitcp undo` redoes the restore")
    else:
        out.print("  `gitcp undo` goes back to it")
    if restore_plan.parts_from_head(workspace, done.plan):
        out.print("  git's HEAD, branch and index are unchanged; see `git status`")
    for line in open_clients.after(workspace, done.checkpoint):
        out.note(line)
    resume_line(out, handed)
    say_left(out, left)
    for item in absent:
        out.note(f"  absent: {path_line(item.path, item.reason)}")


def refuse_withheld(left: Sequence[Left]) -> None:
    """Fails a command that withheld changes of a checkpoint made elsewhere.

    Raises:
        PartialError: changes were withheld.
    """
    held = [item for item in left if item.reason in HELD]
    if held:
        raise PartialError(
            f"{count(len(held), 'path')} of a checkpoint that was made elsewhere"
            f" {'was' if len(held) == 1 else 'were'} left out",
            left=[f"{safe_path(item.path)}: {safe_line(item.reason)}" for item in held],
            hint="look at them with `gitcp diff`; repeat the command with --trust to"
            " restore them",
        )


def say_left(out: Output, left: list[Left]) -> None:
    """Prints the paths that stayed as they were, with reasons.

    Leaves out the paths that `refuse_withheld` will name.
    """
    for item in left:
        if item.reason in HELD:
            continue
        out.note(f"  left: {path_line(item.path, item.reason)}")
