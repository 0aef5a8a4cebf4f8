"""Restores a checkpoint: plan, save the present state, apply, verify, append."""

import secrets

from gitcp.checkpoints.finish_restore import Restored, finish, naming_both_ways
from gitcp.checkpoints.not_captured import find
from gitcp.checkpoints.restore_plan import Plan, fill_in
from gitcp.checkpoints.save import append, captured
from gitcp.errors import EffectsStandError, NothingToDoError, WouldOverwriteError
from gitcp.format.checkpoint import show_path
from gitcp.git.transaction import transaction
from gitcp.ledger.state import show_call
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft
from gitcp.store.store import Saved
from gitcp.worktree import journal
from gitcp.worktree.capture import Capture, Snapshot
from gitcp.worktree.journal import Journal
from gitcp.worktree.plan import FilePlan

_SHOWN = 5


def restore(workspace: Workspace, wanted: Plan) -> Restored:
    """Carries out a plan that was made by `plan_restore`.

    The work tree is looked at again first; where it changed since, the steps follow
    it, and what was there is saved.

    Raises:
        WouldOverwriteError: something that no checkpoint holds is in the way.
        EffectsStandError: a step reached outside since, and the plan does not say that
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
        wanted = wanted._replace(target=workspace.store.present(wanted.target))
        _check_logs(wanted)
        with workspace.capturing() as capture:
            return _restore(workspace, capture, wanted)


def _check_logs(wanted: Plan) -> None:
    """Reads what the restore's own checkpoint will be made of, before the first write.

    Raises:
        CorruptError, FormatTooNewError: it cannot be read.
    """
    said = wanted.target.manifest
    if wanted.conversation:
        wanted.target.decisions()
        if said.conversation is not None:
            for _ in wanted.target.conversation_stream():
                pass


def _restore(workspace: Workspace, capture: Capture, wanted: Plan) -> Restored:
    with transaction(workspace.repository) as opened:

        def save_present(
            snapshot: Snapshot,
        ) -> tuple[Saved, frozenset[bytes], FilePlan]:
            made = fill_in(workspace, opened, snapshot, wanted)
            _refuse_obstacles(made)
            _refuse_effects(made)
            draft = Draft("before-restore", note=f"before restoring {wanted.target.id}")
            saved = append(workspace, opened, snapshot, draft)
            return saved, snapshot.sparse, made.steps

        saved, sparse, steps = captured(capture, opened, save_present)
    before = saved.checkpoint
    # A tip that cannot be read has to stop the restore before the first write.
    _ = before.manifest
    current = workspace.current()
    onto = wanted.onto or current
    session, branch = wanted.fork or (onto.session, onto.branch)
    entry = Journal(
        checkpoint=secrets.token_hex(6),
        session=session,
        branch=branch,
        target=wanted.target.commit,
        before=before.commit,
        files=wanted.files,
        conversation=wanted.conversation,
        paths=tuple(map(journal.base64, wanted.paths)),
        sparse=tuple(map(journal.base64, sparse)),
        note=wanted.note,
        fork=wanted.fork,
        withhold=wanted.withhold,
        trust=wanted.trust,
        target_id=wanted.target.id,
        before_id=before.id,
    ).holding(steps)
    journal.write(workspace.directory, entry)
    with naming_both_ways():
        return finish(workspace, entry, before if saved.created else None)


def _refuse_obstacles(made: Plan) -> None:
    if not made.obstacles:
        return
    names = [show_path(left.path) for left in made.obstacles]
    raise WouldOverwriteError(
        "content that no checkpoint holds is in the way:"
        f" {', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}",
        paths=names,
        hint="nothing was changed; move it away, or let gitcp capture it:"
        " `gitcp config --add include /PATH`",
    )


def _refuse_effects(made: Plan) -> None:
    steps = made.behind.outside
    if not steps or made.replay:
        return
    names = [show_call(one) for one in steps]
    target = made.target.id
    raise EffectsStandError(
        f"{', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}"
        " happened after it, and a restore does not take that back",
        steps=names,
        hint=f"nothing was changed; `gitcp restore {target} --replay` keeps what was"
        f" recorded of it, `gitcp fork {target} NAME` runs it again in a branch,"
        f" `gitcp undo --effects --to {target}` takes it back",
    )


def last_replaced(workspace: Workspace) -> tuple[Checkpoint, Checkpoint]:
    """Returns what the last restore in the current branch replaced, and that restore.

    Raises:
        NothingToDoError: nothing was restored.
    """
    current = workspace.current()
    store = workspace.store
    tip = store.tip(current.session, current.branch)
    for checkpoint in store.line(tip) if tip else ():
        if checkpoint.trailers.trigger != "restore":
            continue
        replaced = checkpoint.manifest.replaced
        found = _find(workspace, checkpoint, replaced) if replaced else None
        if found is not None:
            return found, checkpoint
    raise NothingToDoError(
        f"nothing was restored in {current.session}/{current.branch}",
        hint="`gitcp log` shows what can be restored",
    )


def _find(workspace: Workspace, start: Checkpoint, ident: str) -> Checkpoint | None:
    for checkpoint in workspace.store.line(start):
        if checkpoint.id == ident:
            return checkpoint
    return find(workspace, ident)
