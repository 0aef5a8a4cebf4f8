"""An unfinished restore: its journal, compared with the files."""

from base64 import b64decode
from contextlib import AbstractContextManager
from typing import NamedTuple

from gitcp import durable
from gitcp.checkpoints.restore_plan import bounds_of, make_steps, side
from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.errors import CorruptError
from gitcp.format import tree
from gitcp.git.transaction import Transaction, files_in
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.find_current import find_by_id
from gitcp.trust.withheld import withheld_from
from gitcp.worktree import apply
from gitcp.worktree import journal as journals
from gitcp.worktree import plan as plans
from gitcp.worktree.files import Root
from gitcp.worktree.journal import Journal
from gitcp.worktree.plan import FilePlan, FileStep, Left
from gitcp.worktree.snapshot import Snapshot

_UNLIKE = "differs from the checkpoint"


class OpenRestore(NamedTuple):
    """A restore whose journal is written: the request, and the state before it."""

    workspace: Workspace
    journal: Journal
    request: RestoreRequest
    before: Checkpoint

    @property
    def branch(self) -> Current:
        """The branch that it is done on."""
        return Current(self.journal.session, self.journal.branch)

    @property
    def sparse(self) -> frozenset[bytes]:
        """The paths that a sparse checkout leaves out."""
        return frozenset(map(b64decode, self.journal.sparse))

    def close(self) -> None:
        """Removes the journal: the restore is finished or aborted."""
        journals.remove(self.workspace.directory)


def under_way(workspace: Workspace) -> Journal | None:
    """Returns the journal of the restore that began here and has not ended, if one has.

    Raises:
        CorruptError: the journal is damaged.
    """
    return journals.read(workspace.directory)


def open_restore(workspace: Workspace, journal: Journal) -> OpenRestore:
    """Reads what a journal names.

    Raises:
        CorruptError: a checkpoint is missing or damaged.
    """
    target = _named(workspace, journal.target, journal.target_id)
    before = _named(workspace, journal.before, journal.before_id)
    for one in (target, before):
        # The journal names contents, which may be chunked.
        one.objects.chunked.learn_of(one.raw.tree)
    request = RestoreRequest(
        target,
        journal.files,
        journal.conversation,
        tuple(map(b64decode, journal.paths)),
        journal.note,
        journal.fork,
        trust=journal.trust,
    )
    return OpenRestore(workspace, journal, request, before)


def _named(workspace: Workspace, commit: str, ident: str | None) -> Checkpoint:
    """Returns a checkpoint of the journal; pruning may have given it another commit."""
    try:
        checkpoint = workspace.store.checkpoint(commit)
    except CorruptError:
        checkpoint = find_by_id(workspace.store, ident) if ident is not None else None
        if checkpoint is None:
            raise
    if checkpoint is None:
        raise CorruptError(
            "the restore journal names commits that are not checkpoints",
            hint="look at `gitcp log`, restore by hand and remove restore.json",
        )
    return checkpoint


def steps_of(restore: OpenRestore, txn: Transaction) -> FilePlan:
    """Returns the steps that the journal holds; those of gitcp 0.1.0 are made again."""
    workspace, request = restore.workspace, restore.request
    held = restore.journal.plan()
    if held is not None:
        return held
    withheld = None
    if restore.journal.withhold:
        withheld = withheld_from(request.target.objects, bounds_of(workspace))
    return make_steps(
        workspace,
        side(restore.before),
        side(request.target),
        txn,
        request,
        restore.sparse,
        withheld=withheld,
    )


def looking() -> AbstractContextManager[None]:
    """Makes an error of the disk say that files were compared."""
    return durable.storage("comparing what is there with the checkpoint")


def unlike_target(
    root: Root,
    restore: OpenRestore,
    txn: Transaction,
    snapshot: Snapshot,
    steps: FilePlan,
    left: list[Left],
) -> list[Left]:
    """Returns the paths that are not as the target has them, besides the known ones.

    Compares every path of the target that the request covers, with or without a step
    for it, and every path that a step removes.
    """
    selects = plans.selection(restore.request.paths)
    known = restore.sparse | {item.path for item in (*steps.left, *left)}
    # For a single hunk, the plan writes a file that the target does not hold.
    ours = {step.path: step.after for step in steps.steps}
    changes = tree.diff(snapshot.tree, restore.request.target.files_tree, files_in(txn))
    unlike = []
    for path, present, held in changes:
        if path in known or not selects(path) or (held is None and path not in ours):
            continue
        target = held and (ours.get(path) or held)
        # A nested repository stays if no path of the target goes there.
        expected = target or present
        if expected is not None and expected.mode == tree.GITLINK:
            continue
        # A file that is ignored or too large by now was not captured, but may be as it
        # should.
        if not apply.is_done(root, FileStep(plans.WRITE, path, None, target)):
            unlike.append(Left(path, _UNLIKE))
    return unlike


def unlike_before(
    restore: OpenRestore, txn: Transaction, left: list[Left]
) -> list[Left]:
    """Returns the paths that a restore could change, and that are not as they were before it."""
    known = restore.sparse | {item.path for item in left}
    selects = plans.selection(restore.request.paths)
    changes = tree.diff(
        restore.request.target.files_tree, restore.before.files_tree, files_in(txn)
    )
    unlike = []
    with looking(), restore.workspace.root() as root:
        for path, _, before in changes:
            if before is None or before.mode == tree.GITLINK or path in known:
                continue
            step = FileStep(plans.WRITE, path, None, before)
            if selects(path) and not apply.is_done(root, step):
                unlike.append(Left(path, _UNLIKE))
    return unlike
