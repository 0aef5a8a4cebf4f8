"""Forks branches that a remote refused as diverged, so that a push can share the forks."""

from collections.abc import Collection, Mapping, Sequence

from gitcp.agents import bindings
from gitcp.format.layout import BranchKey, RefKey
from gitcp.git.transaction import transaction
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.fork_beside import keep_beside
from gitcp.sync.outcome import REJECTED
from gitcp.sync.push_address import Outcomes
from gitcp.sync.push_policy import DIVERGED
from gitcp.trust import trusted_remotes

# The suffix for a user whose name has no letter or digit.
_UNNAMED = "mine"


def fork_diverged(
    workspace: Workspace, outcomes: Sequence[Outcomes], taken: Collection[RefKey]
) -> dict[RefKey, str]:
    """Forks each branch that diverged and returns the tips of the forks.

    `taken` are the branches that the remote has. If the user's current branch was forked,
    the fork becomes the current branch; clients that append to the branch in this work
    tree append to the fork. The same line twice makes one fork.

    Raises:
        BusyError: a ref stayed locked.
        StorageError: the disk refused.
    """
    made: dict[RefKey, str] = {}
    suffix = suffix_of(workspace)
    diverged = _tips(workspace, outcomes)
    for key, tip in diverged.items():
        if any(
            workspace.store.holds(other.commit, tip)
            for at, other in diverged.items()
            if at != key
        ):
            # The other branch's fork holds all of this one.
            continue
        with transaction(workspace.repository) as txn:
            kept = keep_beside(
                *(workspace.store, txn, tip, suffix),
                stem=_stem(tip, suffix),
                taken=taken,
                unfit=diverged,
            )
        fork = workspace.store.checkpoint(kept.commit)
        if fork is not None and kept.is_new:
            trusted_remotes.note_made(workspace.store, fork, tip)
        made[BranchKey.of(tip.session, kept.branch)] = kept.commit
        _continue_on(workspace, tip, kept.branch)
    return made


def _tips(
    workspace: Workspace, outcomes: Sequence[Outcomes]
) -> dict[BranchKey, Checkpoint]:
    """Returns the tips of the branches that diverged."""
    tips = {}
    for key in _diverged(outcomes):
        oid = workspace.repository.refs.read(key.ref)
        tip = workspace.store.checkpoint(oid) if oid is not None else None
        if tip is not None:
            tips[key] = tip
    return tips


def _diverged(outcomes: Sequence[Outcomes]) -> list[BranchKey]:
    """Returns the branches that diverged at some address, if their ledger was not rejected."""
    found: dict[BranchKey, None] = {}
    for each in outcomes:
        for key, outcome in each.items():
            ledger = each.get(key.ledger)
            if (
                isinstance(key, BranchKey)
                and outcome.reason in DIVERGED
                and not (ledger is not None and ledger.result == REJECTED)
            ):
                found[key] = None
    return sorted(found)


def suffix_of(workspace: Workspace) -> str:
    """Returns the suffix of this user's forks: the first word of the user's name."""
    words = (workspace.repository.setting("user.name") or "").lower().split()
    letters = "".join(char for char in words[0] if char.isalnum()) if words else ""
    return letters.encode(errors="ignore").decode() or _UNNAMED


def _stem(tip: Checkpoint, suffix: str) -> str:
    """Returns the branch without this user's suffix, so that a fork of a fork has it once."""
    stem, _, mark = tip.branch.rpartition("~")
    number = mark.removeprefix(suffix)
    ours = mark.startswith(suffix) and (not number or number[1:].isdecimal())
    return stem if stem and ours else tip.branch


def _continue_on(workspace: Workspace, tip: Checkpoint, branch: str) -> None:
    """Moves the user's saves, and those of the clients, from a branch to its fork."""
    if workspace.bare:
        return
    if workspace.noted() == Current(tip.session, tip.branch):
        workspace.make_current(tip.session, branch)
    bindings.follow(workspace, tip.session, tip.branch, branch)


def to_send_again(
    tips: Mapping[RefKey, str], forks: Mapping[RefKey, str]
) -> dict[RefKey, str]:
    """Returns what a second round sends: the forks, and their whole sessions."""
    sessions = {key.ledger for key in forks}
    return {key: oid for key, oid in tips.items() if key.ledger in sessions} | {**forks}


def merged(first: Outcomes, second: Outcomes) -> Outcomes:
    """Returns the outcome of each branch in two rounds."""
    both = dict(first)
    for key, outcome in second.items():
        before = both.get(key)
        if before is None or before.result == REJECTED:
            both[key] = outcome
    return both
