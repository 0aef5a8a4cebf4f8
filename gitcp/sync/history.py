"""Compares histories: tells a pruned branch from a diverged one."""

from collections.abc import Iterator

from gitcp.format.commit import purged, unpruned
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store
from gitcp.trust.trusted_remotes import Pulled, Trusting


def is_pruned_form(store: Store, *, of: str, line: str) -> bool:
    """Whether the line that ends in `line` is the line of `of`, pruned and perhaps longer.

    It is if only older checkpoints are missing in it, and the others are the same: ids,
    numbers, files, conversation and words. Both tips are commits; the result is false if
    either is not here.
    """
    objects = store.repository.objects
    if of == line or not all(objects.exists(bytes.fromhex(tip)) for tip in (of, line)):
        return False
    old, new = store.checkpoint(of), store.checkpoint(line)
    if old is None or new is None:
        return False
    mine = store.line(new)
    start = next((one for one in mine if one.id == old.id), None)
    if start is None or start == old or not same(start, old):
        return False
    return all(_found(one, theirs) for theirs in [store.line(old)] for one in mine)


def goes_back(store: Store, seen: str, oid: str) -> bool:
    """Whether a remote rewound a branch: the line of `oid` lacks its earlier tip `seen`.

    A pruned branch does not count, nor one whose tip was purged here, as it is not fetched.
    """
    if seen == oid or not store.repository.objects.exists(bytes.fromhex(oid)):
        return False
    before, start = store.checkpoint(seen), store.checkpoint(oid)
    if before is None or start is None:
        return before is not None
    return all(one != before for one in store.line(start)) and not is_pruned_form(
        store, of=seen, line=oid
    )


def was_purged(store: Store, old: str, line: str) -> bool:
    """Whether a commit was purged, and a commit on the line below a tip replaces it.

    The old one is not here any more. The line has to be our own. A commit on it that a pull
    brought counts only if the user trusts where it came from.
    """
    start = store.checkpoint(line)
    if start is None:
        return False
    pulled, trusting = Pulled(store), Trusting(store)
    return any(
        old in purged(one.raw) and (one.commit not in pulled or trusting.covers(one))
        for one in store.line(start)
    )


def was_pruned(store: Store, seen: str, line: str) -> bool:
    """Whether the tip that a remote had when it was last seen was pruned from a line.

    If so, the line has a gap at its number, and the next checkpoint records that an older
    one was pruned. A branch that diverged could look the same. But then the pulled
    checkpoints are on a branch of their own, so no branch of the session may have `seen`.
    """
    if seen == line or not store.repository.objects.exists(bytes.fromhex(seen)):
        return False
    gone, start = store.checkpoint(seen), store.checkpoint(line)
    if gone is None or start is None:
        return False
    after = None
    for one in store.line(start):
        if one.seq <= gone.seq:
            if one.seq == gone.seq:
                return False
            break
        after = one
    return (
        after is not None
        and after.trailers.pruned is not None
        and not any(
            one == gone
            for (session, _), tip in store.tips()
            if session == gone.trailers.session
            for one in store.line(tip)
        )
    )


def _found(wanted: Checkpoint, line: Iterator[Checkpoint]) -> bool:
    """Whether a line holds the same checkpoint."""
    return any(same(one, wanted) for one in line if one.id == wanted.id)


def same(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether two commits are one checkpoint, except for what was pruned before them."""
    return one == other or (
        one.raw.tree == other.raw.tree
        and one.raw.committer == other.raw.committer
        and unpruned(one.raw.message) == unpruned(other.raw.message)
    )
