"""Keeps paths that the target of a restore did not capture."""

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping

import msgspec

from gitcp import durable
from gitcp.format.tree import DIRECTORY, GITLINK, Entry, ReadTree
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.find_current import find_by_id
from gitcp.worktree import plan, replace, spelling
from gitcp.worktree.files import Root
from gitcp.worktree.ignored import ignored_at
from gitcp.worktree.names import IGNORE_FILE, parents
from gitcp.worktree.plan import FilePlan, FileStep, Left

IGNORED = "ignored in the checkpoint"
_NAME = "brought.json"
_DIRECTORY = Entry(DIRECTORY, b"")


def not_in_it(reason: str) -> str:
    """Returns why a restore keeps a path that the checkpoint lists as not captured."""
    return f"not in it: {reason}"


class _Brought(msgspec.Struct, frozen=True):
    """What the last restore of a work tree brought; base64."""

    restore: str
    paths: tuple[str, ...]


def keep_uncaptured(
    workspace: Workspace,
    steps: FilePlan,
    target: Checkpoint,
    read: ReadTree,
    *,
    forced: bool,
    brought: Collection[bytes] = (),
) -> FilePlan:
    """Leaves out the removal of paths that the checkpoint could not have captured.

    Those are the paths that it lists as not captured, and the ones that its own ignore
    rules exclude. A path in the way of one that it holds is removed all the same: it
    has been saved. So is a path that was `brought` by the restore that is being undone.
    `forced` says that ignored files may have been captured, because git tracks them.

    Raises:
        CorruptError: the target's list is damaged.
        StorageError: there is no room for the rules.
        GitFailedError: git failed.
    """
    going = [step for step in _going(steps) if step.path not in brought]
    if not going:
        return steps
    reasons = _listed(going, target)
    if _rules_matter(workspace, steps, forced=forced):
        names = {
            step.path: step.path + b"/" if step.action == plan.REMOVE_DIR else step.path
            for step in going
            if step.path not in reasons
        }
        ignored = ignored_at(
            target.files_tree,
            names.values(),
            read,
            target.objects.content,
            workspace.repository,
        )
        reasons |= {path: IGNORED for path, name in names.items() if name in ignored}
    return _without(steps, reasons)


def _rules_matter(workspace: Workspace, steps: FilePlan, *, forced: bool) -> bool:
    """Whether ignore rules can tell the two states of a plan apart."""
    # Skipped paths count as well: a sparse checkout may omit ignore files that differ.
    paths = {step.path for step in steps.steps} | {item.path for item in steps.left}
    return (
        forced
        or bool(workspace.settings.include)
        or any(path.rpartition(b"/")[2] == IGNORE_FILE for path in paths)
    )


def _going(steps: FilePlan) -> list[FileStep]:
    """Returns the removals that are not needed to make room for a path of the target."""
    made_again = {step.path for step in steps.steps if step.after is not None}
    in_the_way = {
        step.path
        for step in steps.steps
        if step.after is not None and step.action != plan.MAKE_DIR
    }
    return [
        step
        for step in steps.steps
        if step.after is None
        and step.path not in made_again
        and in_the_way.isdisjoint(parents(step.path))
    ]


def _listed(going: Iterable[FileStep], target: Checkpoint) -> dict[bytes, str]:
    """Returns the paths that the target lists as not captured, or a directory above them."""
    if not target.manifest.skipped:
        return {}
    listed = dict(target.skipped())
    reasons = {}
    for step in going:
        for path in (step.path, *parents(step.path)):
            if path in listed:
                reasons[step.path] = not_in_it(listed[path])
                break
    return reasons


def note_brought(workspace: Workspace, restore: str, steps: FilePlan) -> None:
    """Notes which paths a restore brought, so that its undo removes them whatever the rules then.

    The note is not synced: without it an undo keeps these files, which is safe.

    Raises:
        StorageError: the disk refused.
    """
    paths = tuple(
        b64encode(step.path).decode() for step in steps.steps if step.before is None
    )
    file = workspace.directory / _NAME
    with durable.storage("noting what the restore brought"):
        if paths:
            noted = msgspec.json.encode(_Brought(restore, paths))
            durable.replace(file, noted, sync=False)
        else:
            file.unlink(missing_ok=True)


def brought_by(workspace: Workspace, restore: Checkpoint) -> dict[bytes, Entry]:
    """Returns the paths that a restore brought, with the content that it wrote."""
    try:
        raw = (workspace.directory / _NAME).read_bytes()
        noted = msgspec.json.decode(raw, type=_Brought)
        paths = [b64decode(path) for path in noted.paths]
    except (OSError, msgspec.MsgspecError, ValueError):
        # Without the note the files stay, which is safe.
        return {}
    restored = restore.manifest.restored_from
    if noted.restore != restore.id or restored is None:
        return {}
    source = find_by_id(workspace.store, restored)
    if source is None:
        return {}
    entries = {path: source.entry(path) or _DIRECTORY for path in paths}
    return {
        path: _DIRECTORY if entry.mode == DIRECTORY else entry
        for path, entry in entries.items()
        if entry.mode != GITLINK
    }


def take_away(
    root: Root, planned: FilePlan, brought: Mapping[bytes, Entry], target: Checkpoint
) -> FilePlan:
    """Adds to a plan the removal of files that a restore brought and no checkpoint captured since.

    What makes room for a path of the target goes as well. A file edited since then stays,
    because no checkpoint has it. So does one in a directory that has become a repository of
    its own.
    """
    if not brought:
        return planned
    known = {step.path for step in planned.steps if step.before is not None}
    directories = {
        path for empty in target.empty_dirs for path in (empty, *parents(empty))
    }
    steps: list[FileStep] = []
    left: dict[bytes, Left] = {}
    look = _Look(root)
    for path, entry in sorted(brought.items()):
        held = target.entry(path) or (_DIRECTORY if path in directories else None)
        if path in known or (held is not None and _is_like(held, entry)):
            continue
        why = look.why_it_stays(path, entry)
        if why is None:
            steps.append(plan.removal(path, entry))
        elif why and left.keys().isdisjoint(parents(path)):
            left[path] = Left(path, why)
    if not steps and not left:
        return planned
    items = (*planned.left, *left.values())
    above = {directory for item in items for directory in parents(item.path)}
    steps = [step for step in steps if step.path not in above]
    return FilePlan(tuple(plan.in_order((*planned.steps, *steps))), items)


def _is_like(held: Entry, brought: Entry) -> bool:
    """Whether what was brought can stay, or be written over, where the target has `held`."""
    is_directory = held.mode == DIRECTORY
    return held.mode == GITLINK or is_directory == (brought.mode == DIRECTORY)


class _Look:
    """Checks whether an undo may remove a file that its restore brought."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._folds = spelling.folds(root)
        self._repositories: dict[bytes, bool] = {}

    def why_it_stays(self, path: bytes, entry: Entry) -> str | None:
        """Returns None if a path is as it was brought; empty if it is gone."""
        try:
            there = replace.look(self._root, path, replace.form_for(entry)).entry
            if there is None or not self._is_listed(path):
                return ""
            if any(map(self._is_repository, (*parents(path), path))):
                return "nested-repository"
        except PermissionError:
            return "in a directory that cannot be read"
        if there == entry:
            return None
        # A purge took the path out of the checkpoint, where only directories have no entry.
        purged = "or purged " if entry.mode == DIRECTORY else ""
        return f"changed {purged}since it was restored"

    def _is_listed(self, path: bytes) -> bool:
        """Whether the file has exactly this name; another spelling may open it, too."""
        may_fold = self._folds or not path.isascii()
        return not may_fold or spelling.is_listed(self._root, path)

    def _is_repository(self, directory: bytes) -> bool:
        known = self._repositories.get(directory)
        if known is None:
            known = self._root.lstat(directory + b"/.git") is not None
            self._repositories[directory] = known
        return known


def _without(planned: FilePlan, reasons: dict[bytes, str]) -> FilePlan:
    """Returns a plan without the removal of some paths and of the directories above them."""
    if not reasons:
        return planned
    above = {directory for path in reasons for directory in parents(path)}
    steps = tuple(
        step
        for step in planned.steps
        if step.path not in reasons
        and not (step.action == plan.REMOVE_DIR and step.path in above)
    )
    # One line is enough for a directory with everything in it.
    listed = reasons.keys() | {item.path for item in planned.left}
    tops = [path for path in sorted(reasons) if listed.isdisjoint(parents(path))]
    return FilePlan(
        steps, (*planned.left, *(Left(path, reasons[path]) for path in tops))
    )
