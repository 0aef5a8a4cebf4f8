"""Prunes old checkpoints; ids and numbers of the others stay."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from gitcp.errors import (
    BusyError,
    CorruptError,
    FormatTooNewError,
    NotFoundError,
    UsageError,
)
from gitcp.git.drop_unreachable import drop_unreachable, packed_objects, store_locked
from gitcp.git.transaction import transaction
from gitcp.maintenance import disk_usage
from gitcp.maintenance.gc import journals, open_restores
from gitcp.maintenance.lost_refs import kept
from gitcp.names import decode, encode
from gitcp.project import search_files
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.retention import (
    BranchLine,
    Key,
    RetentionDecision,
    RetentionGraph,
    RetentionRules,
    sizes,
)
from gitcp.store.rewrite import AS_IT_IS, NewContent, rewrite

DEFAULT_LAST = 10
# How often a branch beyond `maxCheckpoints` is checked, and disk space freed.
_PART = 10
_RECLAIM = 20
# With more objects than this, it takes seconds to find the ones that git reaches.
_LARGE = 500_000


class PrunedBranch(NamedTuple):
    """The decision for one branch; `go` are the checkpoints to remove, newest first."""

    session: str
    branch: str
    stay: int
    go: tuple[Checkpoint, ...]


class PrunePlan(NamedTuple):
    """The result of a prune, or of its dry run.

    `bytes_before` and `bytes_after` are the sizes of these checkpoints without git's own
    objects, None if no size was requested. `threads` are sessions that belong to LangGraph
    and stay as they are. `unreadable` says which branches stay as they are because
    checkpoints that the decision needs are damaged.
    """

    rules: RetentionRules
    keys: frozenset[Key] | None
    branches: tuple[PrunedBranch, ...]
    bytes_before: int | None = None
    bytes_after: int | None = None
    threads: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def go(self) -> tuple[Checkpoint, ...]:
        """All checkpoints to remove."""
        return tuple(one for branch in self.branches for one in branch.go)


def plan_prune(
    workspace: Workspace,
    rules: RetentionRules,
    only: Sequence[tuple[str, str | None]] = (),
    *,
    max_size: int | None = None,
    may_go: Callable[[Checkpoint], bool] = lambda _: True,
) -> PrunePlan:
    """Returns the checkpoints that a prune would remove; writes nothing.

    With `max_size` (bytes), only the oldest checkpoints that the rules and `may_go` allow
    are removed, until the rest fits.

    Raises:
        NotFoundError: a branch of `only` does not exist.
        UsageError: a session of `only` is a thread of LangGraph.
        CorruptError: the journal of an open restore cannot be read.
    """
    forest = RetentionGraph(workspace.store)
    keys = _keys(forest, only)
    if only and keys is not None:
        _refuse_threads(forest, keys)
    judged = [
        each._replace(
            stay=(*each.stay, *(one for one in each.go if not may_go(one))),
            go=tuple(filter(may_go, each.go)),
        )
        for each in _judge(workspace, forest, rules, keys)
    ]
    before = after = None
    if max_size is not None:
        taken = sizes(judged, lambda trees: disk_usage.added(workspace, trees))
        before = after = sum(taken.values())
        oldest = [one for each in judged for one in each.go]
        oldest.sort(key=_age)
        leave: set[bytes] = set()
        for one in oldest:
            if after <= max_size:
                break
            leave.add(one.oid)
            after -= taken.get(one.raw.tree, 0)
        judged = [
            each._replace(go=tuple(one for one in each.go if one.oid in leave))
            for each in judged
        ]
    threads = sorted(decode(one) or one for one in forest.threads)
    return PrunePlan(
        rules,
        keys,
        _branches(judged),
        before,
        after,
        tuple(threads),
        _unreadable(forest, keys),
    )


def _unreadable(forest: RetentionGraph, keys: frozenset[Key] | None) -> tuple[str, ...]:
    """Returns why damaged branches stay as they are, one line each."""
    found = []
    for ref, reason in sorted(forest.damaged.items()):
        key, _ = forest.tips[ref]
        if keys is None or key in keys:
            name = "/".join(decode(part) or part for part in key)
            found.append(f"{name} stays as it is: {reason}")
    return tuple(found)


def _refuse_threads(forest: RetentionGraph, keys: frozenset[Key]) -> None:
    for session, _ in sorted(keys):
        if session in forest.threads:
            raise UsageError(
                f"{decode(session) or session} is a thread of LangGraph: it would"
                " lose checkpoints or pending writes without LangGraph's"
                " knowledge",
                hint="use `GitcpSaver.prune`, `delete_for_runs` or `delete_thread`",
            )


def _age(one: Checkpoint) -> tuple[int, int]:
    return one.raw.epoch, one.seq


def _keys(
    forest: RetentionGraph, only: Sequence[tuple[str, str | None]]
) -> frozenset[Key] | None:
    if not only:
        return None
    there = {line.key for line in forest.lines}
    # A branch whose newest commit is damaged has no line.
    there |= {key for key, _ in forest.tips.values()}
    keys: set[Key] = set()
    for session, branch in only:
        found = {
            key
            for key in there
            if key[0] == encode(session)
            and (branch is None or key[1] == encode(branch))
        }
        if not found:
            place = session if branch is None else f"{session}/{branch}"
            raise NotFoundError(
                f"there is no checkpoint in {place}",
                hint="`gitcp sessions` lists what there is",
            )
        keys |= found
    return frozenset(keys)


def _judge(
    workspace: Workspace,
    forest: RetentionGraph,
    rules: RetentionRules,
    keys: frozenset[Key] | None,
) -> list[RetentionDecision]:
    needed = []
    for entry in open_restores(workspace.repository):
        ids = (entry.target_id, entry.before_id)
        needed += [ident for ident in ids if ident is not None]
        # A journal of gitcp 0.1.0 has no ids.
        for commit in (entry.target, entry.before) if None in ids else ():
            with suppress(CorruptError):
                found = workspace.store.checkpoint(commit)
                needed += [found.id] if found else []
    return forest.judge(rules, keys, workspace.store.time(), needed)


def _branches(judged: Sequence[RetentionDecision]) -> tuple[PrunedBranch, ...]:
    found: dict[Key, PrunedBranch] = {}
    for each in judged:
        session, branch = _names(each.line)
        stay = len(each.line.checkpoints) - len(each.go)
        before = found.get(each.line.key)
        if before is not None:
            # Two lines with one name: ours, and one that was pulled beside it.
            stay, go = stay + before.stay, (*before.go, *each.go)
        else:
            go = each.go
        found[each.line.key] = PrunedBranch(session, branch, stay, go)
    return tuple(found[key] for key in sorted(found))


def _names(line: BranchLine) -> tuple[str, str]:
    """Returns session and branch; shortened, as in the ref, if no checkpoint can be read."""
    session, branch = map(decode, line.key)
    for checkpoint in line.checkpoints:
        if session is not None and branch is not None:
            break
        with suppress(CorruptError, FormatTooNewError):
            session, branch = checkpoint.session, checkpoint.branch
    return session or line.key.session, branch or line.key.branch


def prune(workspace: Workspace, wanted: PrunePlan) -> PrunePlan:
    """Carries out a plan and returns the result; all branches move at one moment.

    Checkpoints that are needed by now stay, for example those with a new label or fork.
    Checkpoints saved meanwhile stay.

    Raises:
        BusyError: another process uses the store, or holds a ref's lock.
        StorageError: the disk refused; nothing was removed, or everything will be.
    """
    # By commit: on another branch a stranger's checkpoint may have the same id.
    planned = {one.oid for one in wanted.go}
    if not planned:
        return wanted
    timeout = workspace.settings.lock_timeout
    repository = workspace.repository
    with store_locked(repository, timeout=timeout), transaction(repository) as opened:
        forest = RetentionGraph(workspace.store)
        judged = [
            each._replace(go=tuple(one for one in each.go if one.oid in planned))
            for each in _judge(workspace, forest, wanted.rules, wanted.keys)
        ]
        go = {one.oid for each in judged for one in each.go}

        def change(found: Checkpoint) -> NewContent | None:
            return None if found.oid in go else AS_IT_IS

        rewrite(workspace.store, opened, forest.refs(wanted.keys), change)
    if go:
        # The index has words of removed content. If another process holds the index, the
        # next search removes them.
        with suppress(BusyError):
            search_files.remove_where_there(repository, timeout=timeout)
    return wanted._replace(
        branches=_branches(judged), unreadable=_unreadable(forest, wanted.keys)
    )


def keep_to_limit(workspace: Workspace, tip: Checkpoint) -> None:
    """Prunes a branch that has grown beyond `maxCheckpoints`; called after each save.

    It checks only after every tenth of that many saves, and prunes for as many ahead, so
    that a save costs the same for a long branch. It frees disk space now and then, if no
    other process is at work and the user's own history is not large.

    Raises:
        GitcpError: the branch cannot be pruned now; a later save prunes it.
    """
    limit = workspace.settings.max_checkpoints
    step = max(1, limit // _PART)
    if limit == 0 or tip.seq % step:
        return
    key = Key(tip.trailers.session, tip.trailers.branch)
    kept = limit - step + 1
    beyond = 0
    for one in workspace.store.line(tip):
        if (one.trailers.session, one.trailers.branch) != key:
            break
        beyond += one.label_component is None
        if beyond > kept:
            break
    if beyond <= kept:
        return
    rules = RetentionRules(last=kept, counted=False, apart=True)
    repository = workspace.repository
    with store_locked(repository, timeout=0), transaction(repository) as opened:
        forest = RetentionGraph(workspace.store, tip.session)
        judged = _judge(workspace, forest, rules, frozenset({key}))
        go = {one.oid for each in judged for one in each.go}
        rewrite(
            workspace.store,
            opened,
            forest.refs(None) if go else (),
            lambda found: None if found.oid in go else AS_IT_IS,
        )
    period = max(limit, _RECLAIM)
    if (
        go
        and tip.seq // period != (tip.seq - step) // period
        and packed_objects(repository) <= _LARGE
    ):
        with store_locked(repository, timeout=0):
            drop_unreachable(repository, roots=lambda: roots(workspace), timeout=0)


def roots(workspace: Workspace) -> Iterator[str]:
    """Yields the commits that `drop_unreachable` keeps in addition to those that refs reach."""
    yield from journals(workspace.repository)
    yield from (one.tip.commit for one in kept(workspace))
