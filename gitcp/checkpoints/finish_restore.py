"""Finishes a restore from its journal, or takes it back; an interrupted one, too."""

from base64 import b64decode
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, NoReturn

from gitcp import durable
from gitcp.checkpoints import rewind
from gitcp.checkpoints.not_captured import find, note_brought
from gitcp.checkpoints.restore_plan import (
    Plan,
    bounds_of,
    make_steps,
    side,
    unseen_plan,
)
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
from gitcp.project.workspace import Current, Workspace, files_of
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft
from gitcp.store.store import Saved
from gitcp.trust import trusted_remotes
from gitcp.trust.withheld import withheld_from
from gitcp.worktree import apply, journal, leftovers
from gitcp.worktree import plan as plans
from gitcp.worktree.capture import Snapshot
from gitcp.worktree.files import Root
from gitcp.worktree.journal import Journal
from gitcp.worktree.plan import FilePlan, Left, Step

_WAYS = "`gitcp restore --continue` finishes it; `gitcp restore --abort` takes it back"
_UNLIKE = "is not as the checkpoint has it"


class Restored(NamedTuple):
    """The result of a restore: its own checkpoint, and the one of the state before it."""

    checkpoint: Checkpoint
    saved: Checkpoint | None
    plan: FilePlan
    left: tuple[Left, ...]


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
        exc.add_note(f"the restore is half done: {_WAYS}")
        raise


def finish(
    workspace: Workspace,
    entry: Journal,
    saved: Checkpoint | None = None,
    *,
    again: bool = False,
) -> Restored:
    """Applies, verifies, appends, and removes the journal; repeatable (I6).

    `again` says that an earlier run may have left temporary files.

    Raises:
        PartialError: done, but files changed meanwhile and were left.
    """
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
            steps = _plan(workspace, entry, target, before, opened)
            left = _apply(workspace, entry, steps, steps, again=again)
        if entry.files and not entry.paths and not entry.fork:
            # Before the checkpoint: what it says of the ledger includes this.
            place = Current(entry.session, entry.branch)
            here = workspace.current()
            if not rewind.arrives(workspace.store, here, place, target):
                rewind.went_back(workspace.store, place, target, entry.checkpoint)
        with workspace.capturing() as capture:
            result = captured(
                capture,
                opened,
                lambda snapshot: _append(
                    workspace, opened, entry, target, before, snapshot, steps, left
                ),
            )
    trusted_remotes.note_made(
        workspace.store, result.checkpoint, target if entry.conversation else before
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


def resume(workspace: Workspace) -> Restored:
    """Finishes a restore that was interrupted; repeatable.

    Raises:
        NothingToDoError: no restore was interrupted.
    """
    with workspace.locked():
        entry = _open_journal(workspace)
        with naming_both_ways():
            return finish(workspace, entry, again=True)


def abort(workspace: Workspace) -> Checkpoint:
    """Takes an interrupted restore back and returns the checkpoint that is there again.

    Where the restore was complete but for its journal, it stands: that is the restore's
    own checkpoint then.

    Raises:
        NothingToDoError: no restore was interrupted.
        PartialError: files changed meanwhile, or cannot be read from the store any
            more, and were left alone.
    """
    with workspace.locked():
        entry = _open_journal(workspace)
        with naming_both_ways():
            return _abort(workspace, entry)


def _abort(workspace: Workspace, entry: Journal) -> Checkpoint:
    try:
        done = _appended(workspace, entry)
    except CorruptError:
        # Where the branch cannot be read, the files still can be put back.
        done = None
    if done is not None:
        workspace.make_current(entry.session, entry.branch)
        journal.remove(workspace.directory)
        return done
    if entry.plan() is not None and not _readable(workspace, entry):
        return _abort_unread(workspace, entry)
    target, before = _both(workspace, entry)
    left: list[Left] = []
    if entry.files:
        with transaction(workspace.repository) as opened:
            whole = _plan(workspace, entry, target, before, opened)
            back = whole.reversed()
            left = _apply(workspace, entry, whole, back, again=True, tolerant=True)
            left += _still_unlike(workspace, entry, opened, (before, target), left)
        place = Current(entry.session, entry.branch)
        rewind.stayed(workspace.store, place, entry.checkpoint)
    journal.remove(workspace.directory)
    if left:
        raise PartialError(
            f"{len(left)} paths are not as they were before the restore",
            left=[f"{show_path(item.path)}: {item.reason}" for item in left],
            hint=f"checkpoint {before.id} holds how they were",
        )
    return before


def _readable(workspace: Workspace, entry: Journal) -> bool:
    try:
        for checkpoint in _both(workspace, entry):
            for _ in tree.diff(None, checkpoint.files_tree, checkpoint.objects.tree):
                pass
    except CorruptError:
        return False
    return True


def _abort_unread(workspace: Workspace, entry: Journal) -> NoReturn:
    """Ends a restore from its journal alone: its checkpoints cannot be read any more.

    Raises:
        PartialError: always; it names what could not be put back.
    """
    whole = entry.plan() or FilePlan((), ())
    back = whole.reversed()
    left = _apply(workspace, entry, whole, back, again=True, tolerant=True)
    journal.remove(workspace.directory)
    raise PartialError(
        "the restore was taken back, but its checkpoints can no longer be read",
        left=[f"{show_path(item.path)}: {item.reason}" for item in left],
        hint="`gitcp verify` says what is damaged",
    )


def _plan(
    workspace: Workspace,
    entry: Journal,
    target: Checkpoint,
    before: Checkpoint,
    opened: Transaction,
) -> FilePlan:
    """Returns the plan that the journal holds; one of gitcp 0.1.0 is planned again."""
    held = entry.plan()
    if held is not None:
        return held
    return make_steps(
        workspace,
        side(before),
        side(target),
        opened,
        _wanted(entry, target),
        frozenset(map(b64decode, entry.sparse)),
        withheld=withheld_from(target.objects, bounds_of(workspace))
        if entry.withhold
        else None,
    )


def _wanted(entry: Journal, target: Checkpoint) -> Plan:
    return unseen_plan(
        target,
        paths=tuple(map(b64decode, entry.paths)),
        files=entry.files,
        conversation=entry.conversation,
        note=entry.note,
        fork=entry.fork,
    )


def _apply(
    workspace: Workspace,
    entry: Journal,
    whole: FilePlan,
    steps: FilePlan,
    *,
    again: bool,
    tolerant: bool = False,
) -> list[Left]:
    stream = workspace.repository.objects.stream
    token = entry.checkpoint
    with workspace.root() as root:
        left = leftovers.settle(root, whole, stream, token) if again else []
        known = {item.path for item in left}
        found = apply.apply(root, steps, stream, token=token, tolerant=tolerant)
        return left + [item for item in found if item.path not in known]


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
    """Compares what is there with the target, then appends the `restore` checkpoint."""
    if entry.files:
        note_brought(workspace, entry.checkpoint, steps, snapshot, opened.tree)
        with _looking(), workspace.root() as root:
            left += _unlike(root, opened, entry, target, snapshot, steps, left)
    return workspace.store.append(
        opened,
        entry.session,
        entry.branch,
        Draft(
            "restore",
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


def _looking() -> AbstractContextManager[None]:
    return durable.storage("comparing what is there with the checkpoint")


def _unlike(
    root: Root,
    opened: Transaction,
    entry: Journal,
    target: Checkpoint,
    snapshot: Snapshot,
    steps: FilePlan,
    left: list[Left],
) -> list[Left]:
    """Returns the paths that are not as the target has them, besides the known ones.

    Looked at is all that the target holds and that was to be restored, whether or not
    there was a step for it, and whatever a step was to remove.
    """
    selects = plans.selection(tuple(map(b64decode, entry.paths)))
    known = {item.path for item in (*steps.left, *left)}
    known.update(map(b64decode, entry.sparse))
    ours = {step.path for step in steps.steps}
    found = []
    for path, there, wanted in tree.diff(snapshot.tree, target.files_tree, opened.tree):
        if path in known or not selects(path) or (wanted is None and path not in ours):
            continue
        # A nested repository stays where nothing else is to come.
        expected = wanted or there
        if expected is not None and expected.mode == tree.GITLINK:
            continue
        # What is ignored or too large by now is not captured, but may well be right.
        if not apply.is_done(root, Step(plans.WRITE, path, None, wanted)):
            found.append(Left(path, _UNLIKE))
    return found


def _still_unlike(
    workspace: Workspace,
    entry: Journal,
    opened: Transaction,
    between: tuple[Checkpoint, Checkpoint],
    left: list[Left],
) -> list[Left]:
    """Returns what a restore could have changed and is not as it was before it."""
    before, target = between
    known = {item.path for item in left} | set(map(b64decode, entry.sparse))
    selects = plans.selection(tuple(map(b64decode, entry.paths)))
    changes = tree.diff(target.files_tree, before.files_tree, opened.tree)
    found = []
    with _looking(), workspace.root() as root:
        for path, _, wanted in changes:
            if wanted is None or wanted.mode == tree.GITLINK or path in known:
                continue
            step = Step(plans.WRITE, path, None, wanted)
            if selects(path) and not apply.is_done(root, step):
                found.append(Left(path, _UNLIKE))
    return found


def _both(workspace: Workspace, entry: Journal) -> tuple[Checkpoint, Checkpoint]:
    return (
        _named(workspace, entry.target, entry.target_id),
        _named(workspace, entry.before, entry.before_id),
    )


def _named(workspace: Workspace, commit: str, ident: str | None) -> Checkpoint:
    """Returns a checkpoint of the journal; pruning may have given it another commit."""
    try:
        found = workspace.store.checkpoint(commit)
    except CorruptError:
        found = find(workspace, ident) if ident is not None else None
        if found is None:
            raise
    if found is None:
        raise CorruptError(
            "the restore journal names commits that are not checkpoints",
            hint="look at `gitcp log`, restore by hand and remove restore.json",
        )
    return found


def _appended(workspace: Workspace, entry: Journal) -> Checkpoint | None:
    """Returns the checkpoint of a restore that was interrupted after its commit point."""
    tip = workspace.store.tip(entry.session, entry.branch)
    if tip is None:
        return None
    for checkpoint in workspace.store.line(tip):
        if checkpoint.id == entry.checkpoint:
            return checkpoint
        if checkpoint.commit == entry.before or checkpoint.id == entry.before_id:
            return None
    return None


def _open_journal(workspace: Workspace) -> Journal:
    entry = journal.read(workspace.directory)
    if entry is None:
        raise NothingToDoError(
            "no restore was interrupted here", hint="`gitcp restore SEL` starts one"
        )
    return entry
