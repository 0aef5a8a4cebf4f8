"""What a remote has, and how it stands to what is here."""

from typing import NamedTuple

from gitcp.format import layout
from gitcp.git import remote as remotes
from gitcp.names import decode, encode
from gitcp.ops.sharing.encryption import Forms
from gitcp.ops.sharing.pull import offered
from gitcp.ops.workspace import Workspace
from gitcp.sharing.adopt import holds
from gitcp.store.lineage import goes_back


class RemoteBranch(NamedTuple):
    """A branch of a remote.

    `here` is `same`, `behind` (pull brings more), `ahead` (push would send more),
    `forked` (both grew), `new` (not here), `taken-back` (it has less than it had when it
    was last seen, or something else).
    """

    branch: str
    commit: str
    here: str


def remote_sessions(
    workspace: Workspace, remote: str | None = None, *, interactive: bool = False
) -> dict[str, list[RemoteBranch]]:
    """Returns the branches of each session that a remote has.

    A name too long for a ref is given as the ref has it, where the session is not here.

    Raises:
        UsageError: there is no such remote.
        TransferError: it cannot be reached.
    """
    place = remotes.find(
        workspace.repository, remote or workspace.settings.sharing.remote
    )
    there = offered(workspace, place, interactive=interactive).branches
    found = Forms(workspace, place).stand_for(there)
    ours = workspace.store.refs()
    prefix = f"{layout.REMOTES}{encode(place)}/"
    seen = workspace.repository.refs.list(prefix)
    sessions: dict[str, list[RemoteBranch]] = {}
    for key, oid in sorted(found.items()):
        if key in ours:
            session, branch = workspace.store.names(key, ours[key])
        else:
            session, branch = (decode(part) or part for part in key)
        before = seen.get(f"{prefix}{key[0]}/{key[1]}")
        here = _here(workspace, ours.get(key), oid, before)
        sessions.setdefault(session, []).append(RemoteBranch(branch, oid, here))
    return sessions


def _here(workspace: Workspace, ours: str | None, theirs: str, seen: str | None) -> str:
    store = workspace.store
    exists = workspace.repository.objects.exists(bytes.fromhex(theirs))
    if seen is not None and exists and goes_back(store, seen, theirs):
        return "taken-back"
    if ours is None:
        return "new"
    if ours == theirs:
        return "same"
    if not exists:
        return "behind"
    tip, mine = store.checkpoint(theirs), store.checkpoint(ours)
    if tip is not None and holds(store, ours, tip):
        return "ahead"
    return "behind" if mine is not None and holds(store, theirs, mine) else "forked"
