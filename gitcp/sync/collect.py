"""Removes from a remote object store what no session needs any more."""

from gitcp.errors import UsageError
from gitcp.git import remote as remotes
from gitcp.git import store_address
from gitcp.project.workspace import Workspace
from gitcp.remotes.collect import Collected
from gitcp.remotes.collect import collect as collect_at
from gitcp.remotes.object_store import open_place
from gitcp.sync.import_objects import limits_of


def collect(workspace: Workspace, remote: str, *, dry_run: bool = False) -> Collected:
    """Removes packs at a remote that no document there names.

    Raises:
        UsageError: there is no such remote, or it is a git repository.
        CorruptError, FormatTooNewError: a document cannot be used; nothing was removed.
        TransferError: the remote cannot be reached.
    """
    name = remotes.find(workspace.repository, remote)
    url = remotes.address_of(workspace.repository, name)
    if not store_address.is_store(url):
        raise UsageError(
            f"{remote} is a git repository, not an object store",
            hint="run `git gc` there; its host does so by itself",
        )
    place = open_place(url, limits_of(workspace.settings.sharing))
    return collect_at(place, url, dry_run=dry_run)
