"""Ledgers in a push or pull: what is new in one, adopting it, what is missing."""

from collections.abc import Mapping

from gitcp.format import layout
from gitcp.format.commit import Commit
from gitcp.format.ledger import LedgerCommit
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.ledger.commits import read_pages
from gitcp.names import decode, encode
from gitcp.project.recovery import drain_logs
from gitcp.project.workspace import Workspace
from gitcp.sync.adopt import UP_TO_DATE, Adopted, remember
from gitcp.sync.validate import Key

TAKEN_BACK = "it was taken back there; what it had is here, and a push brings it back"
# The key of a ledger among those of branches: no branch has an empty name.
NO_BRANCH = ""


def key_of(component: str) -> Key:
    """Returns what names the ledger of a session among its branches."""
    return Key(component, NO_BRANCH)


def ref_of(key: Key) -> str:
    """Returns the ref of a branch, or of the ledger of a session."""
    if key[1] == NO_BRANCH:
        return f"{layout.EFFECTS}{key[0]}"
    return f"{layout.SESSIONS}{key[0]}/{key[1]}"


def noted_ref(remote: str, key: Key) -> str:
    """Returns the ref that keeps what a remote has of a branch or a ledger."""
    if key[1] == NO_BRANCH:
        return f"{layout.REMOTE_EFFECTS}{encode(remote)}/{key[0]}"
    return f"{layout.REMOTES}{encode(remote)}/{key[0]}/{key[1]}"


def here(workspace: Workspace) -> dict[Key, str]:
    """Returns the ledgers of this repository and their tips.

    Raises:
        StorageError: what they hold could not be put into git.
    """
    drain_logs(workspace.repository, timeout=workspace.settings.lock_timeout)
    listed = workspace.repository.refs.list(layout.EFFECTS)
    found = {ref.removeprefix(layout.EFFECTS): oid for ref, oid in listed.items()}
    return {key_of(name): oid for name, oid in found.items() if "/" not in name}


def of(workspace: Workspace, session: str) -> dict[Key, str]:
    """Returns the ledger of one session and its tip, if it has one.

    Raises:
        StorageError: what it holds could not be put into git.
    """
    drain_logs(workspace.repository, timeout=workspace.settings.lock_timeout)
    key = key_of(encode(session))
    tip = workspace.repository.refs.read(ref_of(key))
    return {key: tip} if tip is not None else {}


def pages_of(repository: Repository, component: str, tip: str) -> list[LedgerCommit]:
    """Returns the pages of a ledger below a commit, in whatever repository.

    Raises:
        CorruptError, FormatTooNewError: it cannot be read.
    """

    def read(oid: str) -> Commit:
        return repository.objects.commit(bytes.fromhex(oid))

    return read_pages(read, tip, ref_of(key_of(component)))[0]


def commits_of(
    workspace: Workspace, component: str, tip: str
) -> tuple[set[str], set[str]]:
    """Returns the commits of a ledger, and those that stood for some before a purge.

    Raises:
        CorruptError, FormatTooNewError: it cannot be read.
    """
    pages = pages_of(workspace.repository, component, tip)
    return {one.oid for one in pages}, {old for one in pages for old in one.purged}


def name_of(workspace: Workspace, component: str, tips: Mapping[Key, str]) -> str:
    """Returns the name of a session; one that is cut in a ref is whole in its tips."""
    found = decode(component)
    for key, oid in tips.items() if found is None else ():
        if key[0] == component:
            return workspace.store.names(key, oid)[0]
    return found or component


def holds(workspace: Workspace, component: str, oid: str) -> bool:
    """Whether our ledger of a session has a commit, or one that stands for it."""
    ours = workspace.repository.refs.read(ref_of(key_of(component)))
    if not oid or ours == oid:
        return True
    if ours is None:
        return False
    return any(oid in some for some in commits_of(workspace, component, ours))


def news(workspace: Workspace, place: str, found: Mapping[str, str]) -> dict[str, str]:
    """Returns the ledgers of a remote that hold what ours do not."""
    refs = workspace.repository.refs
    lacking = {}
    for component, oid in found.items():
        seen = refs.read(noted_ref(place, key_of(component)))
        ours = refs.read(ref_of(key_of(component)))
        taken = ours is not None and seen == oid
        if not taken and not holds(workspace, component, oid):
            lacking[component] = oid
    return lacking


def take_over(
    workspace: Workspace, ledgers: Mapping[str, str], tips: Mapping[Key, str]
) -> list[Adopted]:
    """Adopts ledgers whose objects are here and were judged, as are those of `tips`.

    Raises:
        BusyError: another process kept one.
        StorageError: the disk refused.
    """
    done = []
    for component, oid in ledgers.items():
        session = name_of(workspace, component, tips)
        result = workspace.ledgers.of(session).adopt(oid)
        done.append(Adopted(session, NO_BRANCH, result, NO_BRANCH, oid))
    return done


def note(
    workspace: Workspace, opened: Transaction, place: str, found: Mapping[str, str]
) -> list[Adopted]:
    """Notes what a remote has; returns the ledgers that were taken back there."""
    repository = workspace.repository
    back = []
    for component, oid in found.items():
        ref = noted_ref(place, key_of(component))
        seen = repository.refs.read(ref)
        if seen == oid:
            continue
        known = seen is not None and repository.objects.exists(bytes.fromhex(oid))
        if known and seen not in commits_of(workspace, component, oid)[0]:
            session = decode(component) or component
            made = Adopted(session, NO_BRANCH, UP_TO_DATE, NO_BRANCH, oid, TAKEN_BACK)
            back.append(made)
        remember(repository, opened, ref, seen, oid)
    return back
