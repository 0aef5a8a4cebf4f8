"""Rewrites existing branches without some checkpoints, or with other content; ids stay.

No other code changes the history of a branch. `prune` drops checkpoints; `purge`
changes what checkpoints hold. Both decide the new content of one checkpoint, and
`rewrite` does the rest: it makes new commits for it and for all that come after it (a
commit names its parent), shares them among branches that share history, and moves all
refs at one moment, durably (docs/format.md, 9). A save that is under way finds that its
branch has moved and is made again on the new tip.

A caller holds the store's lock, so that no two rewrites and no `gc` meet:

    with store_locked(repository, timeout=…), transaction(repository) as txn:
        def change(checkpoint: Checkpoint) -> NewContent | None:
            if checkpoint.oid in unwanted:
                return None                  # it goes; never a branch's tip
            return AS_IT_IS                  # it stays, perhaps on another parent

        done = rewrite(store, txn, refs, change)

To change content (`purge`): make the new trees and blobs through the transaction
(`txn.add_blob`, `add_tree`), have what the new root needs stored with
`txn.complete(root, (checkpoint.raw.tree,))`, and return `NewContent(tree=root)`; `message` where
the commit's message has to change too. `change` is called once for each commit,
oldest first, and again, with the refs locked, for checkpoints that were saved meanwhile:
so it must be quick by then, and must not take the work tree's lock. What is saved just
after is on the new tip; a save that brings the unwanted content back is found by
calling `rewrite` until `moved` is empty. Old objects are gone from disk after
`gitcp.git.drop_unreachable.drop_unreachable`, and not before; refs of other namespaces
(`refs/gitcp/r/`) may be given in `refs` as well, and hold old commits if they are not.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from gitcp.errors import BusyError, CorruptError, StorageError
from gitcp.format.commit import relink, with_pruned
from gitcp.git.objects import COMMIT
from gitcp.git.transaction import Transaction
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

if TYPE_CHECKING:
    from gitcp.format.layout import BranchKey


class NewContent(NamedTuple):
    """The new content of a checkpoint that stays; None: unchanged.

    `tree` is a root tree, stored through the transaction; `message` a whole message
    with the trailers.
    """

    tree: bytes | None = None
    message: bytes | None = None


AS_IT_IS = NewContent()

Change = Callable[[Checkpoint], NewContent | None]


class Rewritten(NamedTuple):
    """The result of a rewrite.

    `commits` has the new commit of each old one that has another now, None if
    nothing is left; `moved` the old and new tip of each ref.
    """

    commits: dict[bytes, bytes | None]
    moved: dict[str, tuple[str, str]]


def rewrite(
    store: Store,
    txn: Transaction,
    refs: Iterable[str],
    change: Change,
    prepare: Callable[[], None] = lambda: None,
) -> Rewritten:
    """Rewrites the lines of refs and moves the refs, all or none.

    It includes checkpoints saved meanwhile. A ref that does not exist is left out. `prepare` is
    called once before the refs move, if any does.

    Raises:
        CorruptError: a commit cannot be read, or has more than one parent.
        BusyError: another process holds a ref's lock; nothing moved.
        StorageError: the disk refused; nothing moved, or all will.
    """
    lines = _Rewriter(store, txn, change)
    read = store.repository.refs.read
    moving = []
    for ref in refs:
        tip = read(ref)
        if tip is not None and lines.tip(tip) != tip:
            moving.append(ref)
    if not moving:
        return Rewritten({}, {})
    # Nearly everything is written by now; the rest is done under the locks.
    txn.store()

    def decide() -> dict[str, str]:
        tips = ((ref, read(ref)) for ref in moving)
        return {ref: lines.tip(tip) for ref, tip in tips if tip is not None}

    # Before they are removed: a number that was printed must always say what happened
    # to it.
    lines.note_gone()
    prepare()
    moved = txn.publish_together(moving, decide)
    lines.note_moved()
    commits = {old: new for old, new in lines.images.items() if old != new}
    return Rewritten(commits, moved)


class _Rewriter:
    """Maps old commits to new ones; rewrites shared history once."""

    def __init__(self, store: Store, txn: Transaction, change: Change) -> None:
        self._store = store
        self._txn = txn
        self._change = change
        # A removed commit maps to the one before it; None if there is none.
        self.images: dict[bytes, bytes | None] = {}
        self._gone: dict[bytes, str] = {}
        self._gone_from: list[tuple[str, BranchKey]] = []
        self._moved: list[tuple[str, BranchKey, str, str]] = []

    def note_gone(self) -> None:
        """Notes which numbers are pruned.

        Raises:
            BusyError, StorageError: nothing was noted.
        """
        if self._gone_from:
            self._store.numbers.note_gone(self._gone_from, self._store.now())

    def note_moved(self) -> None:
        """Notes the new commits of numbered checkpoints; without it they have to be searched."""
        if self._moved:
            with suppress(BusyError, StorageError):
                self._store.numbers.note_moved(self._moved)

    def tip(self, commit: str) -> str:
        """Returns the commit that a ref is to point to."""
        tip = bytes.fromhex(commit)
        for checkpoint in reversed(self._unseen(tip)):
            self._take(checkpoint)
        image = self.images[tip]
        if tip in self._gone or image is None:
            raise ValueError(f"the tip {commit} must not go")
        return image.hex()

    def _unseen(self, tip: bytes) -> list[Checkpoint]:
        unseen = []
        oid: bytes | None = tip
        while oid is not None and oid not in self.images:
            checkpoint = self._store.checkpoint(oid)
            if checkpoint is None:
                # The anchor, the user's own.
                self.images[oid] = oid
                break
            if len(checkpoint.raw.parents) > 1:
                raise CorruptError(
                    f"checkpoint {checkpoint.id} has more than one parent",
                    hint="run `gitcp verify`",
                )
            unseen.append(checkpoint)
            oid = checkpoint.raw.parents[0] if checkpoint.raw.parents else None
        return unseen

    def _take(self, checkpoint: Checkpoint) -> None:
        before = checkpoint.raw.parents[0] if checkpoint.raw.parents else None
        parent = None if before is None else self.images[before]
        kept = self._change(checkpoint)
        key = checkpoint.trailers.key
        if kept is None:
            self.images[checkpoint.oid] = parent
            self._gone[checkpoint.oid] = checkpoint.id
            self._gone_from.append((checkpoint.id, key))
            return
        message = checkpoint.raw.message if kept.message is None else kept.message
        if before is not None and before in self._gone:
            message = with_pruned(message, self._gone[before])
        old = self._store.repository.objects.read(checkpoint.oid, COMMIT)
        new = relink(
            old, tree=kept.tree or checkpoint.raw.tree, parent=parent, message=message
        )
        image = checkpoint.oid if new == old else self._txn.add_commit(new)
        self.images[checkpoint.oid] = image
        if image != checkpoint.oid:
            self._moved.append((checkpoint.id, key, checkpoint.commit, image.hex()))
