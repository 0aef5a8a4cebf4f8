"""Gathers the reasons of a work tree: what led to its present state."""

from collections.abc import Iterator
from typing import NamedTuple

from gitcp.checkpoints import numbered, standing
from gitcp.checkpoints.reach import Reach, readable
from gitcp.errors import CorruptError
from gitcp.format.log import Decision
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint

# Sessions that are looked at: what was decided before them is in their own logs.
_SESSIONS = 100


class Reasons(NamedTuple):
    """The entries of all sessions, newest first, without repetitions; the newest task.

    `elsewhere` are the checkpoints whose logs were recorded in another repository: they are
    quoted, and not among the entries. `newest` is the checkpoint that the work tree is at.
    """

    entries: tuple[Decision, ...] = ()
    task: str | None = None
    newest: Checkpoint | None = None
    elsewhere: tuple[Checkpoint, ...] = ()


def of_work_tree(workspace: Workspace, *, pending: bool = False) -> Reasons:
    """Returns the open reasons of a work tree; with `pending` what waits for a save, too."""
    entries: dict[Decision, None] = {}
    if pending:
        entries |= dict.fromkeys(reversed(workspace.pending()))
    elsewhere: list[Checkpoint] = []
    task: str | None = None
    newest: Checkpoint | None = None
    for checkpoint in _newest_of_sessions(workspace):
        newest = newest or checkpoint
        if checkpoint.origin.logs is not None:
            elsewhere.append(checkpoint)
            continue
        task = task or checkpoint.manifest.task
        try:
            entries |= dict.fromkeys(reversed(checkpoint.decisions()))
        except CorruptError:
            continue
    return Reasons(
        tuple(sorted(entries, key=lambda entry: entry.at or "", reverse=True)),
        task,
        newest,
        tuple(elsewhere),
    )


def _newest_of_sessions(workspace: Workspace) -> Iterator[Checkpoint]:
    """Yields the newest checkpoint of each session that led to the present state.

    A restore goes back: what was recorded after its target, in whatever session, did not
    lead here.
    """
    seen: set[str] = set()
    skip_to: int | None = None
    gone = workspace.store.numbers.gone_numbers()
    reach = Reach(workspace.store)
    for entry in standing.timeline(workspace):
        if skip_to is not None:
            if entry.number > skip_to:
                continue
            skip_to = None
        is_restore = entry.trigger == standing.RESTORE
        if entry.number in gone or (entry.key.session in seen and not is_restore):
            continue
        checkpoint = readable(reach, entry)
        if checkpoint is None:
            continue
        if entry.key.session not in seen:
            seen.add(entry.key.session)
            yield checkpoint
        if is_restore:
            skip_to = _went_back_to(workspace, checkpoint)
        if len(seen) == _SESSIONS:
            return


def _went_back_to(workspace: Workspace, restore: Checkpoint) -> int | None:
    """Returns the number of a restore's target if the reasons went back with the files."""
    source = restore.manifest.restored_from
    number = workspace.store.numbers.of(source) if source is not None else None
    if number is None:
        return None
    target = numbered.by_number_or_none(workspace, number)
    if target is None or target.log_tree != restore.log_tree:
        return None
    return number
