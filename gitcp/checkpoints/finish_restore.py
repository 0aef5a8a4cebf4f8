"""Finishes or aborts a restore from its journal, also one that was interrupted."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, NoReturn

from gitcp.checkpoints.not_captured import note_brought
from gitcp.checkpoints.open_restore import (
    OpenRestore,
    looking,
    open_restore,
    steps_of,
    under_way,
    unlike_before,
    unlike_target,
)
from gitcp.checkpoints.restore_observer import restore_observer
from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.checkpoints.save import captured
from gitcp.errors import (
    CorruptError,
    GitcpError,
    NothingToDoError,
    PartialError,
)
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.git.transaction import Transaction, transaction
from gitcp.project.workspace import Workspace, files_of
from gitcp.store.append import append_checkpoint
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, Saved
from gitcp.store.find_current import find_current
from gitcp.trust import trusted_remotes
from gitcp.worktree import apply, leftovers
from gitcp.worktree import journal as journals
from gitcp.worktree.journal import Journal
from gitcp.worktree.kept_contents import KeptContents
from gitcp.worktree.plan import WRITE, FilePlan, Left
from gitcp.worktree.read import Written
from gitcp.worktree.replace import CHANGED
from gitcp.worktree.snapshot import Snapshot
from gitcp.worktree.staging import Staging

_WAYS = "`gitcp restore --continue` finishes it; `gitcp restore --abort` undoes it"


class Restored(NamedTuple):
    """The result of a restore: its own checkpoint, and the one of the state before it."""

    checkpoint: Checkpoint
    saved: Checkpoint | None
    plan: FilePlan
    left: tuple[Left, ...]


class Ready(NamedTuple):
    """What a restore has at hand before its first change.

    That is the plan in its journal, contents that were read, and files that were written
    already.
    """

    plan: FilePlan
    kept: KeptContents | None = None
    staging: Staging | None = None


@contextmanager
def naming_both_ways() -> Iterator[None]:
    """Adds to an error that stops a restore half way how to finish it."""
    try:
        yield
    except PartialError:
        raise
    except GitcpError as exc:
        exc.hint = f"{exc.hint}, then {_WAYS}" if exc.hint else _WAYS
        raise
    except KeyboardInterrupt as exc:
        exc.add_note(f"the restore is only half done: {_WAYS}")
        raise


def finish(
    workspace: Workspace,
    journal: Journal,
    saved: Checkpoint | None = None,
    *,
    again: bool = False,
    ready: Ready | None = None,
) -> Restored:
    """Applies, verifies, appends, and removes the journal; repeatable (I6).

    `again` says that an earlier run may have left temporary files.

    Raises:
        PartialError: done, but files changed meanwhile and were left.
    """
    done = _appended(workspace, journal)
    if done is not None:
        _make_current(workspace, journal)
        journals.remove(workspace.directory)
        return Restored(done, saved, FilePlan((), ()), ())
    restore = open_restore(workspace, journal)
    request, before = restore.request, restore.before
    steps = FilePlan((), ())
    left: list[Left] = []
    written: Written = {}
    with transaction(workspace.repository) as txn:
        if request.files:
            ready = ready or Ready(steps_of(restore, txn))
            steps, token = ready.plan, journal.checkpoint
            left = _apply(workspace, token, ready, again=again, written=written)
        # Before the checkpoint is made: its ledger position includes these records.
        restore_observer().after_apply(
            workspace, request, restore.branch, journal.checkpoint
        )
        with workspace.capturing(backups=False) as capture:
            capture.written = written
            if ready is not None and ready.staging is not None:
                capture.proven = ready.staging.proven
            result = captured(
                capture,
                txn,
                lambda snapshot: _append(restore, txn, snapshot, steps, left),
            )
    trusted_remotes.note_made(
        workspace.store,
        result.checkpoint,
        request.target if request.conversation else before,
    )
    _make_current(workspace, journal)
    restore.close()
    if left:
        raise PartialError(
            f"{len(left)} paths changed while they were restored and were left alone",
            left=_lines(left),
            hint=f"{_way_out(left)}checkpoint {result.checkpoint.id} holds the present"
            " state",
        )
    return Restored(result.checkpoint, saved, steps, steps.left)


def resume(workspace: Workspace) -> Restored:
    """Finishes a restore that was interrupted; repeatable.

    Raises:
        NothingToDoError: no restore was interrupted.
    """
    with workspace.locked():
        journal = _open_journal(workspace)
        with naming_both_ways():
            return finish(workspace, journal, again=True)


def abort(workspace: Workspace) -> Checkpoint:
    """Undoes an interrupted restore, and returns the checkpoint whose state is back.

    If only the journal was left to remove, the restore stands, and this returns the
    restore's own checkpoint.

    Raises:
        NothingToDoError: no restore was interrupted.
        PartialError: files changed meanwhile, or cannot be read from the store any
            more, and were left alone.
    """
    with workspace.locked():
        journal = _open_journal(workspace)
        with naming_both_ways():
            return _abort(workspace, journal)


def _abort(workspace: Workspace, journal: Journal) -> Checkpoint:
    try:
        done = _appended(workspace, journal)
    except CorruptError:
        # If the branch cannot be read, the files still can be put back.
        done = None
    if done is not None:
        _make_current(workspace, journal)
        journals.remove(workspace.directory)
        return done
    steps = journal.plan()
    if steps is not None and not _is_readable(workspace, journal):
        _abort_unread(workspace, journal, steps)
    restore = open_restore(workspace, journal)
    left: list[Left] = []
    if restore.request.files:
        with transaction(workspace.repository) as txn:
            steps = steps_of(restore, txn)
            left = _take_back(workspace, journal, steps)
            left += unlike_before(restore, txn, left)
        restore_observer().on_abort(workspace, restore.branch, journal.checkpoint)
    restore.close()
    if left:
        raise PartialError(
            f"{len(left)} paths are not as they were before the restore",
            left=_lines(left),
            hint=f"checkpoint {restore.before.id} holds their earlier state",
        )
    return restore.before


def _make_current(workspace: Workspace, journal: Journal) -> None:
    """Makes the journal's branch current if a fork made it or a person named it."""
    if journal.fork is not None or journal.named:
        workspace.make_current(journal.session, journal.branch)


def _is_readable(workspace: Workspace, journal: Journal) -> bool:
    try:
        restore = open_restore(workspace, journal)
        for checkpoint in (restore.request.target, restore.before):
            for _ in tree.diff(None, checkpoint.files_tree, checkpoint.objects.tree):
                pass
    except CorruptError:
        return False
    return True


def _abort_unread(workspace: Workspace, journal: Journal, steps: FilePlan) -> NoReturn:
    """Ends a restore from its journal alone: its checkpoints cannot be read any more.

    Raises:
        PartialError: always; it names what could not be put back.
    """
    left = _take_back(workspace, journal, steps)
    journals.remove(workspace.directory)
    raise PartialError(
        "the restore was undone, but its checkpoints can no longer be read",
        left=_lines(left),
        hint="`gitcp verify` shows what is damaged",
    )


def _way_out(left: list[Left]) -> str:
    """Returns the beginning of a hint: what to do about paths that were left alone."""
    if all(one.reason.startswith(CHANGED) for one in left):
        return "stop the program that writes to them, then restore again; "
    return ""


def _lines(left: list[Left]) -> list[str]:
    return [f"{show_path(item.path)}: {item.reason}" for item in left]


def _apply(
    workspace: Workspace,
    token: str,
    ready: Ready,
    *,
    again: bool,
    whole: FilePlan | None = None,
    tolerant: bool = False,
    written: Written | None = None,
) -> list[Left]:
    """Carries steps out, after it has cleaned up what an earlier run of the whole plan left."""
    steps, kept, staging = ready
    objects = workspace.repository.objects
    objects.expect(sum(step.action == WRITE for step in steps.steps))
    stream = objects.content
    with workspace.root() as root:
        left = leftovers.settle(root, whole or steps, stream, token) if again else []
        known = {item.path for item in left}
        more = apply.apply(
            root,
            steps,
            stream,
            token=token,
            tolerant=tolerant,
            streams=partial(kept.contents, objects) if kept else objects.contents,
            written=written,
            staging=staging,
        )
        if staging is not None and written is not None:
            written.update(staging.written)
            left += staging.left
        return left + [item for item in more if item.path not in known]


def _take_back(workspace: Workspace, journal: Journal, steps: FilePlan) -> list[Left]:
    token, back = journal.checkpoint, steps.reversed()
    ready = Ready(back)
    return _apply(workspace, token, ready, whole=steps, again=True, tolerant=True)


def _append(
    restore: OpenRestore,
    txn: Transaction,
    snapshot: Snapshot,
    steps: FilePlan,
    left: list[Left],
) -> Saved:
    """Compares what is there with the target, then appends the `restore` checkpoint."""
    workspace, journal, request, before = restore
    target = request.target
    if request.files:
        note_brought(workspace, journal.checkpoint, steps)
        with looking(), workspace.root() as root:
            left += unlike_target(root, restore, txn, snapshot, steps, left)
    draft = Draft(
        "restore",
        files=files_of(snapshot),
        note=request.note or f"restored {_part_of(request)}{target.id}",
        allow_empty=True,
        logs_from=target if request.conversation else before,
        restored_from=target.id,
        replaced=before.id,
        fork_of=find_current(workspace.store, target) if request.fork else None,
        id=journal.checkpoint,
        bases=(target.raw.tree, before.raw.tree),
    )
    return append_checkpoint(
        workspace.store, txn, journal.session, journal.branch, draft
    )


def _part_of(request: RestoreRequest) -> str:
    """Returns the part of its target that a restore takes, for its note; empty if it is all."""
    if not request.files:
        return "the conversation of "
    if not request.paths:
        return ""
    more = len(request.paths) - 1
    others = f" and {more} more" if more else ""
    return f"{show_path(request.paths[0])}{others} of "


def _appended(workspace: Workspace, journal: Journal) -> Checkpoint | None:
    """Returns the checkpoint of a restore that was interrupted after its commit point."""
    tip = workspace.store.tip(journal.session, journal.branch)
    if tip is None:
        return None
    for checkpoint in workspace.store.line(tip):
        if checkpoint.id == journal.checkpoint:
            return checkpoint
        if checkpoint.commit == journal.before or checkpoint.id == journal.before_id:
            return None
    return None


def _open_journal(workspace: Workspace) -> Journal:
    journal = under_way(workspace)
    if journal is None:
        raise NothingToDoError(
            "there is no interrupted restore here",
            hint="`gitcp restore SEL` starts one",
        )
    return journal
