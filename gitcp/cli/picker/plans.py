"""Makes the plans that the picker shows before anything is done, as the commands do."""

from collections.abc import Iterator
from typing import NamedTuple

from gitcp.checkpoints import fork, restore_plan
from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.checkpoints.restore_request import RestoreRequest, request_restore
from gitcp.checkpoints.selectors import select
from gitcp.cli.layout import folded
from gitcp.cli.picker.lines import BLANK, Line, Page, line, styled_lines
from gitcp.cli.picker.pages import ink
from gitcp.cli.picker.views import Wanted
from gitcp.cli.plan_lines import describe
from gitcp.cli.restoring import AT_IT, is_at, question_of, with_trust
from gitcp.cli.undoing import undo_request
from gitcp.project.workspace import Workspace


class Planned(NamedTuple):
    """A plan that can be agreed to, with the workspace that it was made in."""

    wanted: Wanted
    workspace: Workspace
    request: RestoreRequest
    plan: RestorePlan
    nothing: bool
    page: Page

    @property
    def foreign(self) -> bool:
        """Whether the state was made elsewhere."""
        return self.request.target.origin.foreign


def planned(workspace: Workspace, wanted: Wanted, room: int) -> Iterator[Planned]:
    """Yields the plan, laid out in so many columns.

    Raises:
        RestoreInterruptedError: an earlier restore has to be ended first.
        UsageError: the name of a fork is taken.
        NotFoundError: the state is gone.
        NothingToDoError: there is nothing to undo.
    """
    workspace.refuse_if_interrupted()
    workspace.refresh()
    if wanted.name is not None:
        start = select(workspace, wanted.number)
        trust = with_trust(workspace, start, wanted.trust)
        plan = fork.plan_fork(workspace, start, wanted.name, trust=trust)
        question = f"Fork {wanted.name} from here?"
        if not fork.at_present(plan):
            question = f"{question} {question_of(plan.request, plan)}"
        page = _laid_out(workspace, plan, question, room)
        yield Planned(wanted, workspace, plan.request, plan, nothing=False, page=page)
        return
    if wanted.number is None:
        request = undo_request(workspace, trust=wanted.trust)
    else:
        target = select(workspace, wanted.number)
        request = request_restore(
            target,
            paths=wanted.paths,
            files=wanted.parts != "conversation",
            conversation=wanted.parts != "files",
            trust=with_trust(workspace, target, wanted.trust),
        )
    plan = restore_plan.plan_restore(workspace, request)
    nothing = is_at(workspace, plan)
    question = AT_IT if nothing else question_of(request, plan)
    page = _laid_out(workspace, plan, question, room)
    yield Planned(wanted, workspace, request, plan, nothing=nothing, page=page)


def _laid_out(
    workspace: Workspace, plan: RestorePlan, question: str, room: int
) -> Page:
    """Returns a plan in the words of `gitcp restore --dry-run`, and the question."""
    lines: list[Line] = []
    for text in describe(ink(), workspace, plan):
        lines += styled_lines(text, room)
    asked = [line(one, "bold") for one in folded(question, room)]
    return Page([*lines, BLANK, *asked])
