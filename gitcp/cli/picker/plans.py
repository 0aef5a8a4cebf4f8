"""Computes the plans that the picker shows before an action, as the commands do."""

from collections.abc import Iterator
from typing import NamedTuple

from gitcp.checkpoints import diff, fork, restore_plan
from gitcp.checkpoints.hunks import hunks_of
from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.checkpoints.restore_request import RestoreRequest, request_restore
from gitcp.checkpoints.selectors import select
from gitcp.cli.layout import folded
from gitcp.cli.picker.lines import BLANK, Line, Page, line, styled_lines
from gitcp.cli.picker.pages import ink
from gitcp.cli.picker.patches import laid_out
from gitcp.cli.picker.views import Wanted
from gitcp.cli.plan_lines import describe
from gitcp.cli.restoring import AT_IT, is_at, question_of, with_trust
from gitcp.cli.undoing import undo_request
from gitcp.errors import BusyError
from gitcp.format.checkpoint import show_path
from gitcp.project.workspace import Workspace


class Planned(NamedTuple):
    """A plan for the user to agree to, with the workspace that it was made in."""

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
        RestoreInterruptedError: an earlier restore must be finished or aborted first.
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
        name = f"#{start.number}" if start.number else start.id
        question = f"Fork {wanted.name} from {name}?"
        if not fork.at_present(plan):
            question = question_of(plan.request, plan, question)
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
    if wanted.hunk:
        request = _of_hunk(workspace, request, wanted)
    plan = restore_plan.plan_restore(workspace, request)
    nothing = is_at(workspace, plan)
    question = AT_IT if nothing else question_of(request, plan)
    page = _laid_out(workspace, plan, question, room, wanted.hunk)
    yield Planned(wanted, workspace, request, plan, nothing=nothing, page=page)


def _of_hunk(
    workspace: Workspace, request: RestoreRequest, wanted: Wanted
) -> RestoreRequest:
    """Returns a request for only the hunk that was shown.

    Raises:
        BusyError: the file has changed since, and no longer has this hunk.
    """
    path = wanted.paths[0]
    patch = diff.with_worktree(workspace, request.target, [path]).patch
    shown: dict[int, list[str]] = {}
    for each in laid_out(ink(), patch):
        if each.place is not None and each.place.hunk is not None:
            shown.setdefault(each.place.hunk, []).append(each.text)
    for at, hunk in enumerate(hunks_of(path, patch)):
        if tuple(shown.get(at, ())) == wanted.hunk:
            note = f"restored part of {show_path(path)} from {request.target.id}"
            return request._replace(hunk=hunk, note=note)
    raise BusyError(
        f"{show_path(path)} changed after its lines were shown",
        hint="look at them again",
    )


def _laid_out(
    workspace: Workspace,
    plan: RestorePlan,
    question: str,
    room: int,
    hunk: tuple[str, ...] = (),
) -> Page:
    """Returns a plan in the words of `gitcp restore --dry-run`, and the question."""
    lines: list[Line] = []
    if hunk:
        lines += [line("Only these lines of this file:", "bold")]
        lines += [*map(_swapped, hunk[1:]), BLANK]
    for text in describe(ink(), workspace, plan):
        lines += styled_lines(text, room)
    asked = [line(one, "bold") for one in folded(question, room)]
    return Page([*lines, BLANK, *asked])


def _swapped(row: str) -> Line:
    """Returns a line of a diff for the opposite direction."""
    sign = {"-": "+", "+": "-"}.get(row[:1], row[:1])
    return line(f"  {sign}{row[1:]}", {"-": "D", "+": "A"}.get(sign, "dim"))
