"""Finds branches and ledgers that have lost their ref.

A mirror fetch with pruning may delete refs, and so may the user by mistake; a power cut may
leave an empty file. Each commit names its own session and branch, so gitcp needs no other
record to find them. Commits that `gc` has removed are gone for good.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from gitcp.errors import CorruptError, FormatTooNewError, GitFailedError
from gitcp.format import layout
from gitcp.format.commit import purged
from gitcp.format.ledger import ledger_trailers
from gitcp.git.ended import STAGED_REF
from gitcp.git.transaction import transaction
from gitcp.ledger.commits import ledgers
from gitcp.names import decode
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.fork_beside import keep_beside
from gitcp.store.retention import is_event, made_here
from gitcp.store.salvage import every_commit

Key = layout.BranchKey

_SUFFIX = "lost"
# For how long a save may have retried, in seconds.
_MADE_AGAIN = 60


class Lost(NamedTuple):
    """A line of checkpoints that no ref reaches; `tip` is the newest complete one.

    `is_taken` says that a branch of this name exists, with other checkpoints.
    """

    session: str
    branch: str
    ref: str
    tip: Checkpoint
    is_taken: bool = False


class LostLedger(NamedTuple):
    """A ledger of steps without a ref; `last` is the number of its last record."""

    session: str
    ref: str
    commit: str
    last: int


def lost_ledgers(workspace: Workspace) -> list[LostLedger]:
    """Returns the ledgers that have lost their ref, and that could be restored.

    Raises:
        GitFailedError: git cannot list the objects.
    """
    objects = workspace.repository.objects
    here = {component for component, _ in ledgers(workspace.repository)}
    found: dict[str, dict[str, int]] = {}
    below: set[str] = set()
    for raw in every_commit(workspace.repository):
        oid = raw.hex()
        try:
            commit = objects.commit(raw)
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
            tips.append(LostLedger(name, layout.LedgerKey(component).ref, oid, last))
    unreached = _unreached(workspace, [one.commit for one in tips])
    return [one for one in tips if one.commit in unreached]


def lost(workspace: Workspace) -> list[Lost]:
    """Returns the lines of checkpoints that no ref reaches, and that could be restored.

    Without lines that a prune or purge has replaced, and without checkpoints that a save
    made again on a newer tip.

    Raises:
        GitFailedError: git cannot list the objects.
    """
    refs = workspace.store.refs()
    known = {one.oid: one for one in _checkpoints(workspace)}
    found: dict[tuple[str, bool], tuple[Key, Checkpoint]] = {}
    for end in _ends(known, workspace.repository.refs.list("refs/").values()):
        key = _key(end)
        if key in refs and is_event(end):
            # LangGraph removes single checkpoints of a thread on purpose.
            continue
        whole = next(
            (one for one in _own(end, known) if _is_whole(workspace, one.commit)),
            None,
        )
        if whole is not None:
            found.setdefault((whole.id, made_here(whole)), (key, whole))
    unreached = _unreached(workspace, [tip.commit for _, tip in found.values()])
    return [
        Lost(
            decode(key[0]) or key[0],
            decode(key[1]) or key[1],
            key.ref,
            tip,
            key in refs,
        )
        for key, tip in sorted(found.values(), key=_by_place)
        if tip.commit in unreached
    ]


def _key(one: Checkpoint) -> Key:
    return Key(one.trailers.session, one.trailers.branch)


def _by_place(found: tuple[Key, Checkpoint]) -> tuple[Key, int]:
    key, tip = found
    return key, -tip.seq


def _ends(known: Mapping[bytes, Checkpoint], tips: Iterable[str]) -> list[Checkpoint]:
    """Returns the last checkpoints of lost lines.

    It compares ids, not commits, because a prune gives a checkpoint another commit. If a
    checkpoint has several commits, the one with the fewest before it comes first.
    """
    live = _live(known, map(bytes.fromhex, tips))
    superseded = {known[oid].id for oid in live}
    replaced: set[str] = set()
    for one in known.values():
        replaced |= purged(one.raw)
        superseded.add(one.trailers.pruned or "")
        for parent in one.raw.parents:
            before = known.get(parent)
            if before is not None and _key(before) == _key(one):
                superseded.add(before.id)
    ends = [
        one
        for one in known.values()
        if one.id not in superseded and one.commit not in replaced
    ]
    ends = [one for one in ends if not _was_made_again(one, known.values())]
    staying = _live(known, [*live, *(one.oid for one in ends)])
    ends += _own_ends(known, staying)
    ends.sort(key=lambda one: (-one.seq, sum(1 for _ in _own(one, known))))
    return ends


def _own_ends(
    known: Mapping[bytes, Checkpoint], staying: Collection[bytes]
) -> list[Checkpoint]:
    """Returns the last checkpoints made here that only claims made elsewhere replace.

    Everyone who may push can put any id into a checkpoint, and any trailer beside a sealed
    one. So a checkpoint made here is replaced only by one made here that stays and has its
    id, or by a later one of its branch that was made after it.
    """
    same: dict[str, list[Checkpoint]] = {}
    later: dict[str, list[Checkpoint]] = {}
    for one in known.values():
        if one.oid in staying:
            same.setdefault(one.id, []).append(one)
        earlier = {each.id for each in map(known.get, one.raw.parents) if each}
        if one.trailers.pruned is not None:
            earlier.add(one.trailers.pruned)
        for before in earlier:
            later.setdefault(before, []).append(one)

    def is_replaced(one: Checkpoint) -> bool:
        return any(map(made_here, same.get(one.id, ()))) or any(
            _key(other) == _key(one) and other.seq > one.seq and made_here(other)
            for other in later.get(one.id, ())
        )

    return [
        one
        for one in known.values()
        if one.oid not in staying
        and made_here(one)
        and not is_replaced(one)
        and not _was_made_again(one, filter(made_here, known.values()))
    ]


def _live(known: Mapping[bytes, Checkpoint], tips: Iterable[bytes]) -> set[bytes]:
    live: set[bytes] = set()
    waiting = [tip for tip in tips if tip in known]
    while waiting:
        oid = waiting.pop()
        if oid not in live:
            live.add(oid)
            waiting += [one for one in known[oid].raw.parents if one in known]
    return live


def _own(tip: Checkpoint, known: Mapping[bytes, Checkpoint]) -> Iterator[Checkpoint]:
    """Yields a checkpoint and those before it on its own branch."""
    one: Checkpoint | None = tip
    while one is not None and _key(one) == _key(tip):
        yield one
        one = known.get(one.raw.parents[0]) if one.raw.parents else None


def _was_made_again(one: Checkpoint, others: Iterable[Checkpoint]) -> bool:
    """Whether a save found the branch moved, and made the checkpoint again with another id.

    Older versions did so; now the second attempt has the same id.
    """
    try:
        return any(
            other.id != one.id
            and _key(other) == _key(one)
            and other.seq > one.seq
            and other.trailers.trigger == one.trailers.trigger
            and abs(other.raw.epoch - one.raw.epoch) <= _MADE_AGAIN
            and (other.files_oid, other.log_tree, other.note)
            == (one.files_oid, one.log_tree, one.note)
            for other in others
        )
    except (CorruptError, FormatTooNewError):
        return False


def put_back(
    workspace: Workspace, found: Iterable[Lost | LostLedger]
) -> dict[str, str]:
    """Makes the refs again; if a ref exists again meanwhile, it stays as it is.

    A line whose name is taken becomes a fork, `BRANCH~lost`. Returns the lines' present
    names, by the ids of their newest checkpoints.

    Raises:
        BranchMovedError: a ref exists again.
        StorageError: the disk refused.
    """
    names: dict[str, str] = {}
    with transaction(workspace.repository) as txn:
        refs = workspace.repository.refs
        for lost_ref in found:
            ref = lost_ref.ref
            refs.drop_damaged(ref, txn.scratch / STAGED_REF)
            if isinstance(lost_ref, LostLedger):
                txn.move_ref(ref, expect=None, new=lost_ref.commit)
            elif refs.read(ref) is None:
                txn.move_ref(ref, expect=None, new=lost_ref.tip.commit)
                names[lost_ref.tip.id] = lost_ref.branch
            else:
                kept = keep_beside(workspace.store, txn, lost_ref.tip, _SUFFIX)
                names[lost_ref.tip.id] = kept.branch
    return names


def _checkpoints(workspace: Workspace) -> Iterator[Checkpoint]:
    for oid in every_commit(workspace.repository):
        try:
            one = workspace.store.checkpoint(oid)
        except CorruptError:
            continue
        if one is not None:
            yield one


def _is_whole(workspace: Workspace, commit: str) -> bool:
    """Whether all objects that a commit reaches are here (I1)."""
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
        # git gives up at a ref that names no commit.
        *(f"--exclude={name}" for name in workspace.repository.refs.damaged()),
        "--all",
        data="".join(f"{oid}\n" for oid in commits).encode(),
    )
    return set(told.decode("ascii").split())


def kept(workspace: Workspace) -> list[Lost]:
    """Returns the lost lines that `gc` does not remove without being asked.

    Threads of LangGraph are deleted on purpose, by LangGraph.

    Raises:
        GitFailedError: git cannot list the objects.
    """
    return [one for one in lost(workspace) if not is_event(one.tip)]
