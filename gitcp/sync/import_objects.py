"""Imports objects from another repository: validates them in quarantine, then adopts."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from gitcp.encryption.quarantine import Quarantine, QuarantineLimits
from gitcp.errors import CorruptError, GitcpError, UnsafePathError
from gitcp.format import layout
from gitcp.format.checkpoint import show_path
from gitcp.format.encrypted import encrypted_of
from gitcp.format.layout import BranchKey, LedgerKey, RefKey
from gitcp.git.remote import RefusedError
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.git.transport import Limits
from gitcp.maintenance.check_logs import LogRoom
from gitcp.maintenance.ledgers import faults
from gitcp.maintenance.problems import Problem
from gitcp.maintenance.verify import verify_new
from gitcp.project.settings import Sharing
from gitcp.project.workspace import Workspace
from gitcp.store.store import Store
from gitcp.sync.ledgers import among, pages_of
from gitcp.sync.validate import (
    Incoming,
    ObjectValidator,
    Rejection,
    joined,
    list_incoming,
)

# git holds objects in memory only one by one: a transfer that needs more is a bomb.
MEMORY = 384 * 1024 * 1024

# Each list of the refs below a prefix reads all packed refs.
_MANY = 20

Fetch = Callable[[Quarantine, Limits], None]
# Decrypts: returns the commits that tips stand for, and what is wrong with the others.
Decrypt = Callable[
    [Repository, Mapping[RefKey, str], ObjectValidator, QuarantineLimits],
    tuple[dict[RefKey, str], dict[RefKey, Rejection]],
]


class Validated(NamedTuple):
    """Validated tips: those that may be adopted, and what is wrong with the others.

    `theirs` reads what was fetched, in quarantine.
    """

    theirs: Store
    good: dict[RefKey, str]
    bad: dict[RefKey, Rejection]


def bounds_of(settings: Sharing) -> QuarantineLimits:
    """Returns how much a pull may fetch."""
    return QuarantineLimits(
        settings.pull_max_size,
        settings.pull_max_file,
        settings.pull_max_objects,
        settings.pull_max_objects // 4,
    )


def limits_of(settings: Sharing) -> Limits:
    """Returns how long a transfer may be silent, and how long it may take in all."""
    return Limits(settings.transfer_timeout, settings.transfer_limit)


def validate(
    workspace: Workspace,
    txn: Transaction,
    tips: Mapping[RefKey, str],
    ours: frozenset[str],
    fetch: Fetch,
    *,
    name: str = "quarantine",
    decrypt: Decrypt | None = None,
) -> Validated:
    """Fetches into a quarantine and validates each branch and each ledger.

    `ours` are commits of this repository: what they reach is not validated again. A
    session whose ledger is refused is refused as well, because its steps would not be
    known. `decrypt` decrypts encrypted commits before they are validated; `good` has the
    commits that they stand for.

    Raises:
        TransferError: git refuses the fetched objects, or they exceed a limit.
    """
    settings = workspace.settings.sharing
    bounds = bounds_of(settings)
    limits = limits_of(settings)
    quarantine = Quarantine(txn, name, bounds)
    try:
        fetch(quarantine, limits._replace(file=bounds.size, memory=MEMORY))
    except RefusedError:
        quarantine.refuse_if_full()
        raise
    quarantine.growth()
    repository = quarantine.repository(_branch_refs(tips))
    incoming = list_incoming(
        repository, tips.values(), ours, bounds=bounds, limits=limits
    )
    base = workspace.store.allowance.base()
    validator = ObjectValidator(repository, incoming, settings.extent, base)
    bad: dict[RefKey, Rejection] = {}
    if decrypt is not None:
        encrypted = tips
        tips, bad = decrypt(repository, encrypted, validator, bounds)
        if any(encrypted[key] != oid for key, oid in tips.items()):
            repository = quarantine.repository(_branch_refs(tips))
            decrypted = list_incoming(
                repository, tips.values(), ours, bounds=bounds, limits=limits
            )
            incoming = {**incoming, **decrypted}
            validator = ObjectValidator(repository, incoming, settings.extent, base)
    bad |= {
        key: rejection
        for key, oid in among(tips).items()
        if (rejection := _check_ledger(workspace, repository, key, oid, incoming))
    }
    theirs = Store(repository)
    _check_branches(theirs, validator, tips, bad, incoming, bounds.size)
    good = {key: oid for key, oid in tips.items() if key not in bad}
    # A refusal shows only the first reasons, so the branches come first.
    ordered = sorted(bad.items(), key=lambda item: isinstance(item[0], LedgerKey))
    return Validated(theirs, good, dict(ordered))


def _check_branches(
    theirs: Store,
    validator: ObjectValidator,
    tips: Mapping[RefKey, str],
    bad: dict[RefKey, Rejection],
    incoming: Incoming,
    room: int,
) -> None:
    """Adds to `bad` what is wrong with branches; logs are read up to `room` bytes."""
    good: list[BranchKey] = []
    for key, oid in tips.items():
        if isinstance(key, BranchKey):
            _, rejection = validator.line(oid)
            rejection = rejection or _misnamed(theirs, key, oid) or bad.get(key.ledger)
            if rejection is None:
                good.append(key)
            else:
                bad[key] = rejection
    if not verify_new(theirs, good, incoming, LogRoom(room)):
        return
    # All branches share one limit: each by itself may be large enough to take long.
    shared = LogRoom(room)
    for branch in good:
        # Checked together, a fault that branches share would be named for one only.
        problems = verify_new(theirs, [branch], incoming, shared)
        if problems:
            unsafe = any(problem.unsafe for problem in problems)
            bad[branch] = Rejection(joined(list(map(_sentence, problems))), unsafe)


def _check_ledger(
    workspace: Workspace,
    repository: Repository,
    key: LedgerKey,
    oid: str,
    incoming: Incoming,
) -> Rejection | None:
    """Returns what is wrong with a ledger."""
    problems = [
        fault.problem for fault in faults(repository, key.session, oid, incoming)
    ]
    if problems:
        return Rejection(f"the ledger of its steps: {joined(problems)}")
    ours = workspace.repository.refs.read(key.ref)
    if ours is None:
        return None
    mine = pages_of(workspace.repository, key, ours)
    theirs = pages_of(repository, key, oid)
    # A join must not bring back records that one side has purged.
    for purged, other, problem in (
        (
            mine,
            theirs,
            "it holds what you purged here; run `gitcp push --pruned` first",
        ),
        (
            theirs,
            mine,
            "something was purged from it there; run `gitcp purge` here, too",
        ),
    ):
        gone = {old for page in purged for old in page.purged}
        if gone & {oid for page in other for oid in (page.oid, *page.converted)}:
            return Rejection(f"the ledger of its steps: {problem}")
    return None


def _branch_refs(tips: Mapping[RefKey, str]) -> dict[str, str]:
    return {key.ref: oid for key, oid in tips.items() if isinstance(key, BranchKey)}


def _misnamed(theirs: Store, key: BranchKey, oid: str) -> Rejection | None:
    """Returns what is wrong if a ref does not point to a tip of that branch."""
    try:
        tip = theirs.checkpoint(oid)
        if tip is None:
            commit = theirs.repository.objects.commit(bytes.fromhex(oid))
            if encrypted_of(commit) is not None:
                return Rejection("it is encrypted: only `gitcp pull` decrypts it")
            return Rejection(f"{oid} is not a checkpoint")
        if (tip.trailers.session, tip.trailers.branch) != key:
            return Rejection(f"{oid} is a checkpoint of another branch")
        _ = tip.manifest
    except GitcpError as exc:
        return Rejection(exc.message)
    return None


def _sentence(problem: Problem) -> str:
    where = f"{show_path(problem.path)} " if problem.path else ""
    return f"checkpoint {problem.checkpoint or '?'}: {where}{problem.problem}"


def refusal(source: str, bad: Mapping[RefKey, Rejection]) -> GitcpError:
    """Returns the error for rejected branches and ledgers."""
    message = f"{source}: {joined([each.text for each in bad.values()])}"
    hint = "nothing of it was adopted; do not use it"
    if any(each.unsafe for each in bad.values()):
        return UnsafePathError(message, hint=hint)
    first = next(iter(bad.values()))
    if first.error is not None and {each.error for each in bad.values()} == {
        first.error
    }:
        return first.error(message, hint=first.hint)
    return CorruptError(message, hint=hint)


def our_tips(workspace: Workspace, keys: Collection[RefKey]) -> frozenset[str]:
    """Returns the commits of ours that another repository may know.

    Those are HEAD, the branches, the remote-tracking branches, and the tips of the same
    sessions and ledgers; not those of other sessions, of which there may be thousands.
    """
    refs = workspace.repository.refs
    tips: set[str] = set()
    for prefix in ("refs/heads/", "refs/remotes/"):
        tips.update(refs.list(prefix).values())
    head, _ = workspace.repository.head()
    ledgers = {key for key in keys if isinstance(key, LedgerKey)}
    sessions = {key.session for key in keys if isinstance(key, BranchKey)}
    if len(sessions) > _MANY:
        tips.update(workspace.store.refs().values())
    else:
        for session in sessions:
            tips.update(refs.list(f"{layout.SESSIONS}{session}/").values())
    singles = [head, *(refs.read(key.ref) for key in ledgers)]
    tips.update(oid for oid in singles if oid is not None)
    return frozenset(tips)
