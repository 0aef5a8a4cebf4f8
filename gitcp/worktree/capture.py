"""Captures the work tree as a tree object; reads only what changed."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TypeVar

from gitcp import durable, progress
from gitcp.errors import CorruptError, GitFailedError
from gitcp.format import tree as trees
from gitcp.format.checkpoint import Skipped
from gitcp.format.tree import GITLINK, Entry, Tree
from gitcp.git.process import Process, finish
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, files_in
from gitcp.worktree import nested
from gitcp.worktree import state as states
from gitcp.worktree.chunks import ChunkWriter
from gitcp.worktree.clock import Clock
from gitcp.worktree.files import Root
from gitcp.worktree.listing import Found, Previous, ScanPlace
from gitcp.worktree.names import parents
from gitcp.worktree.private import PrivateGit
from gitcp.worktree.read import DELETED, Content, FileReader, Trouble, Written
from gitcp.worktree.scan import Rules, Scan, empty_directories
from gitcp.worktree.snapshot import Snapshot
from gitcp.worktree.state import ScanState

T = TypeVar("T")

_REASONS = {
    Trouble.UNREADABLE: "unreadable",
    Trouble.SPECIAL: "special-file",
    Trouble.TOO_LARGE: "too-large",
    Trouble.DEFERRED: "deferred",
    Trouble.UNSETTLED: "changed-while-reading",
}


class Capture:
    """Captures one work tree; holds what makes the next capture cheap.

    `begin` starts git's comparison at once, so that it runs while the caller does other
    things; `take` finishes the work. `looked_at` are the paths that it read or missed.
    """

    def __init__(self, repository: Repository, root: Root, rules: Rules) -> None:
        self._repository = repository
        self._top = repository.top or repository.git_dir
        self._root = root
        self._rules = rules
        self._private = PrivateGit(repository, self._top)
        self._comparison: Process | None = None
        self._state: ScanState | None = None
        self._clock: Clock | None = None
        # What was just written here, and need not be read while its stat stays the same.
        self.written: Written = {}
        self.looked_at: set[bytes] = set()

    def begin(self) -> None:
        """Starts comparing in the background.

        Raises:
            StorageError: the private directory cannot be written.
        """
        with durable.storage("preparing to scan"):
            clock = self._clock = self._prepare()
        state = self._state = states.load(self._private.directory)
        if state.clock is not None and clock.went_back(state.clock):
            self._state = ScanState()
        if self._state.index:
            self._comparison = self._private.start_diff_files()

    def _prepare(self) -> Clock:
        try:
            self._private.prepare()
            return Clock(self._private.directory / "clock")
        except OSError as exc:
            if exc.errno not in durable.READ_ONLY:
                raise
        # Only looking is still possible: with nothing known, every file is read.
        self._private.move_to_temporary()
        self._private.prepare()
        return Clock(self._private.directory / "clock")

    def abandon(self) -> None:
        """Ends a comparison whose result is no longer needed."""
        process, self._comparison = self._comparison, None
        if process is not None:
            process.kill()
            process.communicate()

    def take(self, transaction: Transaction, *, fresh: bool = False) -> Snapshot:
        """Captures the work tree into a transaction.

        With `fresh` nothing that was learnt before is used.

        Raises:
            StorageError: a file could not be read for a reason that is not its own.
            GitFailedError: git failed.
        """
        if self._state is None:
            self.begin()
        state, self._state = self._state, None
        clock = self._clock
        if clock is None:
            raise ValueError("a capture that was not begun")
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
            if state.lists is not None:
                transaction.objects.chunked.learn(state.lists)
            builder = _Builder(
                self._repository,
                self._root,
                self._rules,
                transaction,
                clock,
                {} if fresh else self.written,
                state.lists,
            )
            try:
                result = self._scan(state, builder, clock)
            except GitFailedError:
                if not state.index:
                    raise
                # The private index may be damaged; without it nothing depends on it.
                state = ScanState()
                result = self._scan(state, builder, clock)
            self.looked_at = result.look | result.gone
            return builder.build(state, result)

    def using(
        self, transaction: Transaction, use: Callable[[Snapshot], T]
    ) -> tuple[Snapshot, T]:
        """Captures, and returns the snapshot with what `use` makes of it.

        Where objects that an earlier scan relied on are gone (a branch was deleted or
        purged, and git has pruned), everything is read again.

        Raises:
            StorageError, GitFailedError: as `take` does.
        """
        try:
            snapshot = self.take(transaction)
            return snapshot, use(snapshot)
        except CorruptError:
            snapshot = self.take(transaction, fresh=True)
            return snapshot, use(snapshot)

    def _scan(self, state: ScanState, builder: "_Builder", clock: Clock) -> Found:
        context = ScanPlace(
            self._repository,
            self._top,
            self._root,
            clock,
            self._private,
            builder.previous(state.tree),
        )
        return Scan(context, self._rules, state).run(self._differing)

    def _differing(self) -> list[bytes]:
        process, self._comparison = self._comparison, None
        return finish(process).split(b"\0")[:-1] if process is not None else []

    def remember(self, snapshot: Snapshot) -> None:
        """Keeps what was learnt; only once a ref holds what was captured."""
        if self._clock is None:
            raise ValueError("a capture that was not begun")
        with durable.storage("keeping the scan state"):
            states.save(
                self._private.directory,
                snapshot.state,
                self._clock,
                self._repository.form,
            )
        if self._repository.private:
            from gitcp.git.private_stores import note_names  # noqa: PLC0415  rarely

            note_names(self._repository)


class _Builder:
    """Reads what a scan found and makes the tree."""

    def __init__(
        self,
        repository: Repository,
        root: Root,
        rules: Rules,
        transaction: Transaction,
        clock: Clock,
        written: Written,
        lists: bytes | None,
    ) -> None:
        self._top = repository.top or repository.git_dir
        self._repository = repository
        self._root = root
        self._rules = rules
        self._transaction = transaction
        self._objects = transaction.objects
        self._clock = clock
        self._written = written
        self._chunks = ChunkWriter(
            transaction, rules.chunk_above, rules.deadline, lists
        )
        self._head_tree = self._readable_head()

    def _readable_head(self) -> bytes | None:
        """Returns HEAD's tree; none where it is damaged: then nothing is known of it."""
        head, _ = self._repository.head()
        if head is None:
            return None
        try:
            return self._transaction.objects.commit(bytes.fromhex(head)).tree
        except CorruptError:
            return None

    def previous(self, tree: bytes | None) -> Previous:
        """Returns what a scan has to know of the tree that it starts from."""
        entry = self.lookup(tree)

        def names(directory: bytes) -> Iterable[bytes]:
            found = entry(directory)
            if found is None or found.mode != trees.DIRECTORY:
                return ()
            return files_in(self._transaction)(found.oid)

        return Previous(entry, names)

    def lookup(
        self, tree: bytes | None, read: trees.ReadTree | None = None
    ) -> Callable[[bytes], Entry | None]:
        """Returns a function from paths to entries of a tree.

        It is quick where paths of one directory follow each other.
        """
        read = read or files_in(self._transaction)
        last: bytes | None = None
        inner: Tree = {}

        def find(path: bytes) -> Entry | None:
            nonlocal last, inner
            directory, _, name = path.rpartition(b"/")
            if not name:
                return trees.lookup(tree, path, read)
            if directory != last:
                # Where it cannot be read that is said once.
                last, inner = directory, {}
                found = trees.lookup(tree, directory, read)
                if found is not None and found.mode == trees.DIRECTORY:
                    inner = read(found.oid)
            return inner.get(name)

        return find

    def build(self, state: ScanState, result: Found) -> Snapshot:
        """Reads, and returns the snapshot with the state that belongs to it."""
        previous = self.lookup(state.tree)
        head = self._head_lookup()

        def known(path: bytes, entry: Entry) -> bool:
            for other in (previous(path), head(path)):
                if other is not None and other.oid == entry.oid:
                    return True
            return entry.oid in self._transaction

        form = self._transaction.objects.form
        reader = FileReader(
            self._root,
            self._clock,
            form=form,
            limit=self._rules.limit,
            known=known,
            store=self._transaction.add_blob,
            store_stream=self._transaction.add_blob_stream,
            written=self._written,
            chunks=self._chunks,
            before=lambda path: previous(path) or head(path),
        )
        changes: dict[bytes, Entry | None] = {}
        for path in result.gone | self._unwanted(state, result):
            changes[path] = None
            if path in state.overlay or state.index:
                state.overlay[path] = (b"", DELETED)
        dropped = set(changes)

        def before(path: bytes) -> Entry | None:
            return previous(path) if dropped.isdisjoint(parents(path)) else None

        report = progress.of("reading files:")
        for done, path in enumerate(sorted(result.look)):
            if report is not None:
                report(done, len(result.look))
            self._enter(path, reader.read(path), before(path), state, changes)
        sparse = {
            path: Entry(*entry)
            for path, entry in state.sparse.items()
            if path not in result.excluded
        }
        nested.enter(self._top, form, state, sparse, changes, before)
        tree = self._edit(state.tree, changes)
        more = nested.not_checked_out(state, self.lookup(tree), head)
        tree = self._edit(tree, more) if more else tree
        state.tree = tree
        state.large, state.lists = self._chunks.listed(state.large, self.lookup(tree))
        state.root = b"" if tree is None else trees.encode(self._transaction.tree(tree))
        return self._snapshot(tree, state, head)

    def _snapshot(
        self,
        tree: bytes | None,
        state: ScanState,
        head: Callable[[bytes], Entry | None],
    ) -> Snapshot:
        """Returns the snapshot of a tree: what it leaves out, and its empty directories."""
        entry = self.lookup(tree)
        skipped = [Skipped(path, reason) for path, reason in state.skipped.items()]
        for path in state.nested:
            in_head = head(path)
            submodule = in_head is not None and in_head.mode == GITLINK
            skipped.append(
                Skipped(path, "submodule" if submodule else "nested-repository")
            )
        return Snapshot(
            tree,
            tuple(
                path
                for path in sorted(empty_directories(state))
                # It may hold what is tracked though ignored, or is not checked out.
                if path not in state.nested and entry(path) is None
            ),
            tuple(sorted(skipped)),
            frozenset(state.sparse),
            frozenset(state.forced),
            state,
        )

    def _head_lookup(self) -> Callable[[bytes], Entry | None]:
        """Returns a function from paths to HEAD's entries.

        HEAD only saves work: of damaged trees nothing is known; a pointer there is a text.
        """
        find = self.lookup(self._head_tree, self._transaction.tree)

        def look(path: bytes) -> Entry | None:
            try:
                return find(path)
            except CorruptError:
                return None

        return look

    def _unwanted(self, state: ScanState, result: Found) -> set[bytes]:
        """Returns what was captured before and does not belong any more."""
        if result.wanted is None or state.tree is None:
            return set()
        before = trees.walk(state.tree, self._transaction.tree)
        return {path for path, _ in before if path not in result.wanted}

    def _enter(
        self,
        path: bytes,
        content: Content | Trouble,
        before: Entry | None,
        state: ScanState,
        changes: dict[bytes, Entry | None],
    ) -> None:
        state.skipped.pop(path, None)
        if isinstance(content, Trouble):
            if content in _REASONS:
                state.skipped[path] = _REASONS[content]
            if before is not None and before.mode != trees.DIRECTORY:
                changes[path] = None
                state.overlay[path] = (b"", DELETED)
            return
        large = self._chunks.holds(content.entry.oid)
        if large:
            state.large[path] = content.entry.oid
        if content.entry != before:
            stored = self._objects.chunked.stored
            changes[path] = stored(content.entry) if large else content.entry
        else:
            changes.pop(path, None)
        state.overlay[path] = (content.entry.oid, content.stat)
        if not content.settled:
            state.skipped[path] = "changed-while-reading"

    def _edit(
        self, tree: bytes | None, changes: dict[bytes, Entry | None]
    ) -> bytes | None:
        return trees.edit(
            tree, changes, self._transaction.tree, self._transaction.add_tree
        )
