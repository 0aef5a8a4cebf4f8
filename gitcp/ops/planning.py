"""What a restore would do, made before anything is written."""

from collections.abc import Sequence
from typing import NamedTuple

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
from gitcp.ops.effects import Behind, arrives, behind
from gitcp.ops.workspace import Current, Workspace
from gitcp.sharing.executed import withheld_from
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree import apply, plan
from gitcp.worktree.capture import Snapshot
from gitcp.worktree.ignored import ignored_at
from gitcp.worktree.names import IGNORE_FILE, parents
from gitcp.worktree.plan import FilePlan, Left, Side

IGNORED = "ignored in the checkpoint"


class Plan(NamedTuple):
    """What a restore would do. Making one writes nothing.

    `steps` is empty where only the conversation is restored; `since` has the newest
    checkpoints of other sessions that were made after the target: what they saved may
    be in these files too. `fork` names the new branch,
    `onto` the existing one, that goes on from here instead of the current one. `trust`
    lets a pulled checkpoint bring everything.
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
) -> Plan:
    """Returns what restoring a checkpoint would do, writing nothing.

    With `paths` only these files come back, and no conversation. Of a checkpoint that
    was made elsewhere, files that tools execute by themselves and links that lead outside
    stay as they are, unless `trust` is given. `onto` is the branch
    that goes on from there, if it is not the current one.

    Raises:
        CorruptError: the target is damaged.
        UnsafePathError: it names a path that must not be written.
        NotFoundError: a path is in neither state.
        UsageError: files alone are wanted, and the target holds none.
    """
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
    """Returns a plan without steps, for a caller that shows it to nobody.

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
    steps = make_steps(
        workspace,
        present,
        target,
        opened,
        wanted,
        snapshot.sparse,
        withhold=wanted.withhold,
    )
    check_objects(wanted.target, steps)
    with workspace.root() as root:
        obstacles = apply.obstacles(root, steps, tracked=snapshot.tracked)
    return wanted._replace(steps=steps, obstacles=tuple(obstacles))


def make_steps(
    workspace: Workspace,
    present: Side,
    target: Side,
    opened: Transaction,
    wanted: Plan,
    sparse: frozenset[bytes] = frozenset(),
    *,
    withhold: bool,
) -> FilePlan:
    """Returns the steps between two states.

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
            withheld=withheld_from(wanted.target.objects) if withhold else None,
        )
    except ValueError as exc:
        raise UnsafePathError(
            f"checkpoint {wanted.target.id} must not be restored: {exc}",
            hint="nothing was changed; `gitcp verify` lists what is wrong with it",
        ) from exc
    return _spare(workspace, made, wanted, target, opened.tree)


def _spare(
    workspace: Workspace, made: FilePlan, wanted: Plan, target: Side, read: ReadTree
) -> FilePlan:
    """Leaves what the checkpoint would not hold in any case: it was ignored then.

    A `.env` that is captured only because an earlier restore took its ignore rule away
    must not go when the rule comes back.
    """
    if not any(step.path.rpartition(b"/")[2] == IGNORE_FILE for step in made.steps):
        return made
    made_anew = {step.path for step in made.steps if step.after is not None}
    in_the_way = {
        step.path
        for step in made.steps
        if step.after is not None and step.action != plan.MAKE_DIR
    }
    going = {
        step.path: step.path + b"/" if step.action == plan.REMOVE_DIR else step.path
        for step in made.steps
        if step.after is None
        and step.path not in made_anew
        and in_the_way.isdisjoint(parents(step.path))
    }
    spared = ignored_at(
        target.tree,
        going.values(),
        read,
        wanted.target.objects.stream,
        workspace.repository,
    )
    kept = {path for path, name in going.items() if name in spared}
    steps = tuple(step for step in made.steps if step.path not in kept)
    # Of a directory with all that is in it one line is enough.
    tops = [path for path in sorted(kept) if kept.isdisjoint(parents(path))]
    return FilePlan(steps, (*made.left, *(Left(path, IGNORED) for path in tops)))


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
