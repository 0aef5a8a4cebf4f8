"""Restores a checkpoint: plan, save the present state, apply, verify, append."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from gitcp.checkpoints import numbered
from gitcp.checkpoints.agreed_plan import refuse_if_outdated
from gitcp.checkpoints.finish_restore import (
    Ready,
    Restored,
    finish,
    naming_both_ways,
)
from gitcp.checkpoints.open_databases import capture_for
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.restore_observer import restore_observer
from gitcp.checkpoints.restore_plan import RestorePlan, compute
from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.checkpoints.save import append, remember
from gitcp.checkpoints.standing import RESTORE, continues_on, stands_on
from gitcp.checkpoints.target_objects import check_objects
from gitcp.errors import (
    CorruptError,
    NotFoundError,
    NothingToDoError,
    TransferError,
    WouldOverwriteError,
)
from gitcp.format.checkpoint import show_path
from gitcp.git.transaction import transaction
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, Saved
from gitcp.store.find_current import find_by_id, find_current
from gitcp.worktree import journal
from gitcp.worktree import plan as plans
from gitcp.worktree.capture import Capture
from gitcp.worktree.journal import Journal
from gitcp.worktree.kept_contents import KeptContents
from gitcp.worktree.missing import paths_of
from gitcp.worktree.plan import FilePlan
from gitcp.worktree.snapshot import Snapshot
from gitcp.worktree.staging import Staging

_SHOWN = 5


class Performed(NamedTuple):
    """A restore that was done, and the plan that it followed."""

    done: Restored
    plan: RestorePlan


def restore(
    workspace: Workspace, request: RestoreRequest, agreed: FilePlan | None = None
) -> Restored:
    """Carries out a request; arguments and errors are those of `perform`."""
    return perform(workspace, request, agreed).done


def perform(
    workspace: Workspace, request: RestoreRequest, agreed: FilePlan | None = None
) -> Performed:
    """Carries out a request, by a plan that is made under the work tree's lock.

    The present state is saved first. `agreed` is the plan that a person has agreed to.

    Raises:
        PlanOutdatedError: files have changed, and the plan is no longer what was agreed to.
        WouldOverwriteError: something that no checkpoint holds is in the way.
        EffectsStandError: a step reached outside since, and the request does not say that
            its result is to be replayed.
        PartialError: done, but files changed meanwhile and were left.
        NotFoundError: the checkpoint has been pruned since.
        RestoreInterruptedError: an earlier restore has to be ended first.
        BusyError: another save or restore is under way.
    """
    workspace.refresh()
    with workspace.locked():
        journal.refuse_if_open(workspace.directory)
        # It was shown, and asked about, before anything was locked.
        target = find_current(workspace.store, request.target)
        request = request._replace(target=target)
        _check_logs(request)
        with workspace.capturing(backups=False) as capture:
            return _restore(workspace, capture, request, agreed, KeptContents())


def _check_logs(request: RestoreRequest) -> None:
    """Reads the logs for the restore's own checkpoint, before the first write.

    Raises:
        CorruptError, FormatTooNewError: the checkpoint cannot be read.
    """
    manifest = request.target.manifest
    if request.conversation:
        request.target.decisions()
        if manifest.conversation is not None:
            for _ in request.target.conversation_stream():
                pass


def _restore(
    workspace: Workspace,
    capture: Capture,
    request: RestoreRequest,
    agreed: FilePlan | None,
    kept: KeptContents,
) -> Performed:
    stood = stands_on(workspace)
    with transaction(workspace.repository) as txn:

        def save_present(snapshot: Snapshot) -> tuple[Saved, RestorePlan]:
            plan = compute(workspace, txn, snapshot, request, kept)
            _refuse_obstacles(plan)
            if agreed is not None:
                refuse_if_outdated(plan, agreed)
            restore_observer().refuse(request, plan.behind)
            note = f"before restoring {request.target.id}"
            draft = Draft("before-restore", note=note)
            saved = append(
                workspace,
                txn,
                snapshot,
                draft,
                session=stood.session,
                branch=stood.branch,
                steer=False,
            )
            return saved, plan

        snapshot, (saved, plan) = capture_for(capture, txn, save_present)
        steps = plan.steps
        _remember_others(capture, snapshot, steps)
        if request.hunk is not None:
            # No checkpoint holds the new content of this file yet.
            txn.store()
    before = saved.checkpoint
    # A tip that cannot be read has to stop the restore before the first write.
    _ = before.manifest
    onto = request.onto or continues_on(workspace, request, stood)
    session, branch = request.fork or (onto.session, onto.branch)
    entry = Journal(
        checkpoint=os.urandom(6).hex(),
        session=session,
        branch=branch,
        target=request.target.commit,
        before=before.commit,
        files=request.files,
        conversation=request.conversation,
        paths=tuple(map(journal.base64, request.paths)),
        sparse=tuple(map(journal.base64, snapshot.sparse)),
        note=request.note,
        fork=request.fork,
        withhold=request.withhold,
        trust=request.trust,
        target_id=request.target.id,
        before_id=before.id,
        named=request.onto is not None,
    ).holding(steps)
    replaced = before if saved.created else None
    return Performed(_carry_out(workspace, entry, replaced, plan, kept), plan)


def _carry_out(
    workspace: Workspace,
    entry: Journal,
    saved: Checkpoint | None,
    plan: RestorePlan,
    kept: KeptContents,
) -> Restored:
    """Writes the journal, then does what it says."""
    journal.write(workspace.directory, entry)
    with ExitStack() as stack:
        try:
            ahead = stack.enter_context(_written_ahead(workspace, entry, plan, kept))
        except (CorruptError, TransferError):
            # Nothing was changed so far.
            journal.remove(workspace.directory)
            raise
        with naming_both_ways():
            ready = Ready(plan.steps, kept, ahead)
            return finish(workspace, entry, saved, ready=ready)


@contextmanager
def _written_ahead(
    workspace: Workspace, entry: Journal, plan: RestorePlan, kept: KeptContents
) -> Iterator[Staging | None]:
    """Has git write the missing directories of a plan, beside their places.

    If the result is not what the checkpoint holds, it is removed, and the contents are
    read as for any other file.

    Raises:
        CorruptError, TransferError: the target cannot be read.
    """
    if not plan.missing or workspace.lock is None:
        yield None
        return
    with (
        workspace.root() as root,
        Staging(
            workspace.repository,
            root,
            plan.missing,
            token=entry.checkpoint,
            lock=workspace.lock,
        ) as staging,
    ):
        with naming_both_ways():
            written = staging.write()
        if not written:
            unread = paths_of(plan.missing)
            check_objects(plan.target, plans.only(plan.steps, unread), kept)
        yield staging


def _remember_others(capture: Capture, snapshot: Snapshot, steps: FilePlan) -> None:
    """Stores the scan's state, unless every file in it is about to change."""
    changing = {step.path for step in steps.steps}
    if capture.is_watched or not capture.looked_at <= changing:
        remember(capture, snapshot)


def _refuse_obstacles(plan: RestorePlan) -> None:
    if not plan.obstacles:
        return
    names = [show_path(left.path) for left in plan.obstacles]
    raise WouldOverwriteError(
        "content that no checkpoint holds is in the way:"
        f" {', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}",
        paths=names,
        hint="nothing was changed; move it away, or let gitcp capture it:"
        " `gitcp config --add include /PATH`",
    )


def last_replaced(workspace: Workspace) -> tuple[Checkpoint, Checkpoint]:
    """Returns what the last restore in this work tree replaced, and that restore.

    Raises:
        NothingToDoError: nothing was restored.
        NotFoundError: one of the two checkpoints was pruned, or is damaged.
    """
    numbered.with_numbers(workspace)
    reach = Reach(workspace.store)
    hint = "`gitcp log` shows what can be restored"
    for entry in workspace.store.numbers.newest_first(RESTORE):
        if entry.place != workspace.store.numbers.place:
            continue
        # An older restore is not the last one: undoing it would surprise the user.
        restored = readable(reach, entry)
        if restored is None:
            raise NotFoundError(
                f"the last restore, #{entry.number}, has been pruned or is damaged",
                hint=hint,
            )
        replaced = restored.manifest.replaced
        if replaced is None:
            continue
        before = _find(workspace, restored, replaced)
        if before is None:
            raise NotFoundError(
                f"the state that the restore #{entry.number} replaced has been pruned",
                hint=hint,
            )
        return before, restored
    raise NothingToDoError("there is no restore to undo in this work tree", hint=hint)


def _find(workspace: Workspace, start: Checkpoint, ident: str) -> Checkpoint | None:
    for checkpoint in workspace.store.line(start):
        if checkpoint.id == ident:
            return checkpoint
    return find_by_id(workspace.store, ident)
