"""Which of the commits that a remote claims to have it really has, by what was noted here.

A push scans for secrets what the remote lacks. A server may claim to have any commit: of
unsent ones it learns the ids from a pull. git sends whatever the server does not claim in
the push itself. So a claim counts only for what was sent there or came from there.
"""

from collections.abc import Iterable, Mapping

from gitcp.errors import CorruptError
from gitcp.format.layout import LedgerKey, RefKey
from gitcp.git.repository import Repository
from gitcp.project.workspace import Workspace
from gitcp.sync import ledgers
from gitcp.sync.tracking import tracked

_TRACKED = "refs/remotes/"


def proven(
    workspace: Workspace, remote: str, claimed: Mapping[RefKey, str]
) -> frozenset[str]:
    """Returns those of the claimed tips that the remote's noted tips reach."""
    noted = tracked(workspace.repository.refs, remote, claimed)
    return frozenset(
        oid
        for key, oid in claimed.items()
        if (tip := noted.get(key)) is not None
        and (tip == oid or _is_below(workspace, key, oid, tip))
    )


def published(repository: Repository, claimed: Iterable[str]) -> set[str]:
    """Returns those of some commits of the user's that a remote-tracking branch reaches."""
    tips = set(repository.refs.list(_TRACKED).values())
    return {oid for oid in claimed if oid in tips or _is_reached(repository, oid)}


def _is_below(workspace: Workspace, key: RefKey, oid: str, tip: str) -> bool:
    if isinstance(key, LedgerKey):
        return oid in ledgers.commits_of(workspace, key, tip)[0]
    if not workspace.repository.objects.exists(bytes.fromhex(oid)):
        return False
    try:
        wanted = workspace.store.checkpoint(oid)
        return wanted is not None and workspace.store.holds(tip, wanted)
    except CorruptError:
        # A collection may just have removed it. What cannot be read is not proven.
        return False


def _is_reached(repository: Repository, oid: str) -> bool:
    return not repository.git("rev-list", "-n1", oid, "--not", "--remotes")
