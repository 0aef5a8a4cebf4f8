"""Remote-tracking refs that reach what a purge removes."""

from gitcp.errors import GitFailedError
from gitcp.format import layout
from gitcp.names import decode
from gitcp.project.workspace import Workspace


def reaching(workspace: Workspace, old: set[str]) -> dict[str, str]:
    """Returns the remote-tracking refs that reach a commit to remove."""
    listed = workspace.repository.refs.list(layout.REMOTE_EFFECTS)
    found = {ref: oid for ref, oid in listed.items() if oid in old}
    for ref, tip in workspace.repository.refs.list(layout.REMOTES).items():
        start = workspace.store.checkpoint(tip)
        if start is not None and any(
            one.commit in old for one in workspace.store.line(start)
        ):
            found[ref] = tip
    return found


def forget(
    workspace: Workspace, old: set[str], remotes: dict[str, str]
) -> dict[str, str]:
    """Deletes the remote-tracking refs, which would keep the old objects alive.

    A push or pull may move one meanwhile, or make another. Returns every one that reached
    a commit to remove.

    Raises:
        GitFailedError: git deletes none of them, and none has moved.
    """
    refs = workspace.repository.refs
    found: dict[str, str] = {}
    while remotes:
        found |= remotes
        try:
            refs.delete(remotes)
        except GitFailedError:
            if all(refs.read(ref) == oid for ref, oid in remotes.items()):
                raise
        remotes = reaching(workspace, old)
    return found


def name_of(ref: str) -> str:
    """Returns the name of the remote of a remote-tracking ref."""
    below = ref.removeprefix(layout.REMOTES).removeprefix(layout.REMOTE_EFFECTS)
    component = below.split("/")[0]
    return decode(component) or component
