"""Lists a remote's sessions, and whether each is ahead, behind or diverged."""

from typing import NamedTuple

from gitcp.format.layout import LedgerKey
from gitcp.git import remote as remotes
from gitcp.names import decode
from gitcp.project.workspace import Workspace
from gitcp.remotes import by_address as sources
from gitcp.remotes.by_address import Patience
from gitcp.sync import ledgers
from gitcp.sync.encrypted_refs import EncryptedRefs
from gitcp.sync.history import goes_back, is_pruned_form, was_pruned, was_purged
from gitcp.sync.import_objects import limits_of
from gitcp.sync.offered import offered
from gitcp.sync.pruned_there import pruned_there
from gitcp.sync.tracking import tracked


class RemoteBranch(NamedTuple):
    """A branch of a remote.

    `here` compares the branch here with it: `same`, `behind` (a pull fetches more),
    `ahead` (a push sends more), `forked` (they diverged), `new` (it is not here),
    `pruned` (pruned or purged here, not there), `pruned-there` (older checkpoints were
    pruned there, not here), `taken-back` (the remote no longer has all that it had when it
    was last seen).
    """

    branch: str
    commit: str
    here: str


class RemoteLedger(NamedTuple):
    """The ledger of a session's steps on a remote; `commit` is None if it has none.

    `here` is one of the words for a branch (`forked`: a pull joins the two), `not-there`,
    or `different` if only a pull can tell.
    """

    commit: str | None
    here: str


class RemoteSession(NamedTuple):
    """A session of a remote; `steps` is None if neither side has run any."""

    branches: list[RemoteBranch]
    steps: RemoteLedger | None


class RemoteSessions(NamedTuple):
    """The sessions of a remote; `silent` says which repositories did not answer."""

    sessions: dict[str, RemoteSession]
    silent: tuple[str, ...]


def remote_sessions(
    workspace: Workspace, remote: str | None = None, *, interactive: bool = False
) -> RemoteSessions:
    """Returns the sessions that a remote has.

    If a name is too long for a ref and the session is not here, the name is as in the ref.

    Raises:
        UsageError: there is no such remote.
        TransferError: the remote cannot be reached.
    """
    name = remotes.find(
        workspace.repository, remote or workspace.settings.sharing.remote
    )
    patience = Patience(limits_of(workspace.settings.sharing), interactive=interactive)
    source = sources.at(workspace.repository, name, patience)
    there = offered(source, name)
    theirs = EncryptedRefs(workspace, name).stand_for(there.tips)
    ours = workspace.store.refs()
    seen = tracked(workspace.repository.refs, name)
    branches: dict[str, list[RemoteBranch]] = {}
    names: dict[LedgerKey, str] = {}
    for key, oid in sorted(theirs.items()):
        if isinstance(key, LedgerKey):
            continue
        if key in ours:
            session, branch = workspace.store.names(key, ours[key])
        else:
            session, branch = (decode(part) or part for part in key)
        here = _here(workspace, ours.get(key), oid, seen.get(key))
        branches.setdefault(session, []).append(RemoteBranch(branch, oid, here))
        names.setdefault(key.ledger, session)
    # An interrupted push may have left a ledger without a branch.
    for key in ledgers.among(theirs):
        session = names.setdefault(key, ledgers.name_of(workspace, key, ours))
        branches.setdefault(session, [])
    mine = ledgers.here(workspace)
    steps = {
        session: _steps(workspace, key, mine.get(key), theirs.get(key), seen.get(key))
        for key, session in names.items()
    }
    found = {
        session: RemoteSession(listed, steps.get(session))
        for session, listed in branches.items()
    }
    return RemoteSessions(found, tuple(source.silent()))


def _here(workspace: Workspace, ours: str | None, theirs: str, seen: str | None) -> str:
    store = workspace.store
    exists = workspace.repository.objects.exists(bytes.fromhex(theirs))
    if seen is not None and goes_back(store, seen, theirs):
        return "taken-back"
    if ours is None:
        return "new"
    if ours == theirs:
        return "same"
    if (
        was_purged(store, theirs, ours)
        or is_pruned_form(store, of=theirs, line=ours)
        or (seen == theirs and was_pruned(store, theirs, ours))
    ):
        return "pruned"
    if not exists:
        return "behind"
    tip, mine = store.checkpoint(theirs), store.checkpoint(ours)
    if mine is not None and pruned_there(store, mine, theirs) is not None:
        return "pruned-there"
    if tip is not None and store.holds(ours, tip):
        return "ahead"
    return "behind" if mine is not None and store.holds(theirs, mine) else "forked"


def _steps(
    workspace: Workspace,
    key: LedgerKey,
    ours: str | None,
    theirs: str | None,
    seen: str | None,
) -> RemoteLedger | None:
    if theirs is None:
        return RemoteLedger(None, "not-there") if ours is not None else None
    return RemoteLedger(theirs, _steps_here(workspace, key, ours, theirs, seen))


def _steps_here(
    workspace: Workspace,
    key: LedgerKey,
    ours: str | None,
    theirs: str,
    seen: str | None,
) -> str:
    there = None
    if ours != theirs and workspace.repository.objects.exists(bytes.fromhex(theirs)):
        there = ledgers.commits_of(workspace, key, theirs)[0]
        if seen is not None and seen not in there:
            return "taken-back"
    if ours is None or ours == theirs:
        return "new" if ours is None else "same"
    known, purged = ledgers.commits_of(workspace, key, ours)
    if theirs in known | purged:
        return "ahead" if theirs in known else "pruned"
    # The remote already had our whole ledger, and ledgers are append-only.
    if seen == ours or (there is not None and ours in there):
        return "behind"
    return "forked" if there is not None else "different"
