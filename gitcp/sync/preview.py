"""Reports at a pull what a restore of the pulled checkpoints would withhold."""

from itertools import islice
from typing import NamedTuple

from gitcp.agents import resume
from gitcp.checkpoints.restore_plan import bounds_of
from gitcp.errors import GitcpError
from gitcp.format import tree as trees
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.trust.trusted_remotes import is_trusted
from gitcp.trust.withheld import Bounds, withheld_from
from gitcp.worktree.plan import Left

# A checkpoint may differ from HEAD in everything; at most this many changes are checked.
_LOOKED_AT = 20_000


class Foretold(NamedTuple):
    """Paths that a restore would withhold, and the agent of a withheld conversation.

    The paths differ from HEAD. `agent` is None if no conversation would be withheld.
    """

    paths: tuple[Left, ...] = ()
    agent: str | None = None


def foretold(
    workspace: Workspace, found: Checkpoint, bounds: Bounds | None = None
) -> Foretold:
    """Returns what a restore of a checkpoint without trust would withhold.

    The files are compared with HEAD, not with the work tree.

    Raises:
        CorruptError: the checkpoint is damaged.
    """
    origin = found.origin
    agent = None
    if is_trusted(workspace.store, found):
        return Foretold()
    if origin.logs is not None and resume.can_resume(found):
        held = found.manifest.conversation
        agent = held.kind if held else None
    if origin.files is None:
        return Foretold((), agent)
    bounds = bounds or bounds_of(workspace)
    why = withheld_from(found.objects, bounds)
    changes = trees.diff(bounds.head, found.files_tree, found.objects.files)
    paths = [
        Left(change.path, reason)
        for change in islice(changes, _LOOKED_AT)
        if (reason := why(change.path, change.old, change.new)) is not None
    ]
    return Foretold(tuple(paths), agent)


def of_tips(workspace: Workspace, commits: list[str]) -> dict[str, Foretold]:
    """Returns what would be withheld, by commit, without commits that lose nothing."""
    bounds = bounds_of(workspace) if commits else Bounds()
    made = {}
    for commit in commits:
        try:
            tip = workspace.store.checkpoint(commit)
            told = foretold(workspace, tip, bounds) if tip else Foretold()
        except GitcpError:
            # A command that reads this checkpoint reports the error.
            continue
        if told != Foretold():
            made[commit] = told
    return made
