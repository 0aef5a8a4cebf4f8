"""The request for a restore; the journal holds it while the restore runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gitcp.errors import UsageError
from gitcp.project.workspace import Current
from gitcp.store.checkpoint import Checkpoint

if TYPE_CHECKING:
    from gitcp.checkpoints.hunks import Hunk


class RestoreRequest(NamedTuple):
    """What to restore, and how; made by `request_restore`.

    `fork` names a new branch, or `onto` an existing one, to continue from the target in
    place of the current branch. `trust` lets a checkpoint made elsewhere bring
    everything, `brought` only these of the paths that need it. `undoes` is the restore
    that this undoes, if any. `replay` says that steps that reached outside since keep
    their recorded results. A `hunk` names the only lines to restore of the one path.
    With `force` databases are replaced that another process has open.
    """

    target: Checkpoint
    files: bool
    conversation: bool
    paths: tuple[bytes, ...] = ()
    note: str | None = None
    fork: tuple[str, str] | None = None
    onto: Current | None = None
    replay: bool = False
    trust: bool = False
    brought: frozenset[bytes] = frozenset()
    undoes: Checkpoint | None = None
    hunk: "Hunk | None" = None
    force: bool = False

    @property
    def withhold(self) -> bool:
        """Whether to leave out what a checkpoint made elsewhere may not bring without asking."""
        return not self.trust and self.target.origin.files is not None

    @property
    def whole(self) -> bool:
        """Whether all files go back, and the steps that made them with them."""
        return self.files and not self.paths


def request_restore(
    target: Checkpoint,
    *,
    paths: Sequence[bytes] = (),
    files: bool = True,
    conversation: bool = True,
    note: str | None = None,
    fork: tuple[str, str] | None = None,
    onto: Current | None = None,
    replay: bool = False,
    trust: bool = False,
    undoes: Checkpoint | None = None,
) -> RestoreRequest:
    """Returns a request for `plan_restore` and `restore`.

    With `paths` only these files come back, and no conversation. A checkpoint that holds
    no files leaves those that are there as they are. Of a checkpoint that was made
    elsewhere, files that tools execute by themselves and links that lead outside stay as
    they are, unless `trust` is given.

    Raises:
        UsageError: files alone are wanted, and the target holds none.
    """
    if not target.holds_files and (paths or not conversation):
        raise UsageError(
            f"checkpoint {target.id} has no files, only a conversation",
            hint=f"`gitcp restore {target.number or target.id}` restores the"
            " conversation",
        )
    return RestoreRequest(
        target,
        files and target.holds_files,
        conversation and not paths,
        tuple(paths),
        note,
        fork,
        onto,
        replay,
        trust,
        undoes=undoes,
    )
