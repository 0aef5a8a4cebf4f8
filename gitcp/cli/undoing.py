"""Makes the restore request of `gitcp undo`."""

from gitcp.checkpoints import restore as ops
from gitcp.checkpoints.restore_request import RestoreRequest, request_restore
from gitcp.cli.restoring import with_trust
from gitcp.project.workspace import Workspace


def undo_request(workspace: Workspace, *, trust: bool) -> RestoreRequest:
    """Returns a request for the state that the last restore in this work tree replaced.

    Raises:
        NothingToDoError: nothing was restored.
        NotFoundError: the checkpoint of that state has been pruned.
    """
    replaced, undone = ops.last_replaced(workspace)
    return request_restore(
        replaced,
        note=f"undid a restore: back to {replaced.id}",
        trust=with_trust(workspace, replaced, trust),
        undoes=undone,
    )
