"""Gathers the reasons of a work tree: what led to its present state."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from gitcp.checkpoints import grounds, numbered, standing
from gitcp.checkpoints.reach import Reach, readable
from gitcp.errors import CorruptError
from gitcp.format.log import Decision
from gitcp.format.numbers import BEFORE_GIT, Assigned, age
from gitcp.project import pending_decisions
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint

# How many sessions are read: their own logs hold what was decided before them.
_SESSIONS = 100
# How many decisions are compared with the files: a hook has little time.
_COMPARED = 20


class Reasons(NamedTuple):
    """The entries of all sessions, newest first, without repetitions; the newest task.

    `elsewhere` are the checkpoints whose logs were recorded in another repository: they are
    quoted, and not among the entries. `newest` is the checkpoint that the work tree is at.
    `taken_back` are the decisions of turns whose files are again as they were before the
    turn.
    """

    entries: tuple[Decision, ...] = ()
    task: str | None = None
    newest: Checkpoint | None = None
    elsewhere: tuple[Checkpoint, ...] = ()
    taken_back: frozenset[Decision] = frozenset()


def of_work_tree(workspace: Workspace, *, pending: bool = False) -> Reasons:
    """Returns the open reasons of a work tree; with `pending` also those that wait for a save."""
    entries: dict[Decision, None] = {}
    if pending:
        entries |= dict.fromkeys(reversed(pending_decisions.pending(workspace)))
    elsewhere: list[Checkpoint] = []
    task: str | None = None
    newest: Checkpoint | None = None
    for checkpoint in _newest_of_sessions(workspace):
        newest = newest or checkpoint
        if recorded_at(checkpoint) is not None:
            elsewhere.append(checkpoint)
            continue
        try:
            decisions = checkpoint.decisions()
        except CorruptError:
            continue
        task = task or task_in(decisions)
        entries |= dict.fromkeys(reversed(decisions))
    listed = sorted(entries, key=lambda entry: entry.at or "", reverse=True)
    once = _without_repetitions(listed)
    return Reasons(
        once,
        task,
        newest,
        tuple(elsewhere),
        _taken_back(workspace, once, newest),
    )


def recorded_at(checkpoint: Checkpoint) -> str | None:
    """Returns where what a checkpoint says was recorded; None if it was here.

    A checkpoint made elsewhere says something even without logs: its note, its position.
    """
    origin = checkpoint.origin
    return origin.logs or (None if origin.here else origin.where)


def task_in(entries: Sequence[Decision]) -> str | None:
    """Returns the newest task of a decision log.

    checkpoint.json has it as well, but a stranger can write one that no log holds, and the
    seals of 0.1.0 do not cover it.
    """
    return next((one.text for one in reversed(entries) if one.kind == "task"), None)


def _without_repetitions(entries: list[Decision]) -> tuple[Decision, ...]:
    """Returns entries without those that a newer entry repeats; times are not compared."""
    said: dict[Decision, Decision] = {}
    for entry in entries:
        said.setdefault(msgspec.structs.replace(entry, at=None), entry)
    return tuple(said.values())


def _taken_back(
    workspace: Workspace, entries: tuple[Decision, ...], newest: Checkpoint | None
) -> frozenset[Decision]:
    """Returns the newest decisions that no longer hold because their files went back."""
    decided = [entry for entry in entries if entry.kind == "decision"][:_COMPARED]
    if newest is None or not decided or not newest.holds_files:
        return frozenset()
    return frozenset(
        entry
        for entry, ground in grounds.find(workspace, decided).items()
        if ground.taken_back(newest)
    )


def _newest_of_sessions(workspace: Workspace) -> Iterator[Checkpoint]:
    """Yields the newest checkpoint of each session that led to the present state.

    A restore goes back: reasons recorded after its target, in any session, did not lead
    to the present state.
    """
    seen: set[tuple[str, bool]] = set()
    skip_to: Assigned | None = None
    gone = workspace.store.numbers.fates().gone
    reach = Reach(workspace.store)
    for entry in standing.timeline(workspace):
        if skip_to is not None:
            if age(entry) > age(skip_to):
                continue
            skip_to = None
        is_restore = entry.trigger == standing.RESTORE
        # Of one name there were two before and after the `git init`.
        session = entry.key.session, entry.place == BEFORE_GIT
        if entry.number in gone or (session in seen and not is_restore):
            continue
        checkpoint = readable(reach, entry)
        if checkpoint is None:
            continue
        if session not in seen:
            seen.add(session)
            yield checkpoint
        if is_restore:
            skip_to = _went_back_to(workspace, checkpoint)
        if len(seen) == _SESSIONS:
            return


def _went_back_to(workspace: Workspace, restore: Checkpoint) -> Assigned | None:
    """Returns what has the number of a restore's target if the reasons went back with the files."""
    source = restore.manifest.restored_from
    number = workspace.store.numbers.of(source) if source is not None else None
    if number is None:
        return None
    target = numbered.by_number_or_none(workspace, number)
    if target is None or target.log_tree != restore.log_tree:
        return None
    return workspace.store.numbers.find(number)
