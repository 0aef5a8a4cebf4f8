"""Publishes a new checkpoint: moves the branch's ref, then gives the number."""

from contextlib import suppress
from typing import TYPE_CHECKING

from gitcp import notices
from gitcp.errors import BusyError, CorruptError, FormatTooNewError, StorageError
from gitcp.format.checkpoint import timestamp
from gitcp.format.numbers import ELSEWHERE, Assigned
from gitcp.git.repository import Repository
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.numbers import Numbers

if TYPE_CHECKING:
    from gitcp.git.transaction import Transaction

# What adapters append without files: such a checkpoint gets no number.
_ADAPTERS = frozenset({"graph", "graph-writes", "session-store"})


def publish(
    repository: Repository,
    transaction: "Transaction",
    ref: str,
    expect: str | None,
    new: bytes,
) -> None:
    """Moves a branch to a new checkpoint, durably.

    Raises:
        BranchMovedError: another process was faster.
        BusyError: the ref stayed locked.
        StorageError: the disk refused; the message says if the checkpoint is saved.
    """
    try:
        transaction.publish(ref, expect=expect, new=new)
    except StorageError as exc:
        if repository.refs.read(ref) != new.hex():
            raise
        raise StorageError(
            f"the checkpoint is saved, but not known to be durable: {exc.message}",
            hint="save again once the disk works",
        ) from exc


def give_number(numbers: Numbers, checkpoint: Checkpoint, *, here: bool) -> None:
    """Gives a checkpoint that was saved just now its number.

    `here` says that it holds this work tree's files. It is saved already: if it cannot
    be numbered, this gives a notice, and a later command numbers it.
    """
    if without_number(checkpoint):
        return
    try:
        numbers.assign([described(checkpoint, numbers.place if here else ELSEWHERE)])
    except (BusyError, StorageError) as exc:
        notices.tell(
            f"{checkpoint.id} is saved, but has no number yet: {exc.message}. The"
            " next command that lists it assigns one"
        )


def without_number(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint gets no number: an adapter keeps records in it, no files."""
    return checkpoint.trailers.trigger in _ADAPTERS and not checkpoint.holds_files


def described(checkpoint: Checkpoint, place: str) -> Assigned:
    """Returns what the list of numbers says of a checkpoint; the number is still 0."""
    return Assigned(
        0,
        checkpoint.id,
        checkpoint.commit,
        checkpoint.trailers.key,
        place,
        created_of(checkpoint),
        checkpoint.trailers.trigger,
    )


def created_of(checkpoint: Checkpoint) -> str:
    """Returns when a checkpoint was made, to the second where it cannot be read."""
    with suppress(CorruptError, FormatTooNewError):
        return checkpoint.manifest.created
    return timestamp(checkpoint.raw.epoch)
