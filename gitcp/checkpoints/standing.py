"""Finds the position of a work tree: its newest checkpoint, last restore, and their branches."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitcp import notices
from gitcp.checkpoints import numbered
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.turns import rows
from gitcp.errors import CorruptError
from gitcp.format.checkpoint import IMPORT
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import BEFORE_GIT, Assigned, places
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint

if TYPE_CHECKING:
    from gitcp.checkpoints.restore_request import RestoreRequest

RESTORE = "restore"


def timeline(workspace: Workspace) -> Iterator[Assigned]:
    """Returns what belongs to this work tree, the newest first.

    That is what was made in it, and all of the branch that a person named in it last: it
    may have been pulled. What no branch has any more is among it.
    """
    numbered.with_numbers(workspace)
    return of_work_tree(workspace)


def of_work_tree(workspace: Workspace) -> Iterator[Assigned]:
    """Yields what has a number and belongs to this work tree; see `timeline`."""
    here, key = belonging(workspace)
    older = []
    for entry in workspace.store.numbers.newest_first():
        if entry.place in here or entry.key == key:
            # It was made before there was a repository, and got its number later.
            if entry.place == BEFORE_GIT:
                older.append(entry)
            else:
                yield entry
    yield from older


def belonging(workspace: Workspace) -> tuple[tuple[str, ...], BranchKey]:
    """Returns the places, and the branch, one of which makes a checkpoint this work tree's."""
    named = workspace.current()
    return places(workspace.store.numbers.place), BranchKey.of(
        named.session, named.branch
    )


def _made_here(workspace: Workspace) -> Iterator[Checkpoint]:
    """Yields the checkpoints that were made in this work tree, the newest first."""
    numbered.with_numbers(workspace)
    numbers = workspace.store.numbers
    reach = Reach(workspace.store)
    for entry in numbers.newest_first():
        if entry.place == numbers.place:
            checkpoint = readable(reach, entry)
            if checkpoint is not None:
                yield checkpoint


def before_newest(workspace: Workspace, distance: int) -> Checkpoint | None:
    """Returns the checkpoint so many rows below the newest of the timeline, or None.

    What is damaged is told, and left out.

    Raises:
        CorruptError: nothing but what is damaged is there.
        FormatTooNewError: a newer gitcp wrote it.
    """
    left = distance
    gone = workspace.store.numbers.fates().gone
    reach = Reach(workspace.store)
    for row in rows(timeline(workspace)):
        checkpoint = None if row.last.number in gone else reach.find(row.last)
        if checkpoint is None:
            continue
        try:
            _ = checkpoint.manifest
        except CorruptError as exc:
            notices.tell(f"#{row.last.number} is damaged: {exc.message}")
            continue
        if left == 0:
            return checkpoint
        left -= 1
    for damage in reach.damaged.values():
        raise damage
    return None


def stands_on(workspace: Workspace) -> Current:
    """Returns the branch of the newest checkpoint that was made in this work tree."""
    here = next(_made_here(workspace), None)
    if here is None:
        return workspace.current()
    return Current(here.session, here.branch)


def continues_on(
    workspace: Workspace, request: "RestoreRequest", stood: Current
) -> Current:
    """Returns the branch that a restore is appended to, where none was named.

    A resumed client continues its conversation, so that is the target's own branch. If
    only files are restored it is the branch that the work tree stands on. If no client
    can resume the conversation it is the current one.
    """
    if not request.conversation:
        return stood
    current, target = workspace.current(), request.target
    held = target.manifest.conversation
    from gitcp.clients import registry  # noqa: PLC0415  looking does not need it

    if held is None or not registry.known(held.kind):
        return current
    # What an adapter keeps, without files, is the adapter's to append to.
    if not target.holds_files and target.trigger != IMPORT:
        return current
    tip = workspace.store.tip(current.session, current.branch)
    if tip is not None and any(one == target for one in workspace.store.line(tip)):
        return current
    own = target.trailers.key
    if workspace.store.repository.refs.read(own.ref) is None:
        return current
    return Current(target.session, target.branch)
