"""Observes a step's changes to files, by a checkpoint before and one after it."""

from collections.abc import Sequence
from pathlib import Path

from gitcp.checkpoints.restore_plan import side
from gitcp.checkpoints.save import save
from gitcp.errors import CorruptError, NotFoundError
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.ledger.call import Call
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft
from gitcp.worktree import plan
from gitcp.worktree.plan import FilePlan

TRIGGER = "step"
# To keep a record small, it lists directories if there are more paths than this.
_PATHS = 500


def checkpoint(workspace: Workspace, current: Current, note: str) -> Checkpoint:
    """Returns a checkpoint that holds the files as they are; saves one if needed."""
    draft = Draft(TRIGGER, note=note, quiet=True)
    saved = save(workspace, draft, session=current.session, branch=current.branch)
    return saved.checkpoint


def written(before: Checkpoint, left: Checkpoint, declared: Sequence[str]) -> list[str]:
    """Returns the declared paths that differ between two checkpoints."""
    changes = tree.diff(before.files_tree, left.files_tree, left.objects.files)
    selects = plan.selection([path.encode() for path in declared])
    paths = [show_path(change.path) for change in changes if selects(change.path)]
    return shortened(paths)


def shortened(paths: list[str]) -> list[str]:
    """Returns paths as a record lists them: as directories if there are very many."""
    if len(paths) > _PATHS:
        return sorted({path.partition("/")[0] for path in paths})
    return paths


def taking_back(workspace: Workspace, current: Current, call: Call) -> FilePlan:
    """Returns the plan that restores the files that a finished step has written.

    Raises:
        NotFoundError: the step's files were not captured, or a checkpoint was pruned.
        CorruptError: a checkpoint is damaged.
    """
    result = call.result
    if result is None or not result.left:
        raise NotFoundError(
            f"what {call.name!a} did to files was not captured",
            hint=f"restore them by hand; `gitcp files {call.intent.before}` lists them"
            " as they were",
        )
    before = find(workspace, current, call.intent.before)
    left = find(workspace, current, result.left)
    return between(left, before, call.intent.writes)


def uncaptured(workspace: Workspace, current: Current, call: Call) -> list[str]:
    """Returns the paths that a step declares as written but that no checkpoint holds.

    They are ignored or too large, so their earlier state is not known.
    """
    result = call.result
    if result is None or not result.left:
        return []
    left = find(workspace, current, result.left)
    read = left.objects.files
    return [
        path
        for path in call.intent.writes
        if _stands(workspace.top / path)
        and tree.lookup(left.files_tree, path.strip("/").encode(), read) is None
    ]


def _stands(path: Path) -> bool:
    """Whether there is a file, or a directory that is not empty."""
    try:
        return any(path.iterdir())
    except NotADirectoryError:
        return True
    except OSError:
        return False


def between(left: Checkpoint, before: Checkpoint, declared: Sequence[str]) -> FilePlan:
    """Returns the plan from one checkpoint's files to another's, for declared paths.

    Raises:
        CorruptError: a checkpoint is damaged.
    """
    try:
        return plan.make(
            side(left),
            side(before),
            before.objects.files,
            selects=plan.selection([path.encode() for path in declared]),
        )
    except ValueError as exc:
        raise CorruptError(
            f"checkpoint {before.id} cannot be used: {exc}", hint="run `gitcp verify`"
        ) from exc


def find(workspace: Workspace, current: Current, ident: str) -> Checkpoint:
    """Returns a checkpoint of the session by its id.

    Raises:
        NotFoundError: the checkpoint was pruned.
    """
    store = workspace.store
    tip = store.tip(current.session, current.branch)
    line = store.line(tip) if tip is not None else ()
    alike = [one for one in line if one.id == ident]
    if alike:
        # The oldest: a stranger can only put one with the same id on top.
        return alike[-1]
    raise NotFoundError(
        f"checkpoint {ident} is not in {current.session}/{current.branch} any more",
        hint="it was pruned; `gitcp prune --keep-last N` keeps more",
    )


def overlaps(paths: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two lists of paths share a file; a directory stands for all files in it."""
    return any(
        a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") or "." in {a, b}
        for a in (path.strip("/") for path in paths)
        for b in (path.strip("/") for path in others)
    )
