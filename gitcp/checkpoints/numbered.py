"""Finds a checkpoint by its number in this repository."""

import time
from contextlib import suppress

from gitcp.checkpoints.reach import is_meant, stand_in
from gitcp.errors import BusyError, CorruptError, NotFoundError, StorageError
from gitcp.format.numbers import Assigned
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.find_current import find_by_id
from gitcp.store.numbering import number_all
from gitcp.store.store import Store

_LATELY = 1.0


def with_numbers(workspace: Workspace) -> None:
    """Numbers the checkpoints that have no number yet, if numbers can be written here."""
    numbers = workspace.store.numbers
    # A command may ask several times, and looking at every branch takes time.
    if time.monotonic() - numbers.completed < _LATELY:
        return
    # On a read-only disk a checkpoint is named by its id.
    with suppress(BusyError, StorageError):
        number_all(workspace.store)
        numbers.completed = time.monotonic()


def by_number(workspace: Workspace, number: int) -> Checkpoint | None:
    """Returns the checkpoint that has a number; None if none ever had it.

    Raises:
        NotFoundError: the checkpoint was pruned, or no branch reaches it any more.
    """
    numbers = workspace.store.numbers
    assigned = numbers.find(number)
    if assigned is None:
        with_numbers(workspace)
        assigned = numbers.find(number)
    if assigned is None:
        return None
    checkpoint = current(workspace, assigned)
    if checkpoint is not None:
        return checkpoint
    at = numbers.gone(number)
    if at is not None:
        raise NotFoundError(
            f"#{number} was pruned on {at[:10]}", hint="`gitcp log` lists the others"
        )
    raise NotFoundError(
        f"#{number} is no longer on a branch:"
        f" {assigned.key.session}/{assigned.key.branch} has lost its ref, or was"
        " deleted",
        hint="`gitcp verify --lost` looks for it",
    )


def by_number_or_none(workspace: Workspace, number: int) -> Checkpoint | None:
    """Returns the checkpoint that has a number; None if it is gone or damaged."""
    with suppress(NotFoundError, CorruptError):
        return by_number(workspace, number)
    return None


def current(workspace: Workspace, assigned: Assigned) -> Checkpoint | None:
    """Returns the checkpoint behind a number as a branch has it now, or None.

    Raises:
        CorruptError: the checkpoint is damaged.
    """
    store = workspace.store
    alike: list[Checkpoint] = []
    if store.repository.refs.read(assigned.key.ref) is not None:
        if store.numbers.gone(assigned.number) is None:
            checkpoint = _at(store, assigned)
            if checkpoint is not None:
                return checkpoint
        tip = store.standing(assigned.key).checkpoint
        for checkpoint in store.line(tip) if tip is not None else ():
            if checkpoint.id == assigned.id:
                if is_meant(checkpoint, assigned):
                    return checkpoint
                alike.append(checkpoint)
    found = find_by_id(store, assigned.id)
    if found is not None and is_meant(found, assigned):
        return found
    return stand_in(alike, assigned, store)


def _at(store: Store, assigned: Assigned) -> Checkpoint | None:
    """Returns the checkpoint at the commit that is noted for a number, if it is there."""
    latest = store.numbers.find(assigned.number) or assigned
    for commit in dict.fromkeys((latest.commit, assigned.commit)):
        with suppress(CorruptError):
            checkpoint = store.checkpoint(commit)
            if checkpoint is not None and checkpoint.id == assigned.id:
                return checkpoint
    return None
