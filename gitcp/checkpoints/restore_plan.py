"""Computes what a restore would do, before anything is written."""

import collections
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from gitcp import durable
from gitcp.checkpoints.hunks import only_hunk
from gitcp.checkpoints.not_captured import brought_by, keep_uncaptured, take_away
from gitcp.checkpoints.open_databases import (
    beside,
    capture_for,
    refuse_outlived,
    with_logs,
    without_open,
)
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.restore_observer import RewoundSteps, restore_observer
from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.checkpoints.standing import RESTORE
from gitcp.checkpoints.target_objects import check_objects
from gitcp.errors import GitcpError, NotFoundError, UnsafePathError
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.format.tree import Change, ReadTree
from gitcp.git.transaction import Transaction, files_in, looking
from gitcp.names import quoted
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.publish import created_of
from gitcp.store.surroundings import Surroundings
from gitcp.trust.configured import configured
from gitcp.trust.obeyed import obeyed
from gitcp.trust.withheld import Bounds, withheld_from
from gitcp.worktree import apply, plan, spelling
from gitcp.worktree.files import Root
from gitcp.worktree.kept_contents import KeptContents
from gitcp.worktree.missing import Missing, missing_directories, paths_of
from gitcp.worktree.plan import MAKE_DIR, REMOVE_DIR, FilePlan, Left, Side, Withheld
from gitcp.worktree.snapshot import Snapshot

_LOOKED_AT = 200
_SINCE = 5
_COMPARED = 1000


class RestorePlan(NamedTuple):
    """What carrying out a request would do. Making a plan writes nothing.

    `steps` is empty if only the conversation is restored. `behind` are the durable steps
    done since; if one of them reached outside, the request needs `replay`. `operation` is
    the operation that git has not finished, such as a rebase. `since` has the newest
    checkpoints of other sessions that were made here after the target, five at most: what
    they saved may be in these files too. For an undo it has those of all sessions, made
    after the restore. `missing` are directories whose contents are read only when they are
    written.
    """

    request: RestoreRequest
    steps: FilePlan = FilePlan((), ())
    obstacles: tuple[Left, ...] = ()
    behind: RewoundSteps = RewoundSteps()
    operation: str | None = None
    since: tuple[Checkpoint, ...] = ()
    missing: tuple[Missing, ...] = ()

    def __str__(self) -> str:
        """Returns what would be done, a line for each file."""
        return "\n".join(_described(self))

    @property
    def changes(self) -> tuple[Change, ...]:
        """The files that would change, by path: `path` (bytes), `status`, both entries."""
        return tuple(
            Change(step.path, step.before, step.after)
            for step in sorted(self.steps.steps, key=lambda step: step.path)
            if step.action not in {MAKE_DIR, REMOVE_DIR}
        )

    @property
    def target(self) -> Checkpoint:
        """The checkpoint to restore."""
        return self.request.target

    @property
    def files(self) -> bool:
        """Whether files are restored."""
        return self.request.files

    @property
    def conversation(self) -> bool:
        """Whether the conversation is restored."""
        return self.request.conversation

    @property
    def paths(self) -> tuple[bytes, ...]:
        """The only paths to restore; empty for all."""
        return self.request.paths

    @property
    def replay(self) -> bool:
        """Whether steps that reached outside since keep their recorded results."""
        return self.request.replay


# The name that `gitcp` exports.
Plan = RestorePlan


def _described(plan: RestorePlan) -> Iterator[str]:
    target, changes = plan.target, plan.changes
    note = f" {target.note.splitlines()[0]}" if target.note else ""
    place = f"{target.session}/{target.branch}"
    name = f"#{target.number}" if target.number is not None else place
    yield f"restore {name} {target.id}{note}"
    for status, done in _DONE.items():
        for change in changes:
            if change.status == status:
                yield f"  {done:<9}  {show_path(change.path)}"
    for left in (*plan.steps.left, *plan.obstacles):
        yield f"  {'left':<9}  {show_path(left.path)} ({left.reason})"
    for call in plan.behind.outside:
        yield f"  {'stays':<9}  step {call.name} ({call.effect})"
    if plan.conversation:
        held = target.manifest.conversation
        messages = f"{held.messages} messages" if held else "none"
        yield f"  {'talk':<9}  {messages}"
    counts = collections.Counter(change.status for change in changes)
    shown = ", ".join(
        f"{counts[status]} {done}" for status, done in _DONE.items() if counts[status]
    )
    yield f"  {shown or 'no file changes'}"


_DONE = {"deleted": "deleted", "modified": "replaced", "added": "created"}


def side(checkpoint: Checkpoint) -> Side:
    """Returns the files of a checkpoint for a plan."""
    return Side(checkpoint.files_tree, checkpoint.empty_dirs)


def plan_restore(workspace: Workspace, request: RestoreRequest) -> RestorePlan:
    """Returns what restoring a checkpoint would do, writing nothing.

    Raises:
        CorruptError: the target is damaged.
        UnsafePathError: the checkpoint names a path that must not be written.
        NotFoundError: a path is in neither state.
    """
    workspace.refresh()
    request = request._replace(target=own(workspace, request.target))
    since = _saved_since(workspace, request)
    with (
        workspace.capturing(backups=False) as capture,
        looking(workspace.repository) as txn,
    ):
        operation = workspace.repository.operation()
        _, plan = capture_for(
            capture, txn, lambda snapshot: compute(workspace, txn, snapshot, request)
        )
    return plan._replace(operation=operation, since=since)


def own(workspace: Workspace, checkpoint: Checkpoint) -> Checkpoint:
    """Returns a checkpoint as this workspace reads it.

    A checkpoint from another Store may know trees that this workspace does not.
    """
    if checkpoint.objects is workspace.repository.objects:
        return checkpoint
    return workspace.store.checkpoint(checkpoint.commit) or checkpoint


def _saved_since(
    workspace: Workspace, request: RestoreRequest
) -> tuple[Checkpoint, ...]:
    """Returns the newest checkpoints of other sessions that have changed files here, a few.

    An undo takes back what any session has saved since the restore.
    """
    store = workspace.store
    numbers = store.numbers
    reach = Reach(store)
    around = Surroundings(numbers, store.labels, store.checkpoint)
    target, undone = request.target, request.undoes
    created = created_of(undone or target)
    own = target.trailers.session if undone is None else None
    tips: dict[str, Checkpoint] = {}
    changed: dict[str, Checkpoint] = {}
    here = (entry for entry in numbers.newest_first() if entry.place == numbers.place)
    for entry in islice(here, _LOOKED_AT):
        # Numbers of what was pulled say nothing about when it was made.
        if entry.created <= created or len(changed) == _SINCE:
            break
        session = entry.key.session
        # A restore is the act of a person, not a session's work.
        if session == own or session in changed or entry.trigger == RESTORE:
            continue
        # Damage in another session must not stop this one.
        checkpoint = readable(reach, entry)
        if checkpoint is None:
            continue
        tip = tips.setdefault(session, checkpoint)
        before = around.before(checkpoint)
        if before is None or before.files_oid != checkpoint.files_oid:
            changed[session] = tip
    return tuple(changed.values())


def compute(
    workspace: Workspace,
    txn: Transaction,
    snapshot: Snapshot,
    request: RestoreRequest,
    kept: KeptContents | None = None,
) -> RestorePlan:
    """Returns the plan of a request from a snapshot: the steps, what is in their way.

    `kept` collects the contents that were read, if many files are going to be written.

    Raises:
        CorruptError, UnsafePathError, NotFoundError: as `plan_restore`.
        OutlivedLogsError: for `capture_for`.
    """
    behind = restore_observer().before_plan(workspace, request)
    if not request.files:
        return RestorePlan(request, behind=behind)
    present = Side(snapshot.tree, frozenset(snapshot.empty))
    target = side(request.target)
    _check_paths(request, present, target, files_in(txn))
    undone = brought_by(workspace, request.undoes) if request.undoes else {}
    steps = make_steps(
        workspace,
        present,
        target,
        txn,
        with_logs(request, snapshot),
        snapshot.sparse,
        withheld=_withheld(workspace, request),
        forced=bool(snapshot.state.forced),
        undone=beside(snapshot).union(undone),
    )
    refuse_outlived(workspace, snapshot, steps, request.target.objects)
    planned, chunked = steps, request.target.objects.chunked.__contains__
    first = missing = missing_directories(steps, chunked) if kept is not None else ()
    check_objects(request.target, steps, kept, unread=paths_of(first))
    with durable.storage("scanning the work tree"), workspace.root() as root:
        if request.hunk is not None:
            steps = only_hunk(root, steps, request.hunk, txn)
        steps = take_away(root, steps, undone, request.target)
        if not request.force:
            steps = without_open(root, snapshot, steps)
        ahead = apply.look_ahead(root, steps, tracked=snapshot.tracked)
        ahead.obstacles.extend(
            _kept_by_another_name(root, steps, target, files_in(txn))
        )
    if ahead.already:
        due = [step for step in steps.steps if step.path not in ahead.already]
        steps = steps._replace(steps=tuple(due))
    # A changed plan may have other missing directories.
    if first and steps is not planned:
        missing = missing_directories(steps, chunked)
        unread = paths_of(first) - paths_of(missing)
        check_objects(request.target, plan.only(steps, unread), kept)
    return RestorePlan(request, steps, tuple(ahead.obstacles), behind, missing=missing)


def _check_paths(
    request: RestoreRequest, present: Side, target: Side, read: ReadTree
) -> None:
    """Raises NotFoundError if a path is in neither state."""
    for path in request.paths:
        inside = [
            tree.lookup(state.tree, path, read) or path in state.empty
            for state in (present, target)
        ]
        if not any(inside):
            number = request.target.number
            name = f"#{number}" if number else f"checkpoint {request.target.id}"
            raise NotFoundError(
                f"{show_path(path)} exists neither here nor in {name}",
                hint=f"`gitcp log -- {quoted(show_path(path))}` lists what changed it",
            )


def _kept_by_another_name(
    root: Root, steps: FilePlan, target: Side, read: ReadTree
) -> Iterator[Left]:
    """Yields files that a plan would remove, but the target holds in another spelling.

    A repository inside is not held: no restore brings it back, in whatever spelling.
    """
    going = [step.path for step in steps.steps if step.action == plan.DELETE]
    if not going or not spelling.folds(root):
        return
    written = {step.path for step in steps.steps if step.after is not None}
    held = {
        spelling.key(path): path
        for path, entry in tree.walk(target.tree, read)
        if entry.mode != tree.GITLINK
    }
    for path in going:
        other = held.get(spelling.key(path))
        # A disk that ignores case may keep two Unicode forms; then it lists both.
        if (
            other is not None
            and other not in written
            and not spelling.is_listed(root, other)
        ):
            yield Left(path, f"in the checkpoint it is {show_path(other)}")


def bounds_of(workspace: Workspace) -> Bounds:
    """Returns what the user already has, which a checkpoint made elsewhere is compared with."""
    repository = workspace.repository
    commit, _ = repository.head()
    head = None
    if commit is not None:
        head = repository.objects.commit(bytes.fromhex(commit)).tree
    named = configured(repository, workspace.top)
    return Bounds(head, named, obeyed(repository, workspace.top, named.hooks))


def bounds_for(workspace: Workspace, target: Checkpoint, *, trust: bool) -> Bounds:
    """Returns what `bounds_of` does, if anything of a checkpoint may have to be withheld."""
    # Listing the links of a large project takes longer than a small restore.
    withhold = target.origin.files is not None and not trust
    return bounds_of(workspace) if withhold else Bounds()


def parts_from_head(workspace: Workspace, steps: FilePlan) -> bool:
    """Whether files that a restore changed differ from the commit of HEAD.

    Compares only the first files of a very large restore.
    """
    commit, _ = workspace.repository.head()
    if commit is None:
        return False
    objects = workspace.repository.objects
    files = (one for one in steps.steps if one.action not in {MAKE_DIR, REMOVE_DIR})
    # The restore is done: a damaged commit of the user's must not make it fail.
    with suppress(GitcpError):
        root = objects.commit(bytes.fromhex(commit)).tree
        return any(
            tree.lookup(root, step.path, objects.files) != step.after
            for step in islice(files, _COMPARED)
        )
    return False


def _withheld(workspace: Workspace, request: RestoreRequest) -> Withheld | None:
    if not request.withhold:
        return None
    bounds = bounds_of(workspace)
    return withheld_from(request.target.objects, bounds, request.brought)


def make_steps(
    workspace: Workspace,
    present: Side,
    target: Side,
    txn: Transaction,
    request: RestoreRequest,
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
        steps = plan.make(
            present,
            target,
            files_in(txn),
            selects=plan.selection(request.paths),
            sparse=sparse,
            own=workspace.repository.own_paths,
            withheld=withheld,
        )
    except ValueError as exc:
        raise UnsafePathError(
            f"checkpoint {request.target.id} must not be restored: {exc}",
            hint="nothing was changed; `gitcp verify` lists what is wrong with it",
        ) from exc
    # The steps of named paths do not include ignore files elsewhere that differ.
    forced = forced or bool(request.paths)
    return keep_uncaptured(
        workspace, steps, request.target, files_in(txn), forced=forced, brought=undone
    )
