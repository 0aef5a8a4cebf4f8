"""Saves a checkpoint: captures files, adds conversation and decisions, appends."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from gitcp import notices
from gitcp.errors import CorruptError, GitcpError, StorageError
from gitcp.format.checkpoint import timestamp
from gitcp.format.log import AgentSession, Decision, Waiting
from gitcp.git.transaction import Transaction, transaction
from gitcp.names import check_text
from gitcp.project import extensions, pending_decisions, pending_rewrites
from gitcp.project.workspace import AfterSave, Current, Workspace, files_of
from gitcp.store.append import append_checkpoint
from gitcp.store.draft import Draft, Saved
from gitcp.worktree import journal
from gitcp.worktree.capture import Capture
from gitcp.worktree.snapshot import Snapshot

T = TypeVar("T")
# How long a decision waits for its own session, in seconds.
_PATIENCE = 3_600.0


def save(
    workspace: Workspace,
    draft: Draft,
    *,
    session: str | None = None,
    branch: str | None = None,
    include: tuple[str, ...] = (),
    complete: Callable[[Draft], Draft] | None = None,
    steer: bool = True,
    agent: AgentSession | None = None,
) -> Saved:
    """Makes a checkpoint of the work tree, unless nothing changed.

    Without `session` and `branch` it goes to the current ones; where they are named, they
    become the current ones, unless `steer` is false: a hook must not move a person. Pending
    decisions go into it, except those of sessions other than that of the `agent`. `include`
    are globs of ignored paths to capture as well. `complete` adds to the draft what takes
    time to find out: git scans meanwhile.

    Raises:
        RestoreInterruptedError: a restore has to be ended first.
        BusyError: another save or restore is under way.
        StorageError, GitFailedError: nothing was saved.
    """
    _check_texts(draft)
    workspace.refresh()
    with workspace.locked():
        journal.refuse_if_open(workspace.directory)
        with (
            workspace.capturing(include, watched=True) as capture,
            transaction(workspace.repository) as txn,
        ):
            whole = complete(draft) if complete else draft
            saved = captured(
                capture,
                txn,
                lambda snapshot: append(
                    workspace,
                    txn,
                    snapshot,
                    whole,
                    session=session,
                    branch=branch,
                    steer=steer,
                    agent=agent,
                ),
            )
    if saved.created:
        for name in extensions.AFTER_SAVE:
            task: AfterSave = extensions.load(name).after_save
            task(workspace, saved.checkpoint)
    return saved


def append(
    workspace: Workspace,
    txn: Transaction,
    snapshot: Snapshot,
    draft: Draft,
    *,
    session: str | None = None,
    branch: str | None = None,
    steer: bool = True,
    agent: AgentSession | None = None,
) -> Saved:
    """Makes a checkpoint of a snapshot; the caller holds the work tree's lock."""
    noted = workspace.noted()
    current = noted or workspace.current()
    session = session or current.session
    branch = branch or (current.branch if session == current.session else "main")
    waiting = pending_decisions.waiting(workspace.directory)
    others = _of_others(workspace, waiting, agent)
    mine = [one.entry for one in waiting if one not in others]
    pending = _unsaved(workspace, mine, session, branch)
    rewritten = pending_rewrites.waiting(workspace.directory)
    draft = draft._replace(
        files=files_of(snapshot),
        decisions=(*pending, *draft.decisions),
        rewrites=rewritten,
    )
    saved = append_checkpoint(workspace.store, txn, session, branch, draft)
    if mine:
        pending_decisions.keep(workspace.directory, others)
    pending_rewrites.forget(workspace.directory, rewritten)
    if steer:
        workspace.make_current(session, branch)
    if saved.created and saved.checkpoint.seq == 1 and noted is not None:
        was_here = noted == Current(session, branch)
        _tell_if_lost(workspace, session, branch, was_here=was_here)
    return saved


def _tell_if_lost(
    workspace: Workspace, session: str, branch: str, *, was_here: bool
) -> None:
    """Warns if a new branch has the name of one that lost its ref.

    The check takes time in a large repository, so it is made only on a suspicion: this
    work tree was on the branch, or no other branch exists though one did.
    """
    if not was_here and len(workspace.store.refs()) > 1:
        return
    from gitcp.maintenance.lost_refs import lost  # noqa: PLC0415  hardly ever

    # The save is done, and must not fail because of this.
    with suppress(GitcpError):
        for line in lost(workspace):
            if not was_here or (line.session, line.branch) == (session, branch):
                notices.tell(
                    f"{line.session}/{line.branch} has lost its ref, and with it"
                    f" its checkpoints up to {line.tip.id}. `gitcp verify --lost"
                    " --repair` restores them"
                )


def _of_others(
    workspace: Workspace, waiting: list[Waiting], agent: AgentSession | None
) -> list[Waiting]:
    """Returns the pending decisions that wait for a checkpoint of another session.

    A killed agent makes no checkpoint: after a while any other checkpoint takes them.
    """
    if not any(one.by for one in waiting):
        return []
    now = workspace.store.time()
    # A time in the future comes from a clock that was wrong.
    since, until = timestamp(now - _PATIENCE), timestamp(now + _PATIENCE)
    return [
        one
        for one in waiting
        if one.by is not None
        and one.by != agent
        and since < (one.entry.at or "") < until
    ]


def _unsaved(
    workspace: Workspace, waiting: list[Decision], session: str, branch: str
) -> list[Decision]:
    """Leaves out saved decisions: a save was killed before it could clear them away."""
    tip = workspace.store.tip(session, branch) if waiting else None
    if tip is None:
        return waiting
    with suppress(CorruptError):
        held = set(tip.decisions())
        return [entry for entry in waiting if entry not in held]
    return waiting


def _check_texts(draft: Draft) -> None:
    for what, text in (
        ("the note", draft.note),
        ("the label", draft.label),
        ("the trigger", draft.trigger),
    ):
        if text is not None:
            check_text(text, what)
    pending_decisions.check_decisions(draft.decisions)


def captured(
    capture: Capture,
    txn: Transaction,
    use: Callable[[Snapshot], T],
) -> T:
    """Captures, hands the snapshot to `use`, and remembers it if that went well.

    See `Capture.using`.
    """
    snapshot, result = capture.using(txn, use)
    remember(capture, snapshot)
    return result


def remember(capture: Capture, snapshot: Snapshot) -> None:
    """Stores the scan's state, if the disk allows it."""
    # Derived (I7): losing it costs time, and what was saved is saved.
    with suppress(StorageError):
        capture.remember(snapshot)
