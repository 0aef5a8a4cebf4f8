"""Imports objects from another repository: validates them in quarantine, then adopts."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gitcp.encryption.quarantine import Bounds, Quarantine
from gitcp.errors import CorruptError, GitcpError, UnsafePathError
from gitcp.format import layout
from gitcp.format.checkpoint import show_path
from gitcp.format.encrypted import encrypted_of
from gitcp.git.remote import RefusedError
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.git.transport import Limits
from gitcp.maintenance.check import LogRoom, Problem
from gitcp.maintenance.ledgers import faults
from gitcp.maintenance.verify import verify_new
from gitcp.project.settings import Sharing
from gitcp.project.workspace import Workspace
from gitcp.store.store import Store
from gitcp.sync.ledgers import NO_BRANCH, key_of, pages_of
from gitcp.sync.validate import Fault, Incoming, Judge, Key, joined, take_stock

# git holds objects in memory only one by one: what needs more than this is a bomb.
_MEMORY = 384 * 1024 * 1024

# Each look below a prefix reads all packed refs.
_MANY = 20

Fetch = Callable[[Quarantine, Limits], None]
# Opens what is encrypted: the commits that tips stand for, and what is wrong with others;
# of ledgers as of branches.
Open = Callable[
    [Repository, Mapping[Key, str], Judge, Bounds],
    tuple[dict[Key, str], dict[Key, Fault]],
]


class Judged(NamedTuple):
    """Validated tips: those that may be adopted, and what is wrong with the others.

    `theirs` reads it, in quarantine. `ledgers` are those that may be adopted, by the
    component of their session; of the others `unfit` says what is wrong.
    """

    theirs: Store
    good: dict[Key, str]
    bad: dict[Key, Fault]
    ledgers: dict[str, str]
    unfit: dict[str, Fault]


def bounds_of(settings: Sharing) -> Bounds:
    """Returns what a pull may bring."""
    return Bounds(
        settings.pull_max_size,
        settings.pull_max_file,
        settings.pull_max_objects,
        settings.pull_max_objects // 4,
    )


def limits_of(settings: Sharing) -> Limits:
    """Returns how long a transfer may be silent and may take."""
    return Limits(settings.transfer_timeout, settings.transfer_limit)


def judge(
    workspace: Workspace,
    opened: Transaction,
    tips: Mapping[Key, str],
    ours: frozenset[str],
    fetch: Fetch,
    *,
    ledgers: Mapping[str, str],
    name: str = "quarantine",
    unlock: Open | None = None,
) -> Judged:
    """Fetches into a quarantine and judges each branch and each ledger.

    `ours` are commits of this repository: what they reach is not looked at again. A
    session whose ledger is unfit is so itself: what it did would not be known. What is
    encrypted is opened by `unlock` and judged after that; `good` and `ledgers` are the
    commits it stands for.

    Raises:
        TransferError: git refuses what came, or it is more than may come.
    """
    settings = workspace.settings.sharing
    bounds = bounds_of(settings)
    limits = limits_of(settings)
    quarantine = Quarantine(opened, name, bounds)
    try:
        fetch(quarantine, limits._replace(file=bounds.size, memory=_MEMORY))
    except RefusedError:
        quarantine.refuse_if_full()
        raise
    quarantine.growth()
    repository = quarantine.repository(_refs(tips))
    wanted = [*tips.values(), *ledgers.values()]
    incoming = take_stock(repository, wanted, ours, bounds=bounds, limits=limits)
    base = workspace.store.allowance.base()
    court = Judge(repository, incoming, settings.extent, base)
    good: dict[Key, str] = {}
    bad: dict[Key, Fault] = {}
    unfit: dict[str, Fault] = {}
    if unlock is not None:
        there = {**tips, **{key_of(name): oid for name, oid in ledgers.items()}}
        plain, wrong = unlock(repository, there, court, bounds)
        tips = {key: plain[key] for key in tips if key in plain}
        bad = {key: fault for key, fault in wrong.items() if key[1] != NO_BRANCH}
        unfit = {key[0]: fault for key, fault in wrong.items() if key not in bad}
        ledgers = {name: plain[key_of(name)] for name in ledgers if name not in unfit}
        if any(there[key] != oid for key, oid in plain.items()):
            repository = quarantine.repository(_refs(tips))
            opened_too = take_stock(
                repository, plain.values(), ours, bounds=bounds, limits=limits
            )
            incoming = {**incoming, **opened_too}
            court = Judge(repository, incoming, settings.extent, base)
    unfit |= {
        component: fault
        for component, oid in ledgers.items()
        if (fault := _ledger(workspace, repository, component, oid, incoming))
        is not None
    }
    theirs = Store(repository)
    for key, oid in tips.items():
        _, fault = court.line(oid)
        fault = fault or _misnamed(theirs, key, oid) or unfit.get(key[0])
        if fault is None:
            good[key] = oid
        else:
            bad[key] = fault
    if verify_new(theirs, list(good), incoming, LogRoom(bounds.size)):
        # One for all: each by itself may be large enough to take long.
        room = LogRoom(bounds.size)
        for key in list(good):
            # What branches share would be named for one of them only.
            problems = verify_new(theirs, [key], incoming, room)
            if problems:
                unsafe = any(problem.unsafe for problem in problems)
                bad[key] = Fault(joined(list(map(_said, problems))), unsafe)
                del good[key]
    fit = {key: oid for key, oid in ledgers.items() if key not in unfit}
    return Judged(theirs, good, bad, fit, unfit)


def _ledger(
    workspace: Workspace,
    repository: Repository,
    component: str,
    oid: str,
    incoming: Incoming,
) -> Fault | None:
    """Returns what is wrong with a ledger."""
    found = [one.problem for one in faults(repository, component, oid, incoming)]
    if found:
        return Fault(f"the ledger of its steps: {joined(found)}")
    ours = workspace.repository.refs.read(f"{layout.EFFECTS}{component}")
    if ours is None:
        return None
    mine = pages_of(workspace.repository, component, ours)
    theirs = pages_of(repository, component, oid)
    # What was taken out on one side must not come back by a join with the other.
    for one, other, said in (
        (mine, theirs, "it holds what was purged here; `gitcp push --pruned` first"),
        (
            theirs,
            mine,
            "something was purged from it there; `gitcp purge` it here, too",
        ),
    ):
        gone = {old for page in one for old in page.purged}
        if gone & {page.oid for page in other}:
            return Fault(f"the ledger of its steps: {said}")
    return None


def _refs(tips: Mapping[Key, str]) -> dict[str, str]:
    return {f"{layout.SESSIONS}{key[0]}/{key[1]}": oid for key, oid in tips.items()}


def _misnamed(theirs: Store, key: Key, oid: str) -> Fault | None:
    """Returns what is wrong if a ref points to what is not a tip of that branch."""
    try:
        tip = theirs.checkpoint(oid)
        if tip is None:
            raw = theirs.repository.objects.commit(bytes.fromhex(oid))
            if encrypted_of(raw) is not None:
                return Fault("it is encrypted: only `gitcp pull` opens it")
            return Fault(f"{oid} is not a checkpoint")
        if (tip.trailers.session, tip.trailers.branch) != key:
            return Fault(f"{oid} is a checkpoint of another branch")
        _ = tip.manifest
    except GitcpError as exc:
        return Fault(exc.message)
    return None


def _said(problem: Problem) -> str:
    where = f"{show_path(problem.path)} " if problem.path else ""
    return f"checkpoint {problem.checkpoint or '?'}: {where}{problem.problem}"


def refusal(source: str, bad: Mapping[Key, Fault]) -> GitcpError:
    """Returns the error for what was judged unfit."""
    said = f"{source}: {joined([fault.text for fault in bad.values()])}"
    hint = "nothing of it was adopted; do not use it"
    if any(fault.unsafe for fault in bad.values()):
        return UnsafePathError(said, hint=hint)
    first = next(iter(bad.values()))
    if first.error is not None and {fault.error for fault in bad.values()} == {
        first.error
    }:
        return first.error(said, hint=first.hint)
    return CorruptError(said, hint=hint)


def our_tips(
    workspace: Workspace, keys: Mapping[Key, str], ledgers: Iterable[str] = ()
) -> frozenset[str]:
    """Returns the commits of ours that another repository may know.

    Those are HEAD, branches, what was seen of remotes, and the same sessions; not the
    thousands of other sessions there may be. `ledgers` are sessions whose ledger counts.
    """
    refs = workspace.repository.refs
    found: set[str] = set()
    for prefix in ("refs/heads/", "refs/remotes/"):
        found.update(refs.list(prefix).values())
    head, _ = workspace.repository.head()
    if head is not None:
        found.add(head)
    sessions = {key[0] for key in keys}
    if len(sessions) > _MANY:
        found.update(workspace.store.refs().values())
    else:
        for session in sessions:
            found.update(refs.list(f"{layout.SESSIONS}{session}/").values())
    here = (refs.read(f"{layout.EFFECTS}{component}") for component in ledgers)
    found.update(oid for oid in here if oid is not None)
    return frozenset(found)
