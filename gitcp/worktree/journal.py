"""The note that a restore is under way, so that a killed one is found and ended."""

from pathlib import Path

import msgspec

from gitcp import durable
from gitcp.errors import CorruptError, RestoreInterruptedError

_NAME = "restore.json"


class Journal(msgspec.Struct, frozen=True):
    """Everything `--continue` and `--abort` need; commits as hex.

    `checkpoint` is the id that the checkpoint of this restore will have: if the branch
    holds it, only the journal is left to remove. `paths` (empty for all)
    and `sparse` (left out by a sparse checkout) are base64. `withhold` leaves out what
    a stranger's checkpoint may not bring unasked; `trust` hands a conversation that was
    made elsewhere to its client.
    """

    checkpoint: str
    session: str
    branch: str
    target: str
    before: str
    files: bool
    conversation: bool
    paths: tuple[str, ...]
    sparse: tuple[str, ...]
    note: str | None
    fork: tuple[str, str] | None = None
    withhold: bool = False
    trust: bool = False


def write(directory: Path, journal: Journal) -> None:
    """Makes the journal durable."""
    with durable.storage("writing the restore journal"):
        durable.replace(directory / _NAME, msgspec.json.encode(journal))


def read(directory: Path) -> Journal | None:
    """Returns the journal of a restore that was cut off, or None.

    Raises:
        CorruptError: there is one and it cannot be read.
    """
    try:
        raw = (directory / _NAME).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(raw, type=Journal)
    except msgspec.MsgspecError as exc:
        raise CorruptError(
            f"the restore journal {directory / _NAME} is damaged: {exc}",
            hint="look at `gitcp log` and restore by hand, then remove that file",
        ) from exc


def remove(directory: Path) -> None:
    """Removes the journal, durably."""
    with durable.storage("removing the restore journal"):
        durable.remove(directory / _NAME)


def is_open(directory: Path) -> bool:
    """Whether a restore is under way here, or was cut off."""
    return (directory / _NAME).exists()


def refuse_if_open(directory: Path) -> None:
    """Raises if a restore was cut off here.

    Raises:
        RestoreInterruptedError: it was.
    """
    if is_open(directory):
        raise RestoreInterruptedError(
            "a restore was interrupted in this work tree",
            hint="finish it with `gitcp restore --continue`,"
            " or take it back with `gitcp restore --abort`",
        )
