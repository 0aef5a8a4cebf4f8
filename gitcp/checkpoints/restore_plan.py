"""Computes what a restore would do, before anything is written."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from gitcp import durable
from gitcp.checkpoints.not_captured import brought_by, keep_uncaptured, take_away
from gitcp.checkpoints.rewind import Behind, arrives, behind
from gitcp.errors import (
    CorruptError,
    FormatTooNewError,
    NotFoundError,
    UnsafePathError,
    UsageError,
)
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.format.tree import GITLINK, ReadTree
from gitcp.git.transaction import Transaction, transaction
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.trust.configured import configured
from gitcp.trust.withheld import Bounds, withheld_from
from gitcp.worktree import apply, plan, spelling
from gitcp.worktree.capture import Snapshot
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, Left, Side, Withheld


class Plan(NamedTuple):
    """A planned restore. Making a plan writes nothing.

    `steps` is empty where only the conversation is restored; `since` has the newest
    checkpoints of other sessions that were made after the target: what they saved may
    be in these files too. `fork` names the new branch,
    `onto` the existing one, that goes on from here instead of the current one. `trust`
    lets a pulled checkpoint bring everything, `brought` these paths of those that the
    user may be asked about. `undoes` is the restore that this takes back, if it is an undo.
    `behind` are the steps done since; where one of them reached outside, `replay` has to
    say that its recorded result will be given instead of running it again.
    """

    target: Checkpoint
    files: bool
    conversation: bool
    paths: tuple[bytes, ...]
    steps: FilePlan
    obstacles: tuple[Left, ...]
    operation: str | None
    note: str | None = None
    fork: tuple[str, str] | None = None
    onto: Current | None = None
    since: tuple[Checkpoint, ...] = ()
    behind: Behind = Behind()
    replay: bool = False
    trust: bool = False
    brought: frozenset[bytes] = frozenset()
    undoes: Checkpoint | None = None

    @property
    def withhold(self) -> bool:
        """Whether what a stranger's checkpoint may not bring unasked is left out."""
        return not self.trust and self.target.origin.files is not None

    @property
    def whole(self) -> bool:
        """Whether all files go back, and the steps that made them with them."""
        return self.files and not self.paths


def side(checkpoint: Checkpoint) -> Side:
    """Returns the files of a checkpoint for a plan."""
    return Side(checkpoint.files_tree, checkpoint.empty_dirs)


def plan_restore(
    workspace: Workspace,
    target: Checkpoint,
    *,
    paths: Sequence[bytes] = (),
    files: bool = True,
    conversation: bool = True,
    note: str | None = None,
    fork: tuple[str, str] | None = None,
    onto: Current | None = None,
    replay: bool = False,
    trust: bool = False,
    undoes: Checkpoint | None = None,
) -> Plan:
    """Returns what restoring a checkpoint would do, writing nothing.

    With `paths` only these files come back, and no conversation. Of a checkpoint that
    was made elsewhere, files that tools execute by themselves and links that lead outside
    stay as they are, unless `trust` is given. `onto` is the branch
    that goes on from there, if it is not the current one. `undoes` is the restore that
    this takes back.

    Raises:
        CorruptError: the target is damaged.
        UnsafePathError: it names a path that must not be written.
        NotFoundError: a path is in neither state.
        UsageError: files alone are wanted, and the target holds none.
    """
    workspace.refresh()
    target = own(workspace, target)
    wanted = unseen_plan(
        target,
        paths=paths,
        files=files,
        conversation=conversation,
        note=note,
        fork=fork,
        trust=trust,
    )
    with workspace.capturing() as capture, transaction(workspace.repository) as opened:
        whole = wanted._replace(
            operation=workspace.repository.operation(),
            onto=onto,
            replay=replay,
            undoes=undoes,
            since=_saved_since(workspace, target),
        )
        _, plan = capture.using(
            opened, lambda snapshot: fill_in(workspace, opened, snapshot, whole)
        )
        return plan


def own(workspace: Workspace, checkpoint: Checkpoint) -> Checkpoint:
    """Returns a checkpoint as this workspace reads it.

    One that another Store has read knows trees that this one does not.
    """
    if checkpoint.objects is workspace.repository.objects:
        return checkpoint
    return workspace.store.checkpoint(checkpoint.commit) or checkpoint


def _saved_since(workspace: Workspace, target: Checkpoint) -> tuple[Checkpoint, ...]:
    """Returns the tips of other sessions that are younger than a checkpoint."""
    found = []
    for oid in workspace.store.refs().values():
        try:
            tip = workspace.store.checkpoint(oid)
            if (
                tip is not None
                and tip.trailers.session != target.trailers.session
                and tip.raw.epoch > target.raw.epoch
            ):
                _ = tip.manifest  # it is going to be shown
                found.append(tip)
        except (CorruptError, FormatTooNewError):
            # What is wrong in another session must not stop this one.
            continue
    return tuple(found)


def unseen_plan(
    target: Checkpoint,
    *,
    paths: Sequence[bytes] = (),
    files: bool = True,
    conversation: bool = True,
    note: str | None = None,
    fork: tuple[str, str] | None = None,
    trust: bool = False,
) -> Plan:
    """Returns a plan without steps, for a caller that does not show it.

    `restore` makes the steps in any case, from what is there then. A checkpoint that
    holds no files leaves those that are there as they are.

    Raises:
        UsageError: files alone are wanted, and it holds none.
    """
    if not target.holds_files and (paths or not conversation):
        raise UsageError(
            f"checkpoint {target.id} holds no files, only a conversation",
            hint=f"`gitcp restore {target.id}` brings that one back",
        )
    return Plan(
        target,
        files and target.holds_files,
        conversation and not paths,
        tuple(paths),
        FilePlan((), ()),
        (),
        None,
        note,
        fork,
        trust=trust,
    )


def fill_in(
    workspace: Workspace, opened: Transaction, snapshot: Snapshot, wanted: Plan
) -> Plan:
    """Returns a plan with the steps from a snapshot, and what is in their way."""
    if wanted.whole and wanted.fork is None:
        here = workspace.current()
        place = wanted.onto or here
        if not arrives(workspace.store, here, place, wanted.target):
            since = behind(workspace.store, place, wanted.target)
            wanted = wanted._replace(behind=since)
    if not wanted.files:
        return wanted
    present = Side(snapshot.tree, frozenset(snapshot.empty))
    target = side(wanted.target)
    for path in wanted.paths:
        inside = [
            tree.lookup(one.tree, path, opened.tree) or path in one.empty
            for one in (present, target)
        ]
        if not any(inside):
            raise NotFoundError(
                f"{show_path(path)} is neither here nor in checkpoint {wanted.target.id}",
                hint=f"`gitcp files {wanted.target.id}` lists what it holds",
            )
    undone = brought_by(workspace, wanted.undoes) if wanted.undoes else {}
    steps = make_steps(
        workspace,
        present,
        target,
        opened,
        wanted,
        snapshot.sparse,
        withheld=_withheld(workspace, wanted),
        forced=bool(snapshot.state.forced),
        undone=undone,
    )
    check_objects(wanted.target, steps)
    with durable.storage("looking at what is there"), workspace.root() as root:
        steps = take_away(root, steps, undone, wanted.target)
        ahead = apply.look_ahead(root, steps, tracked=snapshot.tracked)
        ahead.obstacles.extend(_kept_by_another_name(root, steps, target, opened.tree))
    if ahead.already:
        there = [step for step in steps.steps if step.path not in ahead.already]
        steps = steps._replace(steps=tuple(there))
    return wanted._replace(steps=steps, obstacles=tuple(ahead.obstacles))


def _kept_by_another_name(
    root: Root, steps: FilePlan, target: Side, read: ReadTree
) -> Iterator[Left]:
    """Yields what would go though the target holds that file in another spelling."""
    going = [step.path for step in steps.steps if step.action == plan.DELETE]
    if not going or not spelling.folds(root):
        return
    made = {step.path for step in steps.steps if step.after is not None}
    held = {spelling.key(path): path for path, _ in tree.walk(target.tree, read)}
    for path in going:
        other = held.get(spelling.key(path))
        if other is not None and other not in made:
            yield Left(path, f"the checkpoint has it as {show_path(other)}")


def bounds_of(workspace: Workspace) -> Bounds:
    """Returns what a stranger's checkpoint is compared with."""
    repository = workspace.repository
    commit, _ = repository.head()
    head = None
    if commit is not None:
        head = repository.objects.commit(bytes.fromhex(commit)).tree
    return Bounds(head, configured(repository, workspace.top))


def _withheld(workspace: Workspace, wanted: Plan) -> Withheld | None:
    if not wanted.withhold:
        return None
    bounds = bounds_of(workspace)
    return withheld_from(wanted.target.objects, bounds, wanted.brought)


def make_steps(
    workspace: Workspace,
    present: Side,
    target: Side,
    opened: Transaction,
    wanted: Plan,
    sparse: frozenset[bytes] = frozenset(),
    *,
    withheld: Withheld | None,
    forced: bool = True,
    undone: Collection[bytes] = (),
) -> FilePlan:
    """Returns the steps between two states, without those that are withheld.

    `forced` says that ignored files may have been captured, because git tracks them.

    Raises:
        UnsafePathError: the target names a path that must not be written.
    """
    try:
        made = plan.make(
            present,
            target,
            opened.tree,
            selects=plan.selection(wanted.paths),
            sparse=sparse,
            own=workspace.repository.own_paths,
            withheld=withheld,
        )
    except ValueError as exc:
        raise UnsafePathError(
            f"checkpoint {wanted.target.id} must not be restored: {exc}",
            hint="nothing was changed; `gitcp verify` lists what is wrong with it",
        ) from exc
    return keep_uncaptured(
        workspace, made, wanted.target, opened.tree, forced=forced, brought=undone
    )


def check_objects(target: Checkpoint, steps: FilePlan) -> None:
    """Reads what would be written, so that damage is found before the first write."""
    for step in steps.steps:
        if step.after is None or step.after.mode in {tree.DIRECTORY, GITLINK}:
            continue
        try:
            for _ in target.objects.stream(step.after.oid):
                pass
        except CorruptError as exc:
            raise CorruptError(
                f"{show_path(step.path)} in checkpoint {target.id} is damaged:"
                f" {exc.message}",
                hint="nothing was changed; `gitcp verify` shows what else is affected",
            ) from exc
