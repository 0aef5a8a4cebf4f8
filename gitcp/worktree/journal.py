"""The restore journal: records a restore under way, so that a killed one can be finished."""

from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gitcp import durable
from gitcp.errors import CorruptError, RestoreInterruptedError
from gitcp.format import tree as trees

if TYPE_CHECKING:
    from gitcp.worktree.plan import FilePlan

_NAME = "restore.json"


Entry = tuple[int, str]
StepRow = tuple[str, str, Entry | None, Entry | None]


class Journal(msgspec.Struct, frozen=True):
    """Everything `--continue` and `--abort` need; commits as hex.

    `checkpoint` is the id that the checkpoint of this restore will have: if the branch
    holds it, only the journal is left to remove. `before` and `target` are the commits of
    the states before and after it; `before_id` and `target_id` are the ids of these
    checkpoints, which stay the same if a prune gives them other commits. `paths` (empty for
    all) and `sparse` (left out by a sparse checkout) are base64. `withhold` leaves out what
    a checkpoint made elsewhere may not bring without asking; `trust` hands a conversation
    that was made elsewhere to its client. `named` says that a person named the branch: it
    becomes the current one.

    `steps` is the plan: action, path in base64, and mode and object before and after.
    `left` has the paths that the plan leaves alone, in base64, with reasons. gitcp
    0.1.0 wrote neither of them, nor the ids: its plan has to be made again.
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
    target_id: str | None = None
    before_id: str | None = None
    steps: tuple[StepRow, ...] | None = None
    left: tuple[tuple[str, str], ...] = ()
    named: bool = False

    def plan(self) -> "FilePlan | None":
        """Returns the plan it holds; None for a journal of gitcp 0.1.0."""
        if self.steps is None:
            return None
        # Every command checks whether a journal exists, and few read it.
        from gitcp.worktree.plan import FilePlan, FileStep, Left  # noqa: PLC0415

        return FilePlan(
            tuple(
                FileStep(action, b64decode(path), _entry(before), _entry(after))
                for action, path, before, after in self.steps
            ),
            tuple(Left(b64decode(path), reason) for path, reason in self.left),
        )

    def holding(self, plan: "FilePlan") -> "Journal":
        """Returns this journal with a plan in it."""
        return msgspec.structs.replace(
            self,
            steps=tuple(
                (step.action, base64(step.path), _row(step.before), _row(step.after))
                for step in plan.steps
            ),
            left=tuple((base64(item.path), item.reason) for item in plan.left),
        )


def base64(path: bytes) -> str:
    """Returns a path as the journal holds it."""
    return b64encode(path).decode()


def _row(entry: trees.Entry | None) -> Entry | None:
    return None if entry is None else (entry.mode, entry.oid.hex())


def _entry(row: Entry | None) -> trees.Entry | None:
    return None if row is None else trees.Entry(row[0], bytes.fromhex(row[1]))


def write(directory: Path, journal: Journal) -> None:
    """Makes the journal durable."""
    with durable.storage("writing the restore journal"):
        durable.replace(directory / _NAME, msgspec.json.encode(journal))


def read(directory: Path) -> Journal | None:
    """Returns the journal of an interrupted restore, or None.

    Raises:
        CorruptError: the journal cannot be read.
    """
    try:
        raw = (directory / _NAME).read_bytes()
    except FileNotFoundError:
        return None
    try:
        journal = msgspec.json.decode(raw, type=Journal)
        journal.plan()
    except (msgspec.MsgspecError, ValueError) as exc:
        raise CorruptError(
            f"the restore journal {directory / _NAME} is damaged: {exc}",
            hint="look at `gitcp log` and restore by hand, then remove that file",
        ) from exc
    return journal


def remove(directory: Path) -> None:
    """Removes the journal, durably."""
    with durable.storage("removing the restore journal"):
        durable.remove(directory / _NAME)


def is_open(directory: Path) -> bool:
    """Whether a restore is under way here, or was interrupted."""
    return (directory / _NAME).exists()


def refuse_if_open(directory: Path) -> None:
    """Raises if a restore was interrupted here.

    Raises:
        RestoreInterruptedError: a restore was interrupted.
    """
    if is_open(directory):
        raise RestoreInterruptedError(
            "a restore was interrupted in this work tree",
            hint="finish it with `gitcp restore --continue`, or undo it with `gitcp"
            " restore --abort`",
        )
