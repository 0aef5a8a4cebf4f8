"""Finds the newest checkpoint of one session, for commands that are narrowed to it."""

from gitcp.checkpoints.selectors import split
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import require_tip


def newest_in(workspace: Workspace, spec: str) -> Checkpoint:
    """Returns the newest checkpoint of `SESSION`, on whatever branch, or `SESSION/BRANCH`.

    Raises:
        NotFoundError: there is no such session or branch.
        UsageError: a name is not usable.
        CorruptError: it is damaged.
    """
    store = workspace.store
    session, branch = split(spec, workspace.current())
    refs = store.refs_of(session)
    if "/" in spec or not refs:
        return require_tip(store, session, branch)
    tips = [store.tip(*store.names(key, oid)) for key, oid in refs.items()]
    return max(filter(None, tips), key=lambda tip: (tip.raw.epoch, tip.created))
