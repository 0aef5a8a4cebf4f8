"""Ledgers in a push or pull: finds what is new or missing, and adopts it."""

from collections.abc import Container, Iterator, Mapping

from gitcp.format import layout
from gitcp.format.commit import Commit
from gitcp.format.layout import BranchKey, LedgerKey, RefKey
from gitcp.format.ledger import LedgerCommit
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.ledger.commits import read_pages
from gitcp.names import decode
from gitcp.project.recovery import drain_logs
from gitcp.project.workspace import Workspace
from gitcp.sync.adopt import remember
from gitcp.sync.outcome import UP_TO_DATE, Outcome, of_ledger

TAKEN_BACK = (
    "it was rewound there; this repository has the rest, and a push restores it"
)


def among(tips: Mapping[RefKey, str]) -> dict[LedgerKey, str]:
    """Returns the ledgers among branches and ledgers."""
    return {key: oid for key, oid in tips.items() if isinstance(key, LedgerKey)}


def here(workspace: Workspace) -> dict[LedgerKey, str]:
    """Returns the ledgers of this repository and their tips.

    Raises:
        StorageError: their write-ahead logs could not be drained.
    """
    drain_logs(workspace.repository, timeout=workspace.settings.lock_timeout)
    listed = workspace.repository.refs.list(layout.EFFECTS)
    components = {ref.removeprefix(layout.EFFECTS): oid for ref, oid in listed.items()}
    return {LedgerKey(name): oid for name, oid in components.items() if "/" not in name}


def of(workspace: Workspace, session: str) -> dict[LedgerKey, str]:
    """Returns the ledger of one session and its tip, if it has one.

    Raises:
        StorageError: its write-ahead log could not be drained.
    """
    drain_logs(workspace.repository, timeout=workspace.settings.lock_timeout)
    key = LedgerKey.of(session)
    tip = workspace.repository.refs.read(key.ref)
    return {key: tip} if tip is not None else {}


def pages_of(repository: Repository, key: LedgerKey, tip: str) -> list[LedgerCommit]:
    """Returns the ledger commits below a tip, in any repository.

    Raises:
        CorruptError, FormatTooNewError: the ledger cannot be read.
    """

    def read(oid: str) -> Commit:
        return repository.objects.commit(bytes.fromhex(oid))

    return read_pages(read, tip, key.ref)[0]


def commits_of(
    workspace: Workspace, key: LedgerKey, tip: str
) -> tuple[set[str], set[str]]:
    """Returns the commits of a ledger, and those that a purge has replaced.

    Raises:
        CorruptError, FormatTooNewError: the ledger cannot be read.
    """
    pages = pages_of(workspace.repository, key, tip)
    return {page.oid for page in pages}, {old for page in pages for old in page.purged}


def name_of(workspace: Workspace, key: LedgerKey, tips: Mapping[BranchKey, str]) -> str:
    """Returns the name of a session; if the ref has it truncated, a tip has the whole name."""
    name = decode(key.session)
    for branch, oid in tips.items() if name is None else ():
        if branch.ledger == key:
            return workspace.store.names(branch, oid)[0]
    return name or key.session


def holds(workspace: Workspace, key: LedgerKey, oid: str) -> bool:
    """Whether our ledger of a session has a commit, or the one that a purge replaced it by."""
    ours = workspace.repository.refs.read(key.ref)
    if not oid or ours == oid:
        return True
    if ours is None:
        return False
    return any(oid in commits for commits in commits_of(workspace, key, ours))


def news(
    workspace: Workspace, remote: str, theirs: Mapping[LedgerKey, str]
) -> Iterator[LedgerKey]:
    """Yields the ledgers of a remote that hold records that ours lack."""
    refs = workspace.repository.refs
    for key, oid in theirs.items():
        seen = refs.read(key.tracking_ref(remote))
        adopted = seen == oid and refs.read(key.ref) is not None
        if not adopted and not holds(workspace, key, oid):
            yield key


def take_over(
    workspace: Workspace,
    ledgers: Mapping[LedgerKey, str],
    tips: Mapping[BranchKey, str],
) -> list[Outcome]:
    """Adopts ledgers; their objects and those of `tips` are here, and validated.

    Raises:
        BusyError: another process kept a ledger locked.
        StorageError: the disk refused.
    """
    outcomes = []
    for key, oid in ledgers.items():
        session = name_of(workspace, key, tips)
        result = workspace.ledgers.of(session).adopt(oid)
        outcomes.append(of_ledger(session, result, oid))
    return outcomes


def note(
    workspace: Workspace,
    txn: Transaction,
    remote: str,
    theirs: Mapping[LedgerKey, str],
    came: Container[LedgerKey],
) -> list[Outcome]:
    """Notes the ledgers that a remote has; returns those that were rewound there.

    `came` are those with records that were not here. Of what was here already, a claim is
    believed only if the remote was known to have it (`sync.proven`).
    """
    repository = workspace.repository
    rewound = []
    for key, oid in theirs.items():
        ref = key.tracking_ref(remote)
        seen = repository.refs.read(ref)
        # A commit that was purged here may still be there: a ref to it would stop git's gc.
        if seen == oid or not repository.objects.exists(bytes.fromhex(oid)):
            continue
        if key not in came and (
            seen is None or oid not in commits_of(workspace, key, seen)[0]
        ):
            continue
        if seen is not None and seen not in commits_of(workspace, key, oid)[0]:
            session = decode(key.session) or key.session
            rewound.append(of_ledger(session, UP_TO_DATE, oid, TAKEN_BACK))
        remember(txn, ref, seen, oid)
    return rewound
