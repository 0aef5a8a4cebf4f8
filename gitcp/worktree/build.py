"""Reads the files that a scan found, and makes the tree of a capture."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gitcp import progress
from gitcp.errors import CorruptError
from gitcp.format import tree as trees
from gitcp.format.checkpoint import BACKUP, Skipped
from gitcp.format.tree import GITLINK, Entry, Tree
from gitcp.git.objects import BLOB
from gitcp.git.pack import deflated_entry
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, files_in
from gitcp.worktree import nested
from gitcp.worktree.chunks import ChunkWriter
from gitcp.worktree.clock import Clock
from gitcp.worktree.databases import FOLDED, Databases
from gitcp.worktree.files import Root
from gitcp.worktree.listing import Found, Previous
from gitcp.worktree.names import parents
from gitcp.worktree.read import (
    DELETED,
    IN_MEMORY,
    Content,
    FileReader,
    Trouble,
    Written,
)
from gitcp.worktree.scan import Rules, empty_directories
from gitcp.worktree.snapshot import Snapshot
from gitcp.worktree.state import ScanState

if TYPE_CHECKING:
    from gitcp.worktree.judge import Judge
    from gitcp.worktree.proof import Proven
    from gitcp.worktree.watched import Watch

Lookup = Callable[[bytes], Entry | None]
_REASONS = {
    Trouble.UNREADABLE: "unreadable",
    Trouble.SPECIAL: "special-file",
    Trouble.TOO_LARGE: "too-large",
    Trouble.DEFERRED: "deferred",
    Trouble.UNSETTLED: "changed-while-reading",
}


# Directories of which the content is held.
_HELD = 16
# From so many files on, ordinary ones are read in bulk.
MANY = 1_000


def is_backup(content: Content | Trouble) -> bool:
    """Whether a content is a backup, made of a database and the log beside it."""
    return isinstance(content, Content) and content.backup


class Builder:
    """Reads the files that a scan found, and makes the tree."""

    def __init__(
        self,
        repository: Repository,
        root: Root,
        rules: Rules,
        transaction: Transaction,
        clock: Clock,
        written: Written,
        lists: bytes | None,
        databases: Databases,
    ) -> None:
        self._databases = databases
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
        """Returns HEAD's tree; None if it is damaged."""
        head, _ = self._repository.head()
        if head is None:
            return None
        try:
            return self._transaction.objects.commit(bytes.fromhex(head)).tree
        except CorruptError:
            return None

    def previous(self, tree: bytes | None) -> Previous:
        """Returns the part of the starting tree that a scan needs."""
        entry = self.lookup(tree)

        def names(directory: bytes) -> Tree:
            found = entry(directory)
            if found is None or found.mode != trees.DIRECTORY:
                return {}
            return files_in(self._transaction)(found.oid)

        return Previous(entry, names)

    def enter_proven(self, state: ScanState, proven: Mapping[bytes, "Proven"]) -> None:
        """Adds to a state the files that a restore wrote exactly as its tree has them."""
        # Loaded already by the restore.
        from gitcp.worktree import foreknown  # noqa: PLC0415

        most = min(self._chunks.whole_up_to(self._rules.limit), IN_MEMORY)
        if not self._rules.include:
            # Then a directory may hold ignored files that are captured all the same.
            held = self.previous(state.tree).names
            foreknown.enter(state, proven, held, self._clock, most)

    def lookup(
        self, tree: bytes | None, read: trees.ReadTree | None = None
    ) -> Callable[[bytes], Entry | None]:
        """Returns a function from paths to entries of a tree.

        It is fast if consecutive paths lie in the same directories.
        """
        if tree is None:
            return lambda _: None
        read = read or files_in(self._transaction)
        held: dict[bytes, Tree] = {}

        def find(path: bytes) -> Entry | None:
            directory, _, name = path.rpartition(b"/")
            if not name:
                return trees.lookup(tree, path, read)
            inner = held.get(directory)
            if inner is None:
                if len(held) >= _HELD:
                    held.clear()
                # If it cannot be read, that is reported once.
                inner = held[directory] = {}
                found = trees.lookup(tree, directory, read)
                if found is not None and found.mode == trees.DIRECTORY:
                    inner = held[directory] = read(found.oid)
            return inner.get(name)

        return find

    def build(
        self, state: ScanState, result: Found, watch: "Watch | None" = None
    ) -> Snapshot:
        """Reads, and returns the snapshot with the state that belongs to it.

        `watch` compares the true changes with those that the watcher named.
        """
        previous = self.lookup(state.tree)
        judge = self._judge(watch, state, result)
        head = self._head_lookup()

        reader = self._reader(previous, head)
        changes: dict[bytes, Entry | None] = {}
        for path in result.gone | self._unwanted(state, result):
            changes[path] = None
            self._databases.gone(path)
            if state.skipped.get(path) == BACKUP:
                del state.skipped[path]
            if path in state.overlay or state.index:
                state.overlay[path] = (b"", DELETED)
            if judge is not None:
                judge.gone(path, previous(path))
        dropped = set(changes)

        def before(path: bytes) -> Entry | None:
            gone = dropped and not dropped.isdisjoint(parents(path))
            return None if gone else previous(path)

        self._read_all(result, reader, judge, before, state, changes)
        sparse = {
            path: Entry(*entry)
            for path, entry in state.sparse.items()
            if path not in result.excluded
        }
        nested.enter(
            self._top, self._transaction.objects.form, state, sparse, changes, before
        )
        tree = self._edit(state.tree, changes)
        more = nested.not_checked_out(state, self.lookup(tree), head)
        tree = self._edit(tree, more) if more else tree
        state.tree = tree
        state.large, state.lists = self._chunks.listed(state.large, self.lookup(tree))
        state.root = b"" if tree is None else trees.encode(self._transaction.tree(tree))
        return self._snapshot(tree, state, head)

    def _read_all(
        self,
        result: Found,
        reader: FileReader,
        judge: "Judge | None",
        before: Lookup,
        state: ScanState,
        changes: dict[bytes, Entry | None],
    ) -> None:
        result.look |= self._databases.to_look_at(result.look)
        report = progress.of("reading files:")
        done: set[bytes] = set()

        def enter(path: bytes, content: Content | Trouble) -> None:
            if report is not None:
                report(len(done), len(result.look))
            done.add(path)
            known = before(path)
            # The log of a database may have changed, which a watcher need not name.
            if judge is not None and not is_backup(content):
                judge.read(path, content, known)
            self._enter(path, content, known, state, changes)

        if len(result.look) >= MANY:
            for path, content in reader.read_many(result.look):
                enter(path, content)
        for path in sorted(result.look - done):
            if path not in done:
                found = reader.read(path)
                enter(path, found)
                if is_backup(found):
                    done |= self._fold(path, before, state, changes)
        for path in sorted(self._databases.beside() - result.look):
            self._enter(path, reader.read(path), before(path), state, changes)

    def _snapshot(
        self,
        tree: bytes | None,
        state: ScanState,
        head: Callable[[bytes], Entry | None],
    ) -> Snapshot:
        """Returns the snapshot of a tree, with its skipped paths and its empty directories."""
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
                # It may hold files that are tracked though ignored, or not checked out.
                if path not in state.nested and entry(path) is None
            ),
            tuple(sorted(skipped)),
            frozenset(state.sparse),
            frozenset(state.forced),
            state,
        )

    def _reader(self, previous: Lookup, head: Lookup) -> FileReader:
        def known(path: bytes, entry: Entry) -> bool:
            for other in (previous(path), head(path)):
                if other is not None and other.oid == entry.oid:
                    return True
            return entry.oid in self._transaction

        form = self._transaction.objects.form
        return FileReader(
            self._root,
            self._clock,
            form=form,
            limit=self._rules.limit,
            known=known,
            store=self._transaction.add_blob,
            store_stream=self._transaction.add_blob_stream,
            store_deflated=lambda oid, size, deflated: self._transaction.add_entry(
                oid, deflated_entry(BLOB, size, deflated)
            ),
            written=self._written,
            chunks=self._chunks,
            before=lambda path: previous(path) or head(path),
            databases=self._databases,
        )

    def _judge(
        self, watch: "Watch | None", state: ScanState, result: Found
    ) -> "Judge | None":
        if watch is None:
            return None
        from gitcp.worktree.judge import Judge  # noqa: PLC0415  few have a watcher

        return Judge(watch, self._root, state, result)

    def _head_lookup(self) -> Callable[[bytes], Entry | None]:
        """Returns a function from paths to HEAD's entries.

        HEAD only saves work: damaged trees count as empty, and a pointer in HEAD is plain
        text.
        """
        find = self.lookup(self._head_tree, self._transaction.tree)

        def look(path: bytes) -> Entry | None:
            try:
                return find(path)
            except CorruptError:
                return None

        return look

    def _unwanted(self, state: ScanState, result: Found) -> set[bytes]:
        """Returns the paths that were captured before and no longer belong to the snapshot."""
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

    def _fold(
        self,
        path: bytes,
        before: Lookup,
        state: ScanState,
        changes: dict[bytes, Entry | None],
    ) -> set[bytes]:
        """Notes that a database was captured together with the files beside it; returns these."""
        state.skipped[path] = BACKUP
        names = {path + suffix for suffix in FOLDED}
        for name in names:
            state.skipped.pop(name, None)
            if before(name) is not None:
                changes[name] = None
                state.overlay[name] = (b"", DELETED)
        return names

    def _edit(
        self, tree: bytes | None, changes: dict[bytes, Entry | None]
    ) -> bytes | None:
        return trees.edit(
            tree, changes, self._transaction.tree, self._transaction.add_tree
        )
