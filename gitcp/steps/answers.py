"""Resolves which interrupted step a `steps answer` command refers to."""

import shlex
from collections.abc import Sequence

from gitcp.errors import AmbiguousError, StepUnknownError
from gitcp.ledger.call import OPEN, RUN_AGAIN, Call, show_call
from gitcp.project.workspace import Current, Workspace
from gitcp.steps import lease

ANSWERS = "done|failed|again"
_SHOWN = 5


def command(
    workspace: Workspace,
    current: Current,
    call: Call,
    answer: str = ANSWERS,
    *,
    whole: bool = False,
) -> str:
    """Returns the command that answers for exactly this step, not another of its name.

    `whole`: it names the call, even the first, because others of its name may come first.
    """
    words = ["gitcp", "steps", "answer", *_named(call, whole=whole)]
    if workspace.current() != current:
        words += ["-s", f"{current.session}/{current.branch}"]
    return f"{shlex.join(words)} {answer}"


def _named(call: Call, *, whole: bool = False) -> list[str]:
    slot = call.slot
    plain = slot.name.isprintable() and not slot.name.startswith("-")
    if slot.scope or not plain or not slot.call.isprintable():
        return [call.id]
    if slot.call == "1" and not whole:
        return [slot.name]
    return [slot.name, "--call", slot.call]


def unknown(
    workspace: Workspace, current: Current, call: Call, *, here: bool
) -> StepUnknownError:
    """Returns the error for a step that began and has no result; `here` says where it began."""
    where, ended = " elsewhere", "was interrupted there, or is still running"
    if here:
        where, ended = "", "was interrupted"
    begun = f"the step {show_call(call)!a} began at {call.intent.at}{where}"
    return StepUnknownError(
        f"{begun} and {ended}: whether it took effect is not known",
        hint="find out what happened, then answer:"
        f" `{command(workspace, current, call)}`",
        slot=call.slot,
    )


def choose(workspace: Workspace, current: Current, calls: Sequence[Call]) -> Call:
    """Returns the step that waits for an answer, or the last one if none does.

    Raises:
        AmbiguousError: several steps wait for an answer.
    """
    interrupted = [
        call
        for call in calls
        if call.state == OPEN
        and not lease.is_running(
            workspace.repository, current.session, current.branch, call.slot
        )
    ]
    waiting = interrupted or [call for call in calls if call.state in {OPEN, RUN_AGAIN}]
    if len(waiting) > 1:
        shown = ", ".join(" ".join(_named(call)) for call in waiting[:_SHOWN])
        more = ", …" if len(waiting) > _SHOWN else ""
        raise AmbiguousError(
            f"{len(waiting)} steps of this name were interrupted: {shown}{more}",
            hint=f"say which: `{command(workspace, current, waiting[0])}`",
        )
    return waiting[0] if waiting else calls[-1]
