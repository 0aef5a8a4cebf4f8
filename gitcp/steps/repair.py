"""Local repair: finds what a step's failure affects, and runs only that again."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gitcp.errors import UsageError
from gitcp.format.checkpoint import show_path
from gitcp.format.ledger import IRREVERSIBLE, LOCAL, UNDONE
from gitcp.ledger.call import DONE, OPEN, STUCK, Call, show_call
from gitcp.steps import compensate, observed
from gitcp.steps.engine import Engine
from gitcp.worktree import apply


class Affected(NamedTuple):
    """The steps to undo and run again, oldest first; the reasons to refuse, if any.

    The first step is the one that the caller asked about.
    """

    steps: tuple[Call, ...]
    refused: tuple[str, ...]


def reads(call: Call) -> Sequence[str]:
    """Returns the paths that a step declares as read."""
    return call.intent.reads


def writes(call: Call) -> Sequence[str]:
    """Returns the paths that a step wrote, or declares as written."""
    seen = call.result.writes if call.result is not None else ()
    return (*call.intent.writes, *seen)


def closure(first: Call, calls: Iterable[Call]) -> list[Call]:
    """Returns a step and all steps that depend on it, oldest first.

    A step depends on an earlier one if it declares so, or if it reads a path that the
    earlier one wrote.
    """
    later = sorted(
        (
            call
            for call in calls
            if call.intent.n > first.intent.n and call.state != UNDONE
        ),
        key=lambda call: call.intent.n,
    )
    steps = [first]
    # A step depends only on steps that began before it, so one pass is enough.
    for step in later:
        if any(
            call.id in step.intent.after or observed.overlaps(writes(call), reads(step))
            for call in steps
        ):
            steps.append(step)
    return steps


def affected(engine: Engine, first: Call) -> Affected:
    """Returns the steps to run again with a step, and the reasons not to do that."""
    calls = [call for call in engine.history.live().values() if call.state != UNDONE]
    steps = closure(first, calls)
    inside = {call.id for call in steps}
    refused = [*_outside_world(first, steps)]
    for step in steps:
        if step.effect != LOCAL or step.state != DONE:
            continue
        refused += [
            f"{show_call(other)} wrote what {show_call(step)} had written"
            for other in calls
            if other.id not in inside
            and other.n > step.n
            and observed.overlaps(writes(step), writes(other))
        ]
    if not refused:
        refused = _changed_files(engine, steps)
    return Affected(tuple(steps), tuple(dict.fromkeys(refused)))


def _outside_world(first: Call, steps: Sequence[Call]) -> list[str]:
    """Returns the steps with an effect outside that cannot be undone, with the reason."""
    refused = []
    for step in steps:
        if step.state == OPEN and step.outside:
            refused.append(
                f"{show_call(step)} was interrupted: what it did is not known"
            )
        elif step.effect == IRREVERSIBLE and step.state in {DONE, STUCK}:
            what = "is irreversible" if step.id == first.id else "has sent it out"
            refused.append(f"{show_call(step)} {what}")
    return refused


def _changed_files(engine: Engine, steps: Sequence[Call]) -> list[str]:
    """Returns the files that were changed since the newest of the steps wrote them."""
    refused: list[str] = []
    seen: set[bytes] = set()
    with engine.workspace.root() as root:
        for step in reversed(steps):
            if step.effect != LOCAL or step.state != DONE:
                continue
            back = observed.taking_back(engine.workspace, engine.current, step)
            refused += [
                f"{show_path(path.path)} was changed since {show_call(step)} wrote it"
                for path in apply.conflicts(root, back)
                if path.path not in seen
            ]
            seen.update(path.path for path in back.steps)
    return refused


def repair(engine: Engine, expected: Affected, *, trust: bool) -> list[Call]:
    """Undoes steps, newest first, so that the next run of the program runs only them again.

    Raises:
        UsageError: a step cannot be repaired, or steps have changed since `expected`.
        CompensationError: an undo failed; newer steps are undone.
    """
    now = affected(engine, engine.history.live()[expected.steps[0].slot])
    if now.refused:
        raise UsageError(
            f"more than these steps are affected: {'; '.join(now.refused)}",
            hint="nothing was changed; restore a checkpoint, or correct it by hand",
        )
    if [call.id for call in now.steps] != [call.id for call in expected.steps]:
        raise UsageError(
            "other steps have become affected", hint="check again what is affected"
        )
    done = compensate.compensate(
        engine, list(reversed(now.steps)), keep=(), trust=trust
    )
    return list(reversed(done.undone))
