"""`gitcp uninstall --everything`: shows what it would remove, asks, and removes it."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gitcp.agents import leave as conversations
from gitcp.agents import resume
from gitcp.agents.leave import Restored
from gitcp.cli.emit import Output, safe, safe_path
from gitcp.cli.render import count
from gitcp.clients.client import SCOPES, ClientPlaces
from gitcp.errors import GitcpError, NothingToDoError, PartialError
from gitcp.maintenance import leave
from gitcp.maintenance.leave import InRepository, Remains
from gitcp.project import config, folders, installers
from gitcp.project.installers import Done
from gitcp.project.workspace import Workspace, open_workspace

_USER = SCOPES[0]
_SKILL = "skill"
# The only setting that stays if the user's own hooks would make checkpoints again.
_OFF = "autoCheckpoint"
_SHOWN = 10
# How commands to copy from the screen begin.
_COMMAND = "  gitcp "


class _Plan(NamedTuple):
    """The installed parts; `user` are hooks and skills that all the user's projects share.

    `stays` are such hooks and skills that gitcp does not ask about. `store` is the private
    store of a folder without git.
    """

    project: tuple[Done, ...]
    user: tuple[Done, ...]
    stays: tuple[Done, ...]
    own: InRepository
    restored: Restored
    store: str | None = None

    def kept(self, answers: "_Answers") -> tuple[Done, ...]:
        """Returns the parts that stay in the user's own settings."""
        return (*self.stays, *(() if answers.user else self.user))


class _Answers(NamedTuple):
    user: bool
    checkpoints: bool


def everything(out: Output, *, scope: str | None, dry_run: bool, yes: bool) -> None:
    """Removes all parts of gitcp here that the user agrees to remove.

    With a `scope` other than `user`, the user's own settings stay as they are.

    Raises:
        ConfirmationError: there is no terminal to ask at, and `yes` was not given.
        NothingToDoError: the answer was no, or gitcp has nothing here.
        PartialError: a file was changed by hand, and was left alone.
    """
    workspace = open_workspace(out.directory)
    places = resume.place(workspace.top)
    plan = _look(workspace, places, whole=scope in {None, _USER})
    if dry_run:
        _tell(out, workspace, plan)
        return
    if not (plan.project or plan.user or plan.own.refs or plan.own.state):
        raise NothingToDoError("gitcp has nothing here")
    if not yes:
        for line in _lines(plan, workspace):
            out.tell(line, whole=line.startswith(_COMMAND))
    out.confirm("Remove gitcp from this project?", yes=yes)
    answers = _Answers(
        user=bool(plan.user) and _agreed(out, _user_question(plan), yes=yes),
        checkpoints=not plan.own.stored
        or _agreed(out, _checkpoints_question(plan), yes=yes),
    )
    left, remains = _carry_out(workspace, places, plan, answers)
    _report(out, plan, answers, remains)
    if left:
        raise PartialError(
            f"{count(len(left), 'thing')} could not be removed",
            left=left,
            hint="check each of them, then run the command again",
        )


def _look(workspace: Workspace, places: ClientPlaces, *, whole: bool) -> _Plan:
    found = installers.all_installed(places, workspace.repository)
    own = leave.survey(workspace)
    user = tuple(done for done in found if done.scope == _USER)
    return _Plan(
        tuple(done for done in found if done.scope != _USER),
        user if whole else (),
        () if whole else user,
        own,
        conversations.restored(
            leave.state_directories(workspace),
            places,
            shared=workspace.repository.access.shared,
        ),
        workspace.private_store,
    )


# --- asking ---------------------------------------------------------------------------


def _agreed(out: Output, question: str, *, yes: bool) -> bool:
    try:
        out.confirm(question, yes=yes)
    except NothingToDoError:
        return False
    return True


def _user_question(plan: _Plan) -> str:
    names = ", ".join(dict.fromkeys(done.what for done in plan.user))
    return (
        f"Also remove {names} from your own settings? Other projects use them; if"
        " you leave them, they do nothing here."
    )


def _checkpoints_question(plan: _Plan) -> str:
    if not plan.own.refs:
        return "Also delete what is left of checkpoints in git's objects, permanently?"
    branches = count(plan.own.branches, "branch", "branches")
    only = f", {len(plan.own.only_here)} only here" if plan.own.only_here else ""
    return f"Also delete all checkpoints, permanently ({branches}{only})?"


def _lines(plan: _Plan, workspace: Workspace) -> Iterator[str]:
    """Yields the parts to remove, the checkpoints without another copy, and how to keep them."""
    yield f"gitcp in {safe_path(str(workspace.top))}:"
    for done in plan.project:
        scope = f" ({done.scope})" if done.scope else ""
        yield f"  {done.what}{scope} in {safe_path(done.path)}"
    if plan.own.settings:
        yield f"  settings {safe(', '.join(plan.own.settings))}"
    for path in plan.own.state:
        yield f"  {safe_path(str(path))}"
    if plan.restored.unused:
        paths = count(len(plan.restored.unused), "path")
        yield f"  restored conversations that no client has continued: {paths}"
    if plan.user:
        yield "In your own settings, for all projects:"
        for done in plan.user:
            yield f"  {done.what} in {safe_path(done.path)}"
    if plan.own.refs:
        yield f"Checkpoints: {count(plan.own.branches, 'branch', 'branches')}"
    yield from _only_here(plan)
    if plan.restored.continued:
        yield "These restored conversations stay, because they may be in use:"
        for path in plan.restored.continued:
            yield f"  {safe_path(str(path))}"


def _only_here(plan: _Plan) -> Iterator[str]:
    only = plan.own.only_here
    if not only:
        return
    yield "Not on any remote that gitcp knows of:"
    for one in only[:_SHOWN]:
        yield f"  {safe_path(f'{one.session}/{one.branch}')}"
    if len(only) > _SHOWN:
        yield f"  … and {len(only) - _SHOWN} more"
    session = safe_path(only[0].session)
    yield "To keep a session, write it to a file first:"
    yield f"{_COMMAND}export {session}:last -o ../{session.replace('/', '-')}.bundle"


# --- removing -------------------------------------------------------------------------


def _carry_out(
    workspace: Workspace, places: ClientPlaces, plan: _Plan, answers: _Answers
) -> tuple[list[str], Remains]:
    """Removes the agreed parts; returns those left alone, and the result for checkpoints."""
    left: list[str] = []
    chosen = [*plan.project, *(plan.user if answers.user else ())]
    # A skill counts as installed only if all its files are there.
    scopes = [(_SKILL, "project"), *([(_SKILL, _USER)] if answers.user else [])]
    pairs = [(done.what, done.scope) for done in chosen] + scopes
    store = plan.store
    hooks = [] if store else [("git-hooks", None)]
    for what, scope in dict.fromkeys([*hooks, *pairs]):
        try:
            installers.installer(what).uninstall(what, places, scope)
        except PartialError as exc:
            left += exc.left
        except GitcpError as exc:
            left.append(f"{what}: {exc.message}")
    conversations.remove(plan.restored.unused)
    remains = Remains()
    if plan.own.stored and answers.checkpoints:
        remains = leave.delete_checkpoints(workspace)
    leave.remove_settings(workspace)
    if _calls_here(plan.kept(answers)) and not (store and answers.checkpoints):
        config.put(workspace.repository, _OFF, "false")
    if answers.checkpoints:
        leave.remove_state(workspace)
        if store:
            folders.remove(store)
            remains = Remains()
    conversations.remove_empty(places)
    return left, remains


def _settings(plan: _Plan, answers: _Answers) -> list[str]:
    """Returns the settings to remove, except the one that turns off remaining hooks."""
    stays = _calls_here(plan.kept(answers))
    off = f"gitcp.{_OFF}".lower()
    return [name for name in plan.own.settings if not (stays and name == off)]


def _calls_here(kept: Iterable[Done]) -> bool:
    """Whether remaining hooks would make checkpoints here again."""
    return any(done.what != _SKILL for done in kept)


# --- telling --------------------------------------------------------------------------


def _document(
    plan: _Plan, answers: _Answers, remains: Remains | None
) -> dict[str, Any]:
    removed = remains is not None
    done = [*plan.project, *(plan.user if answers.user else ())]
    return {
        "schema": "gitcp.uninstall/1",
        "done": [one._replace(changed=removed)._asdict() for one in done],
        "settings": _settings(plan, answers),
        "state": [str(path) for path in plan.own.state if answers.checkpoints],
        "conversations": [str(path) for path in plan.restored.unused],
        "continued": [str(path) for path in plan.restored.continued],
        "checkpoints": {
            "refs": plan.own.refs,
            "removed": removed and answers.checkpoints,
            "only_here": [one._asdict() for one in plan.own.only_here],
            "remains": remains._asdict() if remains is not None else None,
        },
    }


def _tell(out: Output, workspace: Workspace, plan: _Plan) -> None:
    if out.json:
        answers = _Answers(user=True, checkpoints=True)
        out.document(_document(plan, answers, None))
        return
    for line in _lines(plan, workspace):
        out.print(line, whole=line.startswith(_COMMAND))


def _report(out: Output, plan: _Plan, answers: _Answers, remains: Remains) -> None:
    if out.json:
        out.document(_document(plan, answers, remains))
        return
    for done in (*plan.project, *(plan.user if answers.user else ())):
        scope = f" ({done.scope})" if done.scope else ""
        out.print(f"Removed {done.what}{scope} from {safe_path(done.path)}")
    if plan.restored.unused:
        paths = count(len(plan.restored.unused), "path")
        out.print(f"Removed restored conversations: {paths}")
    settings = _settings(plan, answers)
    if settings:
        out.print(f"Removed {count(len(settings), 'setting')}")
    if not answers.checkpoints:
        where = f"the private store {plan.store}" if plan.store else ".git/gitcp"
        out.print(f"Kept the checkpoints, and {where} with the keys that seal them")
    elif plan.own.refs:
        out.print(
            f"Deleted {count(plan.own.branches, 'branch', 'branches')} of checkpoints"
        )
    elif plan.own.packs:
        out.print("Deleted what was left of checkpoints")
    kept = plan.kept(answers)
    for done in kept:
        out.note(f"  kept: {done.what} in {safe_path(done.path)}")
    if _calls_here(kept) and plan.store and answers.checkpoints:
        out.note("  they do nothing in this folder, which has neither git nor a store")
    elif _calls_here(kept):
        out.note(
            "  gitcp.autoCheckpoint is now false in this project, so they do"
            " nothing here"
        )
    for path in plan.restored.continued:
        out.note(f"  kept, because it may be in use: {safe_path(str(path))}")
    for line in _remaining(remains):
        out.note(line)


def _remaining(remains: Remains) -> Iterator[str]:
    if remains.objects:
        objects = count(remains.objects, "object")
        yield (
            f"  still in .git/objects: {objects} that git itself has packed or"
            " written. `git gc --prune=now` removes these and everything else"
            " that is unreachable, such as dropped stashes"
        )
    if remains.used:
        objects = count(remains.used, "object")
        yield (
            "  git, or a clone that borrows objects from here, may have a copy of"
            f" {objects}, because it used their packs"
        )
