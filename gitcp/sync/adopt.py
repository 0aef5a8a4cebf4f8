"""Adopts validated objects, then refs; never merges."""

import hashlib
from collections.abc import Iterable
from contextlib import suppress

from gitcp import durable
from gitcp.errors import (
    BranchMovedError,
    CorruptError,
    GitFailedError,
    TransferError,
)
from gitcp.format.layout import BranchKey
from gitcp.git import process, shard_pattern
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.fork_beside import keep_beside
from gitcp.store.store import Store
from gitcp.sync.outcome import CREATED, FAST_FORWARD, FORKED, UP_TO_DATE, Outcome

_EMPTY_PACK = 32
_RETRIES = 20


def copy(
    txn: Transaction,
    quarantine: Repository,
    tips: Iterable[str],
    ours: Iterable[str],
) -> None:
    """Packs the objects that the tips reach and none of ours does, and moves in the pack.

    Everything else in the quarantine stays there.

    Raises:
        TransferError: the pack cannot be made.
    """
    revisions = [tip.encode() for tip in sorted(set(tips))]
    revisions += [b"^" + oid.encode() for oid in sorted(set(ours))]
    base = txn.scratch / "adopted"
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
            cwd=txn.scratch,
            data=b"\n".join(revisions) + b"\n",
        )
    except GitFailedError as exc:
        raise TransferError(
            f"the objects cannot be copied: {exc.message}", hint="run `gitcp verify`"
        ) from exc
    word = out.decode("ascii").strip()
    pack = base.with_name(f"adopted-{word}.pack")
    if pack.stat().st_size <= _EMPTY_PACK:
        return
    # Another process may be moving in the same objects under the name that git chose.
    mine = f"{word} {txn.scratch.name}".encode()
    name = hashlib.sha1(mine, usedforsecurity=False).hexdigest()
    with durable.storage("copying the session"):
        txn.adopt(pack, pack.with_suffix(".idx"), f"pack-{name}")


def adopt(
    store: Store, txn: Transaction, key: BranchKey, oid: str, *, suffix: str
) -> Outcome:
    """Makes or fast-forwards the branch of the same name; if the two diverged, forks.

    The fork is called `<branch>~<suffix>`. Its objects are in the repository already.

    Raises:
        CorruptError: the commit is not a checkpoint.
        BranchMovedError: the branch kept moving.
    """
    theirs = store.checkpoint(oid)
    if theirs is None:
        raise CorruptError(f"{oid} is not a checkpoint", hint="run `gitcp verify`")
    session, branch = theirs.session, theirs.branch
    for _ in range(_RETRIES):
        ours = store.repository.refs.read(key.ref)
        if ours is not None and store.holds(ours, theirs):
            return Outcome(session, branch, UP_TO_DATE, branch, ours)
        if ours is not None and not any(
            checkpoint.commit == ours for checkpoint in store.line(theirs)
        ):
            return fork(store, txn, theirs, suffix)
        try:
            txn.move_ref(key.ref, expect=ours, new=oid)
        except BranchMovedError:
            continue
        result = CREATED if ours is None else FAST_FORWARD
        return Outcome(session, branch, result, branch, oid)
    raise BranchMovedError(
        f"{session}/{branch} kept moving", hint="run the command again"
    )


def fork(store: Store, txn: Transaction, theirs: Checkpoint, suffix: str) -> Outcome:
    """Keeps their line under another name; the same line twice makes one fork."""
    kept = keep_beside(store, txn, theirs, suffix)
    result = FORKED if kept.is_new else UP_TO_DATE
    return Outcome(theirs.session, theirs.branch, result, kept.branch, kept.commit)


def remember(txn: Transaction, ref: str, seen: str | None, new: str) -> None:
    """Notes a remote's tip, unless another process has noted one since."""
    with suppress(BranchMovedError):
        txn.move_ref(ref, expect=seen, new=new)


def suffix_of(remote: str) -> str:
    """Returns the suffix for the forks of a remote's branches."""
    pattern = shard_pattern.parse(remote)
    if pattern is not None:
        return pattern.stem
    # The last part of a URL; the name of a remote may contain slashes, too.
    last = remote.rstrip("/").rpartition("/")[2]
    return last.removesuffix(".git") or "remote"
