"""Restoring: plan, save what is there, apply, verify, append (design, part 5)."""

import base64
import secrets
from typing import NamedTuple

from gitcp.errors import (
    CorruptError,
    EffectsStandError,
    NothingToDoError,
    PartialError,
    StorageError,
    WouldOverwriteError,
)
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.git.transaction import Transaction, transaction
from gitcp.ops import effects
from gitcp.ops.book import show_call
from gitcp.ops.planning import (
    Plan,
    fill_in,
    make_steps,
    side,
    unseen_plan,
)
from gitcp.ops.save import Request, append, captured
from gitcp.ops.workspace import Current, Workspace, files_of
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft
from gitcp.store.store import Saved
from gitcp.worktree import apply, journal, leftovers, plan
from gitcp.worktree.capture import Capture, Snapshot
from gitcp.worktree.files import Root
from gitcp.worktree.journal import Journal
from gitcp.worktree.plan import FilePlan, Left

_SHOWN = 5


class Restored(NamedTuple):
    """What a restore did: its own checkpoint, the one that holds what was replaced."""

    checkpoint: Checkpoint
    saved: Checkpoint | None
    plan: FilePlan
    left: tuple[Left, ...]


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
            wanted.target.conversation()


def _restore(workspace: Workspace, capture: Capture, wanted: Plan) -> Restored:
    with transaction(workspace.repository) as opened:

        def save_present(snapshot: Snapshot) -> tuple[Saved, frozenset[bytes]]:
            made = fill_in(workspace, opened, snapshot, wanted)
            _refuse_obstacles(made)
            _refuse_effects(made)
            request = Request(
                trigger="before-restore", note=f"before restoring {wanted.target.id}"
            )
            return append(workspace, opened, snapshot, request), snapshot.sparse

        saved, sparse = captured(capture, opened, save_present)
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
        paths=tuple(base64.b64encode(path).decode() for path in wanted.paths),
        sparse=tuple(base64.b64encode(path).decode() for path in sparse),
        note=wanted.note,
        fork=wanted.fork,
        withhold=wanted.withhold,
        trust=wanted.trust,
    )
    journal.write(workspace.directory, entry)
    return _finish(workspace, entry, before if saved.created else None)


def _refuse_obstacles(made: Plan) -> None:
    if not made.obstacles:
        return
    names = [show_path(left.path) for left in made.obstacles]
    raise WouldOverwriteError(
        "what no checkpoint holds is in the way:"
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


def _finish(
    workspace: Workspace, entry: Journal, saved: Checkpoint | None = None
) -> Restored:
    """Applies, verifies, appends, and removes the journal; repeatable (I6)."""
    done = _appended(workspace, entry)
    if done is not None:
        workspace.make_current(entry.session, entry.branch)
        journal.remove(workspace.directory)
        return Restored(done, saved, FilePlan((), ()), ())
    target, before = _both(workspace, entry)
    steps = FilePlan((), ())
    left: list[Left] = []
    with transaction(workspace.repository) as opened:
        if entry.files:
            steps = _steps(workspace, entry, target, before, opened)
            left = _apply(workspace, entry, steps, steps)
        if entry.files and not entry.paths and not entry.fork:
            # Before the checkpoint: what it says of the ledger includes this.
            place = Current(entry.session, entry.branch)
            here = workspace.current()
            if not effects.arrives(workspace.store, here, place, target):
                effects.went_back(workspace.store, place, target, entry.checkpoint)
        with workspace.capturing() as capture:
            result = captured(
                capture,
                opened,
                lambda snapshot: _append(
                    workspace, opened, entry, target, before, snapshot, steps, left
                ),
            )
    workspace.make_current(entry.session, entry.branch)
    journal.remove(workspace.directory)
    if left:
        raise PartialError(
            f"{len(left)} paths changed while they were restored and were left alone",
            left=[f"{show_path(item.path)}: {item.reason}" for item in left],
            hint=f"checkpoint {result.checkpoint.id} holds what is there now",
        )
    return Restored(result.checkpoint, saved, steps, steps.left)


def _steps(
    workspace: Workspace,
    entry: Journal,
    target: Checkpoint,
    before: Checkpoint,
    opened: Transaction,
) -> FilePlan:
    sparse = frozenset(map(base64.b64decode, entry.sparse))
    return make_steps(
        workspace,
        side(before),
        side(target),
        opened,
        _wanted(entry, target),
        sparse,
        withhold=entry.withhold,
    )


def _apply(
    workspace: Workspace, entry: Journal, whole: FilePlan, steps: FilePlan
) -> list[Left]:
    stream = workspace.repository.objects.stream
    with workspace.root() as root:
        try:
            left = leftovers.settle(root, whole, stream, entry.checkpoint)
            known = {item.path for item in left}
            found = apply.apply(root, steps, stream, token=entry.checkpoint)
            return left + [item for item in found if item.path not in known]
        except StorageError as exc:
            raise StorageError(
                exc.message,
                hint=f"{exc.hint}, then `gitcp restore --continue` finishes it;"
                " `--abort` takes it back",
            ) from exc


def _append(
    workspace: Workspace,
    opened: Transaction,
    entry: Journal,
    target: Checkpoint,
    before: Checkpoint,
    snapshot: Snapshot,
    steps: FilePlan,
    left: list[Left],
) -> Saved:
    """Compares what is there with the plan, then appends the `restore` checkpoint."""
    known = {item.path for item in left}
    with workspace.root() as root:
        left += _unlike(root, opened, snapshot, steps, known)
    return workspace.store.append(
        opened,
        Draft(
            session=entry.session,
            branch=entry.branch,
            trigger="restore",
            files=files_of(snapshot),
            note=entry.note or f"restored {target.id}",
            allow_empty=True,
            logs_from=target if entry.conversation else before,
            restored_from=target.id,
            replaced=before.id,
            fork_of=workspace.store.present(target) if entry.fork else None,
            id=entry.checkpoint,
            bases=(target.raw.tree, before.raw.tree),
        ),
    )


def _unlike(
    root: Root,
    opened: Transaction,
    snapshot: Snapshot,
    steps: FilePlan,
    known: set[bytes],
) -> list[Left]:
    """Returns the paths that are not as the plan has them, besides the known ones."""
    found = []
    for step in steps.steps:
        if step.path in known or step.action in {plan.MAKE_DIR, plan.REMOVE_DIR}:
            continue
        entry = tree.lookup(snapshot.tree, step.path, opened.tree)
        if entry is not None and entry.mode == tree.DIRECTORY:
            entry = None
        # What is ignored or too large by now is not captured, but may well be right.
        if entry != step.after and not apply.is_done(root, step):
            found.append(Left(step.path, "is not as the checkpoint has it"))
    return found


def _both(workspace: Workspace, entry: Journal) -> tuple[Checkpoint, Checkpoint]:
    target = workspace.store.checkpoint(entry.target)
    before = workspace.store.checkpoint(entry.before)
    if target is None or before is None:
        raise CorruptError(
            "the restore journal names commits that are no checkpoints",
            hint="look at `gitcp log`, restore by hand and remove restore.json",
        )
    return target, before


def _wanted(entry: Journal, target: Checkpoint) -> Plan:
    return unseen_plan(
        target,
        paths=tuple(map(base64.b64decode, entry.paths)),
        files=entry.files,
        conversation=entry.conversation,
        note=entry.note,
        fork=entry.fork,
    )


def _appended(workspace: Workspace, entry: Journal) -> Checkpoint | None:
    """Returns the checkpoint of a restore that was cut off after its commit point."""
    tip = workspace.store.tip(entry.session, entry.branch)
    if tip is None:
        return None
    for checkpoint in workspace.store.line(tip):
        if checkpoint.id == entry.checkpoint:
            return checkpoint
        if checkpoint.commit == entry.before:
            return None
    return None


def resume(workspace: Workspace) -> Restored:
    """Finishes a restore that was interrupted; repeatable.

    Raises:
        NothingToDoError: none was.
    """
    with workspace.locked():
        return _finish(workspace, _open_journal(workspace))


def abort(workspace: Workspace) -> Checkpoint:
    """Takes an interrupted restore back and returns the checkpoint that is there again.

    Where the restore was complete but for its journal, it stands: that is the restore's
    own checkpoint then.

    Raises:
        NothingToDoError: none was interrupted.
        PartialError: files changed meanwhile and were left alone.
    """
    with workspace.locked():
        entry = _open_journal(workspace)
        done = _appended(workspace, entry)
        if done is not None:
            workspace.make_current(entry.session, entry.branch)
            journal.remove(workspace.directory)
            return done
        target, before = _both(workspace, entry)
        left: list[Left] = []
        if entry.files:
            with transaction(workspace.repository) as opened:
                steps = _steps(workspace, entry, target, before, opened)
                left = _apply(workspace, entry, steps, steps.reversed())
            place = Current(entry.session, entry.branch)
            effects.stayed(workspace.store, place, entry.checkpoint)
        journal.remove(workspace.directory)
    if left:
        raise PartialError(
            f"{len(left)} paths changed meanwhile and were left alone",
            left=[f"{show_path(item.path)}: {item.reason}" for item in left],
            hint=f"checkpoint {before.id} holds how they were",
        )
    return before


def _open_journal(workspace: Workspace) -> Journal:
    entry = journal.read(workspace.directory)
    if entry is None:
        raise NothingToDoError(
            "no restore was interrupted here", hint="`gitcp restore SEL` starts one"
        )
    return entry


def last_replaced(workspace: Workspace) -> Checkpoint:
    """Returns what the last restore in the current branch replaced.

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
            return found
    raise NothingToDoError(
        f"nothing was restored in {current.session}/{current.branch}",
        hint="`gitcp log` shows what can be restored",
    )


def _find(workspace: Workspace, start: Checkpoint, ident: str) -> Checkpoint | None:
    for checkpoint in workspace.store.line(start):
        if checkpoint.id == ident:
            return checkpoint
    for _, tip in workspace.store.tips():
        for checkpoint in workspace.store.line(tip):
            if checkpoint.id == ident:
                return checkpoint
    return None
