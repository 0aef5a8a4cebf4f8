"""Adopts validated objects, then refs; never merges."""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import (
    BranchMovedError,
    CorruptError,
    GitFailedError,
    TransferError,
)
from gitcp.format import layout
from gitcp.git import process
from gitcp.git.ended import STAGED_REF
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import fork_draft
from gitcp.store.store import Store
from gitcp.sync.validate import Key

_EMPTY_PACK = 32
_RETRIES = 20

CREATED, FAST_FORWARD = "created", "fast-forward"
UP_TO_DATE, FORKED, REJECTED = "up-to-date", "forked", "rejected"
# Replaced by the same line without its oldest checkpoints.
PRUNED = "pruned"
# The same as before, encrypted to others.
RE_ENCRYPTED = "re-encrypted"


class Adopted(NamedTuple):
    """The result for one adopted branch.

    `result` is `created`, `fast-forward`, `up-to-date`, `forked` or `rejected`; `name`
    is the branch it is here; `commit` its tip; `reason` says why where that is news.
    """

    session: str
    branch: str
    result: str
    name: str
    commit: str | None
    reason: str | None = None


def copy(
    opened: Transaction,
    quarantine: Repository,
    tips: Iterable[str],
    ours: Iterable[str],
) -> None:
    """Makes one pack of what the tips reach and none of ours does, and moves it in.

    Whatever else came stays behind.

    Raises:
        TransferError: it cannot be made.
    """
    wanted = [tip.encode() for tip in sorted(set(tips))]
    wanted += [b"^" + oid.encode() for oid in sorted(set(ours))]
    base = opened.scratch / "adopted"
    try:
        out = process.run(
            [
                f"--git-dir={quarantine.git_dir}",
                "-c",
                "pack.threads=1",
                "-c",
                "pack.windowMemory=64m",
                "-c",
                "core.bigFileThreshold=16m",
                "pack-objects",
                "--quiet",
                "--revs",
                "--delta-base-offset",
                str(base),
            ],
            cwd=opened.scratch,
            data=b"\n".join(wanted) + b"\n",
        )
    except GitFailedError as exc:
        raise TransferError(
            f"the objects cannot be copied: {exc.message}", hint="run `gitcp verify`"
        ) from exc
    word = out.decode("ascii").strip()
    pack = base.with_name(f"adopted-{word}.pack")
    if pack.stat().st_size <= _EMPTY_PACK:
        return
    # Another process may be moving in the same objects under the name git gave them.
    mine = f"{word} {opened.scratch.name}".encode()
    name = hashlib.sha1(mine, usedforsecurity=False).hexdigest()
    with durable.storage("copying the session"):
        opened.adopt(pack, pack.with_suffix(".idx"), f"pack-{name}")


def adopt(
    store: Store, opened: Transaction, key: Key, oid: str, *, suffix: str
) -> Adopted:
    """Makes or fast-forwards the branch of the same name; where both grew, forks.

    The fork is called `<branch>~<suffix>`. Its objects are in the repository already.

    Raises:
        CorruptError: the commit is not a checkpoint.
        BranchMovedError: the branch kept moving.
    """
    theirs = store.checkpoint(oid)
    if theirs is None:
        raise CorruptError(f"{oid} is not a checkpoint", hint="run `gitcp verify`")
    session, branch = theirs.session, theirs.branch
    ref = f"{layout.SESSIONS}{key[0]}/{key[1]}"
    for _ in range(_RETRIES):
        ours = store.repository.refs.read(ref)
        if ours is not None and holds(store, ours, theirs):
            return Adopted(session, branch, UP_TO_DATE, branch, ours)
        if ours is not None and not any(
            one.commit == ours for one in store.line(theirs)
        ):
            return fork(store, opened, theirs, suffix)
        try:
            move(store.repository, opened, ref, ours, oid)
        except BranchMovedError:
            continue
        result = CREATED if ours is None else FAST_FORWARD
        return Adopted(session, branch, result, branch, oid)
    raise BranchMovedError(
        f"{session}/{branch} kept moving", hint="run the command again"
    )


def move(
    repository: Repository, opened: Transaction, ref: str, old: str | None, new: str
) -> None:
    """Moves a ref of ours by compare-and-swap."""
    repository.refs.compare_and_swap(
        ref, expect=old, new=new, staged=opened.scratch / STAGED_REF
    )


def remember(
    repository: Repository, opened: Transaction, ref: str, seen: str | None, new: str
) -> None:
    """Notes where a branch of a remote is; what another process noted since stands."""
    with suppress(BranchMovedError):
        move(repository, opened, ref, seen, new)


def holds(store: Store, tip: str, wanted: Checkpoint) -> bool:
    """Whether the line below a tip has a checkpoint."""
    start = store.checkpoint(tip)
    return start is not None and any(one == wanted for one in store.line(start))


def fork(store: Store, opened: Transaction, theirs: Checkpoint, suffix: str) -> Adopted:
    """Keeps their line under a name of its own; the same line twice makes one fork."""
    session, branch = theirs.session, theirs.branch
    number = 1
    while True:
        name = f"{branch}~{suffix}" if number == 1 else f"{branch}~{suffix}-{number}"
        number += 1
        standing = store.tip(session, name)
        if standing is not None:
            if holds(store, standing.commit, theirs):
                return Adopted(session, branch, UP_TO_DATE, name, standing.commit)
            continue
        try:
            made = store.append(opened, session, name, fork_draft(theirs)).checkpoint
        except BranchMovedError:
            # Another process took the name; it may be for the same line.
            number -= 1
            continue
        return Adopted(session, branch, FORKED, name, made.commit)
