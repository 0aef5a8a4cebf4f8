"""Branches and ledgers whose refs have gone while what they held is still here.

A mirror fetch with pruning deletes refs, and so does a slip of the hand; a power cut may
leave an empty file. Commits say themselves what they are of, so nothing has to be written
down beforehand. What `gc` has removed is gone for good.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gitcp.errors import CorruptError, GitFailedError
from gitcp.format import layout
from gitcp.format.commit import purged
from gitcp.format.ledger import ledger_trailers
from gitcp.git.transaction import STAGED_REF, transaction
from gitcp.names import decode
from gitcp.ops.workspace import Workspace
from gitcp.sharing.adopt import move
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.pages import ledgers

# Encoded session and branch.
Key = tuple[str, str]


class Lost(NamedTuple):
    """A branch without a ref; `tip` is the newest checkpoint of it that is here."""

    session: str
    branch: str
    ref: str
    tip: Checkpoint


class LostLedger(NamedTuple):
    """A ledger of steps without a ref; `last` is the number of its last record."""

    session: str
    ref: str
    commit: str
    last: int


def lost_ledgers(workspace: Workspace) -> list[LostLedger]:
    """Returns the ledgers that no ref is left of, and that could be put back.

    Raises:
        GitFailedError: git cannot list the objects.
    """
    objects = workspace.repository.objects
    here = {component for component, _ in ledgers(workspace.repository)}
    found: dict[str, dict[str, int]] = {}
    below: set[str] = set()
    for oid in _commits(workspace):
        try:
            commit = objects.commit(bytes.fromhex(oid))
        except CorruptError:
            continue
        said = ledger_trailers(commit)
        if said is not None and said.session not in here:
            found.setdefault(said.session, {})[oid] = said.last
            below |= {parent.hex() for parent in commit.parents}
            below |= purged(commit)
    tips = []
    for component, ones in sorted(found.items()):
        ends = sorted((last, oid) for oid, last in ones.items() if oid not in below)
        whole = (one for one in reversed(ends) if _is_whole(workspace, one[1]))
        for last, oid in [*whole][:1]:
            name = decode(component) or component
            tips.append(LostLedger(name, f"{layout.EFFECTS}{component}", oid, last))
    unreached = _unreached(workspace, [one.commit for one in tips])
    return [one for one in tips if one.commit in unreached]


def lost(workspace: Workspace) -> list[Lost]:
    """Returns the branches that no ref is left of, and that could be put back.

    Raises:
        GitFailedError: git cannot list the objects.
    """
    store = workspace.store
    refs = store.refs()
    found: dict[Key, dict[bytes, Checkpoint]] = {}
    replaced: set[str] = set()
    for one in _checkpoints(workspace):
        replaced |= set(purged(one.raw))
        key = one.trailers.session, one.trailers.branch
        if key not in refs:
            found.setdefault(key, {})[one.oid] = one
    tips: list[tuple[Key, Checkpoint]] = []
    for key, ones in found.items():
        followed = {parent for one in ones.values() for parent in one.raw.parents}
        ends = [
            one
            for oid, one in ones.items()
            if oid not in followed and one.commit not in replaced
        ]
        # Of two forms of one line the shorter was pruned on purpose.
        ends.sort(key=lambda one: (-one.seq, len(list(_known(one, ones)))))
        whole = next((one for one in ends if _is_whole(workspace, one.commit)), None)
        if whole is not None:
            tips.append((key, whole))
    unreached = _unreached(workspace, [tip.commit for _, tip in tips])
    return [
        Lost(
            decode(key[0]) or key[0],
            decode(key[1]) or key[1],
            f"{layout.SESSIONS}{key[0]}/{key[1]}",
            tip,
        )
        for key, tip in sorted(tips, key=lambda pair: pair[0])
        if tip.commit in unreached
    ]


def put_back(workspace: Workspace, found: Iterable[Lost | LostLedger]) -> None:
    """Makes the refs again; one that has come back meanwhile stays as it is.

    Raises:
        BranchMovedError: one has.
        StorageError: the disk refused.
    """
    with transaction(workspace.repository) as opened:
        refs = workspace.repository.refs
        for one in found:
            commit = one.tip.commit if isinstance(one, Lost) else one.commit
            refs.drop_damaged(one.ref, opened.scratch / STAGED_REF)
            move(workspace.repository, opened, one.ref, None, commit)


def _checkpoints(workspace: Workspace) -> Iterator[Checkpoint]:
    for oid in _commits(workspace):
        try:
            one = workspace.store.checkpoint(oid)
        except CorruptError:
            continue
        if one is not None:
            yield one


def _commits(workspace: Workspace) -> Iterator[str]:
    listed = workspace.repository.git(
        "cat-file",
        "--batch-all-objects",
        "--unordered",
        "--batch-check=%(objecttype) %(objectname)",
    )
    for line in listed.splitlines():
        kind, _, oid = line.partition(b" ")
        if kind == b"commit":
            yield oid.decode("ascii")


def _known(tip: Checkpoint, ones: dict[bytes, Checkpoint]) -> Iterator[Checkpoint]:
    one: Checkpoint | None = tip
    while one is not None:
        yield one
        one = ones.get(one.raw.parents[0]) if one.raw.parents else None


def _is_whole(workspace: Workspace, commit: str) -> bool:
    """Whether all that it reaches is here (I1)."""
    try:
        workspace.repository.git("rev-list", "--objects", "--quiet", commit)
    except GitFailedError:
        return False
    return True


def _unreached(workspace: Workspace, commits: list[str]) -> set[str]:
    if not commits:
        return set()
    told = workspace.repository.git(
        "rev-list",
        "--stdin",
        "--not",
        # git gives up at one that names nothing.
        *(f"--exclude={name}" for name in workspace.repository.refs.damaged()),
        "--all",
        data="".join(f"{oid}\n" for oid in commits).encode(),
    )
    return set(told.decode("ascii").split())
