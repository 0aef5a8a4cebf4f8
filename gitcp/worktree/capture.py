"""From the work tree to a tree object: only what changed is read (design, part 4)."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

from gitcp import durable
from gitcp.errors import CorruptError, GitFailedError
from gitcp.format import tree as trees
from gitcp.format.checkpoint import Skipped
from gitcp.format.tree import GITLINK, Entry
from gitcp.git.process import Process, finish
from gitcp.git.repository import Repository, nested_head
from gitcp.git.transaction import Transaction
from gitcp.worktree import state as states
from gitcp.worktree.files import Root
from gitcp.worktree.private import PrivateGit
from gitcp.worktree.read import DELETED, Content, Reader, Trouble
from gitcp.worktree.scan import Found, Rules, Scan, empty_directories, parents
from gitcp.worktree.state import ScanState

T = TypeVar("T")

# From here on one walk of a tree is cheaper than a lookup for each path.
_BULK = 2_000
_REASONS = {
    Trouble.UNREADABLE: "unreadable",
    Trouble.SPECIAL: "special-file",
    Trouble.TOO_LARGE: "too-large",
    Trouble.UNSETTLED: "changed-while-reading",
}

Progress = Callable[[int, int], None]


class Snapshot(NamedTuple):
    """The work tree as captured; `tree` is None where there is no file at all."""

    tree: bytes | None
    empty: tuple[bytes, ...]
    skipped: tuple[Skipped, ...]
    sparse: frozenset[bytes]
    state: ScanState


class Capture:
    """Captures one work tree; holds what makes the next capture cheap.

    `begin` starts git's comparison at once, so that it runs while the caller does
    other things; `take` finishes the work.
    """

    def __init__(self, repository: Repository, root: Root, rules: Rules) -> None:
        self._repository = repository
        self._top = repository.top or repository.git_dir
        self._root = root
        self._rules = rules
        self._private = PrivateGit(repository, self._top)
        self._comparison: Process | None = None
        self._state: ScanState | None = None

    def begin(self) -> None:
        """Starts comparing in the background.

        Raises:
            StorageError: the private directory cannot be written.
        """
        with durable.storage("preparing to scan"):
            self._private.prepare()
        self._state = states.load(self._private.directory)
        if self._state.index:
            self._comparison = self._private.start_diff_files()

    def abandon(self) -> None:
        """Ends a comparison that nobody will wait for."""
        process, self._comparison = self._comparison, None
        if process is not None:
            process.kill()
            process.communicate()

    def take(
        self,
        transaction: Transaction,
        *,
        fresh: bool = False,
        progress: Progress | None = None,
    ) -> Snapshot:
        """Captures the work tree into a transaction.

        With `fresh` nothing that was learnt before is used.

        Raises:
            StorageError: a file could not be read for a reason that is not its own.
            GitFailedError: git failed.
        """
        if self._state is None:
            self.begin()
        state, self._state = self._state, None
        # What an earlier capture kept open may be gone, or be something else.
        self._root.forget()
        if fresh or state is None:
            self.abandon()
            state = ScanState()
        with ExitStack() as stack:
            stack.callback(self.abandon)
            stack.enter_context(durable.storage("reading the project's files"))
            if state.tree is not None:
                transaction.objects.pin(state.root)
            builder = _Builder(self._repository, self._root, self._rules, transaction)
            try:
                found = self._scan(state, builder)
            except GitFailedError:
                if not state.index:
                    raise
                # The private index may be damaged; without it nothing depends on it.
                state = ScanState()
                found = self._scan(state, builder)
            return builder.build(state, found, progress)

    def using(
        self,
        transaction: Transaction,
        use: Callable[[Snapshot], T],
        *,
        progress: Progress | None = None,
    ) -> tuple[Snapshot, T]:
        """Captures, and returns the snapshot with what `use` makes of it.

        Where objects that an earlier scan relied on are gone (a branch was deleted or
        purged, and git has pruned), everything is read anew.

        Raises:
            StorageError, GitFailedError: as `take` does.
        """
        try:
            snapshot = self.take(transaction, progress=progress)
            return snapshot, use(snapshot)
        except CorruptError:
            snapshot = self.take(transaction, fresh=True, progress=progress)
            return snapshot, use(snapshot)

    def _scan(self, state: ScanState, builder: "_Builder") -> Found:
        previous = builder.lookup(state.tree)
        scan = Scan(
            self._repository,
            self._top,
            self._root,
            self._rules,
            state=state,
            previous=previous,
        )
        return scan.run(self._differing)

    def _differing(self) -> list[bytes]:
        process, self._comparison = self._comparison, None
        return finish(process).split(b"\0")[:-1] if process is not None else []

    def remember(self, snapshot: Snapshot) -> None:
        """Keeps what was learnt; only once a ref holds what was captured."""
        with durable.storage("keeping the scan state"):
            states.save(self._private.directory, snapshot.state)


class _Builder:
    """Reads what a scan found and makes the tree."""

    def __init__(
        self, repository: Repository, root: Root, rules: Rules, transaction: Transaction
    ) -> None:
        self._repository = repository
        self._top = repository.top or repository.git_dir
        self._root = root
        self._rules = rules
        self._transaction = transaction
        self._head_tree: bytes | None = None
        head, _ = repository.head()
        if head is not None:
            self._head_tree = transaction.objects.commit(bytes.fromhex(head)).tree

    def lookup(self, tree: bytes | None) -> Callable[[bytes], Entry | None]:
        """Returns a function from paths to entries of a tree."""
        return lambda path: trees.lookup(tree, path, self._transaction.tree)

    def build(
        self, state: ScanState, found: Found, progress: Progress | None
    ) -> Snapshot:
        """Reads, and returns the snapshot with the state that belongs to it."""
        previous = self.lookup(state.tree)
        head = self._bulk_lookup(len(found.look))

        def known(path: bytes, entry: Entry) -> bool:
            for other in (previous(path), head(path)):
                if other is not None and other.oid == entry.oid:
                    return True
            return entry.oid in self._transaction

        reader = Reader(
            self._root,
            limit=self._rules.limit,
            known=known,
            store=self._transaction.add_blob,
            store_stream=self._transaction.add_blob_stream,
        )
        changes: dict[bytes, Entry | None] = {}
        for path in found.gone | self._unwanted(state, found):
            changes[path] = None
            if path in state.overlay or state.index:
                state.overlay[path] = (b"", DELETED)
        for done, path in enumerate(sorted(found.look)):
            if progress is not None:
                progress(done, len(found.look))
            self._enter(path, reader.read(path), previous(path), state, changes)
        self._enter_nested(state, changes, previous, head)
        tree = trees.edit(
            state.tree, changes, self._transaction.tree, self._transaction.add_tree
        )
        state.tree = tree
        state.root = b"" if tree is None else trees.encode(self._transaction.tree(tree))
        after = self.lookup(tree)
        skipped = [Skipped(path, reason) for path, reason in state.skipped.items()]
        for path in state.nested:
            kind = head(path)
            submodule = kind is not None and kind.mode == GITLINK
            skipped.append(
                Skipped(path, "submodule" if submodule else "nested-repository")
            )
        return Snapshot(
            tree,
            tuple(
                path
                for path in sorted(empty_directories(state))
                # It may hold what is tracked though ignored, or is not checked out.
                if path not in state.nested and after(path) is None
            ),
            tuple(sorted(skipped)),
            frozenset(state.sparse),
            state,
        )

    def _bulk_lookup(self, count: int) -> Callable[[bytes], Entry | None]:
        if count < _BULK:
            return self.lookup(self._head_tree)
        whole = dict(trees.walk(self._head_tree, self._transaction.tree))
        return whole.get

    def _unwanted(self, state: ScanState, found: Found) -> set[bytes]:
        """Returns what was captured before and does not belong any more."""
        if found.wanted is None or state.tree is None:
            return set()
        before = trees.walk(state.tree, self._transaction.tree)
        return {path for path, _ in before if path not in found.wanted}

    @staticmethod
    def _enter(
        path: bytes,
        content: Content | Trouble,
        before: Entry | None,
        state: ScanState,
        changes: dict[bytes, Entry | None],
    ) -> None:
        if isinstance(content, Trouble):
            if content in _REASONS:
                state.skipped[path] = _REASONS[content]
            if before is not None and before.mode != trees.DIRECTORY:
                changes[path] = None
                state.overlay[path] = (b"", DELETED)
            return
        if content.entry != before:
            changes[path] = content.entry
        else:
            changes.pop(path, None)
        state.overlay[path] = (content.entry.oid, content.stat)
        if not content.settled:
            state.skipped[path] = "changed-while-reading"

    def _enter_nested(
        self,
        state: ScanState,
        changes: dict[bytes, Entry | None],
        previous: Callable[[bytes], Entry | None],
        head: Callable[[bytes], Entry | None],
    ) -> None:
        """Records HEADs of nested repositories, and what a sparse checkout omits."""
        for path in state.nested:
            oid = nested_head(self._top / os.fsdecode(path))
            state.nested[path] = oid
            wanted = Entry(GITLINK, oid) if oid is not None else None
            if previous(path) != wanted or path in changes:
                changes[path] = wanted
        for path in empty_directories(state):
            # A submodule that was never checked out is an empty directory.
            entry = head(path)
            if entry is not None and entry.mode == GITLINK:
                if previous(path) != entry or path in changes:
                    changes[path] = entry
                state.nested[path] = entry.oid
        dropped = {path for path, entry in changes.items() if entry is None}
        for path, (mode, oid) in state.sparse.items():
            if (
                previous(path) != Entry(mode, oid)
                or path in dropped
                or not dropped.isdisjoint(parents(path))
            ):
                changes[path] = Entry(mode, oid)
