"""Adds a label to an existing checkpoint, or removes one."""

from typing import NamedTuple

from gitcp.checkpoints.labels import check_typed_label
from gitcp.errors import NothingToDoError
from gitcp.git.drop_unreachable import store_locked
from gitcp.names import encode
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.find_current import find_current


class Labelled(NamedTuple):
    """The result of a change: the label added or removed, and the checkpoint that had it before."""

    checkpoint: Checkpoint
    label: str
    moved_from: tuple[Checkpoint, ...] = ()


def give(workspace: Workspace, checkpoint: Checkpoint, label: str) -> Labelled:
    """Gives a checkpoint a label; another checkpoint of its session loses it.

    A label that it had is replaced. Nothing stored in git changes.

    Raises:
        UsageError: the label could not be selected.
        NothingToDoError: the checkpoint has it already.
        NotFoundError: another process pruned the checkpoint.
        BusyError: a prune or `gc` is at work.
        StorageError: the disk refused.
    """
    component = encode(check_typed_label(label))
    if checkpoint.label_component == component:
        raise NothingToDoError(f"{checkpoint.id} has the label {label!a} already")
    store = workspace.store
    # A prune that has read the labels already must not remove the checkpoint that gets
    # one now.
    with store_locked(store.repository, timeout=workspace.settings.lock_timeout):
        find_current(store, checkpoint)
        before = tuple(_with_label(workspace, checkpoint, component))
        changes = [(one, None) for one in before]
        store.labels.write([*changes, (checkpoint, label)], store.now())
    return Labelled(checkpoint, label, before)


def take(workspace: Workspace, checkpoint: Checkpoint) -> Labelled:
    """Takes the label from a checkpoint.

    Raises:
        NothingToDoError: the checkpoint has no label.
        StorageError: the disk refused.
    """
    label = checkpoint.label
    if label is None:
        raise NothingToDoError(f"{checkpoint.id} has no label")
    workspace.store.labels.write([(checkpoint, None)], workspace.store.now())
    return Labelled(checkpoint, label)


def _with_label(
    workspace: Workspace, checkpoint: Checkpoint, component: str
) -> list[Checkpoint]:
    """Returns the other checkpoints of its session that have a label."""
    store = workspace.store
    found: dict[bytes, Checkpoint] = {}
    for oid in store.refs_of(checkpoint.session).values():
        tip = store.checkpoint(oid)
        for one in store.line(tip) if tip is not None else ():
            if one.label_component == component and one.oid != checkpoint.oid:
                found[one.oid] = one
    return list(found.values())
