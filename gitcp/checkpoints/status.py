"""The state of the work tree and its branch, read without writing anything."""

from typing import TYPE_CHECKING, NamedTuple

from gitcp.checkpoints.standing import before_newest
from gitcp.format import tree
from gitcp.format.checkpoint import left_out_of
from gitcp.format.log import Decision
from gitcp.format.tree import Change
from gitcp.git.transaction import files_in, looking
from gitcp.project import pending_decisions
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree import journal
from gitcp.worktree.journal import Journal

if TYPE_CHECKING:
    from gitcp.worktree.snapshot import Snapshot


class Status(NamedTuple):
    """The newest checkpoint of a work tree, and what is not in it yet.

    `current` is where a person's saves go. `tip` is None before the first save;
    `interrupted` is the restore that was interrupted.
    """

    current: Current
    tip: Checkpoint | None
    changes: tuple[Change, ...]
    skipped: int
    pending: tuple[Decision, ...]
    interrupted: Journal | None
    # A change that the user's watcher missed: it is not believed any more.
    missed: str | None = None


def status(workspace: Workspace, where: str | None = None) -> Status:
    """Returns where the work stands, or how it stands to one session.

    `where` is `SESSION` or `SESSION/BRANCH`: files are compared with its newest checkpoint.

    Raises:
        CorruptError: the tip is damaged.
        GitFailedError: git failed.
        NotFoundError: there is no such session.
    """
    if where is not None:
        from gitcp.checkpoints.in_session import newest_in  # noqa: PLC0415  seldom asked for

        tip: Checkpoint | None = newest_in(workspace, where)
    else:
        current = workspace.current()
        tip = before_newest(workspace, 0)
        if tip is None:
            tip = workspace.store.tip(current.session, current.branch)
    # Never published, so nothing that is read here gets into the repository.
    with (
        workspace.capturing(watched=True) as capture,
        looking(workspace.repository) as txn,
    ):

        def compare(snapshot: "Snapshot") -> tuple[tuple[Change, ...], int]:
            before = tip.files_tree if tip else None
            changes = tree.diff(before, snapshot.tree, files_in(txn))
            return tuple(changes), len(left_out_of(snapshot.skipped))

        _, (changes, skipped) = capture.using(txn, compare)
    return Status(
        workspace.current(),
        tip,
        changes,
        skipped,
        tuple(pending_decisions.pending(workspace)),
        journal.read(workspace.directory),
        _missed(workspace),
    )


def _missed(workspace: Workspace) -> str | None:
    directory = workspace.directory / "scan"
    if not (directory / "watcher-missed").exists():
        return None
    from gitcp.worktree import watched  # noqa: PLC0415  few have a watcher

    return watched.distrusted(workspace.repository, directory)
