"""Compares what a restore would do now with what the user agreed to."""

from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.errors import BusyError
from gitcp.worktree.plan import FilePlan, FileStep


class PlanOutdatedError(BusyError):
    """A restore would change files in another way than its user agreed to; it changed nothing.

    `plan` is what it would do now: `more` are the steps that were not agreed to, `fewer`
    those that are not needed any more.
    """

    def __init__(
        self, plan: RestorePlan, more: tuple[FileStep, ...], fewer: tuple[FileStep, ...]
    ) -> None:
        super().__init__(
            "files changed after the plan of the restore was shown",
            hint="nothing was changed; run the command again",
        )
        self.plan = plan
        self.more = more
        self.fewer = fewer


def refuse_if_outdated(plan: RestorePlan, agreed: FilePlan) -> None:
    """Refuses a plan that changes other paths than those that were agreed to.

    New content at a path that was shown is no reason to refuse: the restore saves it
    first, and a plan for a file that is written all the time could never be carried
    out.

    Raises:
        PlanOutdatedError: another path would change, or one would change in another way.
    """
    asked_apart = plan.request.brought
    known = {_effect(step): step for step in agreed.steps}
    due = {
        _effect(step): step for step in plan.steps.steps if step.path not in asked_apart
    }
    more = tuple(step for key, step in due.items() if key not in known)
    fewer = tuple(step for key, step in known.items() if key not in due)
    if more or fewer:
        raise PlanOutdatedError(plan, more, fewer)


def _effect(step: FileStep) -> tuple[bytes, bool, bool]:
    """Returns a path, and whether something is there before and after a step."""
    return step.path, step.before is not None, step.after is not None
