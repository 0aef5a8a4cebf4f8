"""A transaction: new objects and the refs that need them, durable together (docs/format.md, 9)."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import BranchMovedError, StorageError, UsageError
from gitcp.format import tree as trees
from gitcp.git import area, grace, ref_locks
from gitcp.git.complete import Completion
from gitcp.git.ended import OWNER, STAGED_REF, TRANSACTIONS, let_go, settle_refs, sweep
from gitcp.git.moved_refs import grew_from, moved_since
from gitcp.git.objects import BLOB, COMMIT, TREE, Objects
from gitcp.git.pack import PackWriter
from gitcp.git.ref_locks import DECIDED
from gitcp.git.ref_storage import RefsMovedError
from gitcp.git.refs import FileRefs
from gitcp.git.registry import PACKS, Registry
from gitcp.git.repository import Repository, follow_refs

# How often refs may be moved to another storage under one change of ours.
_MIGRATIONS = 20


class Transaction:
    """A transaction: objects go to a pack beside the repository, then the ref moves.

    Objects written here can be read here before they are published.
    """

    def __init__(self, repository: Repository, directory: Path) -> None:
        self.repository = repository
        self.objects: Objects = repository.objects
        self._directory = directory
        self._pack = PackWriter(directory, repository.form)
        self._trees: dict[bytes, trees.Tree] = {}
        self._keeps: list[Path] = []
        self._process = os.getpid()
        self._published: set[bytes] = set()

    def __contains__(self, oid: bytes, /) -> bool:
        return oid in self._pack or oid in self._published

    def add_blob(self, data: bytes, oid: bytes | None = None) -> bytes:
        """Adds a blob and returns its oid, which the caller may know."""
        return self._pack.add(BLOB, data, oid)

    def add_blob_stream(self, size: int, chunks: Iterator[bytes]) -> bytes | None:
        """Adds a blob of any size; None if the chunks had another size."""
        return self._pack.add_stream(size, chunks)

    def add_tree(self, tree: trees.Tree) -> bytes:
        """Makes a tree readable here and returns its oid; `complete` stores it."""
        oid = self.repository.form.oid(TREE, trees.encode(tree))
        self._trees[oid] = tree
        return oid

    def add_commit(self, raw: bytes) -> bytes:
        """Adds a commit and returns its oid."""
        return self._pack.add(COMMIT, raw)

    def add_object(self, kind: str, data: bytes) -> bytes:
        """Adds a blob, tree or commit as it is and returns its oid."""
        return self._pack.add(kind, data)

    def add_entry(self, oid: bytes, body: bytes) -> None:
        """Adds an object that is compressed already; see `pack.entry`."""
        self._pack.add_entry(oid, body)

    def store(self) -> None:
        """Makes the objects durable without moving a ref: a ref needs them already.

        Raises:
            StorageError: the disk refused.
        """
        with durable.storage("writing objects"):
            self._move_in()

    def tree(self, oid: bytes) -> trees.Tree:
        """Returns a tree of this transaction or of the repository.

        Raises:
            CorruptError: neither holds the tree.
        """
        found = self._trees.get(oid)
        return found if found is not None else self.objects.tree(oid)

    def complete(self, root: bytes, bases: tuple[bytes | None, ...]) -> None:
        """Stores what `root` needs and no base holds at the same path (I4).

        An object in the repository may be unreachable, and be pruned at any moment;
        only objects that a ref reaches are reliable. A damaged tree of a base counts as
        empty.

        Raises:
            CorruptError: something that `root` needs is nowhere.
        """
        Completion(self.tree, self.objects, self._pack, self).add(root, bases)

    def publish(self, ref: str, *, expect: str | None, new: bytes) -> None:
        """Makes the objects and then the ref durable; returning is the acknowledgement.

        Raises:
            BranchMovedError: the ref is not at `expect`; the objects are in, unreferenced,
                and `publish` may be called again with more of them.
            BusyError: another process holds the ref's lock.
            StorageError: the disk refused.
        """
        with durable.storage("writing the checkpoint"):
            self._move_in()
        self.move_ref(ref, expect=expect, new=new.hex())

    def move_ref(self, ref: str, *, expect: str | None, new: str) -> None:
        """Moves a ref to objects that are in the repository already; see `Refs`.

        Raises:
            BranchMovedError: the ref is not at `expect`.
            BusyError: another process holds the ref's lock.
            StorageError: the disk refused.
        """
        for _ in range(_MIGRATIONS):
            kept = self.repository.refs
            try:
                kept.compare_and_swap(
                    ref, expect=expect, new=new, staged=self._directory / STAGED_REF
                )
            except RefsMovedError:
                follow_refs(self.repository, kept)
                # git may have moved it as well, or not.
                found = self.repository.refs.read(ref)
                if found is not None and grew_from(self.objects, found, new, expect):
                    return
            else:
                return
        raise BranchMovedError(f"{ref} kept moving", hint="run the command again")

    def publish_together(
        self, refs: Iterable[str], decide: Callable[[], Mapping[str, str]]
    ) -> dict[str, tuple[str, str]]:
        """Moves several refs at one moment, or none; durable on return.

        `decide` is called while all of them are locked: it reads their values, adds the
        objects that are still missing, and returns the new values. A ref that it leaves
        out stays. Returns the old and the new value of each ref that moved.

        Raises:
            BusyError: another process holds a ref's lock; nothing moved.
            StorageError: the disk refused. Nothing moved, or the next transaction continues
                with what was decided.
        """
        names = sorted(set(refs))
        before: dict[str, str | None] = {}
        for _ in range(_MIGRATIONS):
            kept = self.repository.refs
            try:
                before = before or {name: kept.read(name) for name in names}
                if isinstance(kept, FileRefs):
                    moved = self._move_files(kept, names, decide)
                    kept.storage.check()
                else:
                    with durable.storage("moving branches"):
                        moved = kept.move_together(names, decide, self._move_in)
            except RefsMovedError:
                # git may have moved the new values as well, or not: those that it did not
                # are moved again.
                follow_refs(self.repository, kept)
            else:
                return moved or moved_since(before, self.repository.refs.read)
        raise BranchMovedError("branches kept moving", hint="run the command again")

    def _move_files(
        self,
        kept: FileRefs,
        names: Iterable[str],
        decide: Callable[[], Mapping[str, str]],
    ) -> dict[str, tuple[str, str]]:
        held: dict[str, tuple[Path, Path]] = {}
        decided = self._directory / DECIDED
        try:
            with durable.storage("moving branches"):
                kept.storage.check()
                for number, name in enumerate(names):
                    staged = self._directory / f"{STAGED_REF}-{number}"
                    staged.touch(mode=0o666, exist_ok=False)
                    self.repository.access.adjust(staged)
                    held[name] = staged, kept.lock(name, staged)
                moved = {}
                for name, new in decide().items():
                    old = kept.read(name)
                    if old is not None and old != new:
                        moved[name] = old, new
                self._move_in()
                for name in held.keys() - moved.keys():
                    staged, lock = held.pop(name)
                    lock.unlink()
                    staged.unlink()
                for name, (staged, _) in held.items():
                    with staged.open("w") as file:
                        file.write(f"{moved[name][1]}\n")
                        file.flush()
                        os.fsync(file.fileno())
                for directory in {lock.parent for _, lock in held.values()}:
                    durable.sync_directory(directory)
                if held:
                    kept.storage.check()
                    # The commit point: from here on the next process finishes it.
                    durable.replace(decided, b"")
                    settle_refs(self.repository, self._directory)
                    decided.unlink()
                    for staged, _ in held.values():
                        staged.unlink()
        except BaseException:
            if not decided.exists():
                for staged, lock in held.values():
                    ref_locks.release(lock, staged)
                    staged.unlink(missing_ok=True)
            raise
        return moved

    def _move_in(self) -> None:
        if self._process != os.getpid():
            raise UsageError(
                f"process {self._process} is saving this, and forked the current"
                " process",
                hint="end the forked process with os._exit(0)",
            )
        written = self._pack.close()
        if written is None:
            return
        self._published.update(self._pack)
        self._pack = PackWriter(self.scratch, self.repository.form)
        self.adopt(*written)

    @property
    def scratch(self) -> Path:
        """The transaction's own directory."""
        return self._directory

    def adopt(
        self,
        pack: Path,
        index: Path,
        name: str,
        *,
        listed: str = PACKS,
        used: int | None = None,
    ) -> None:
        """Moves a complete pack into the repository, under a `.keep` until the end.

        `used` is when git began to rely on what is in it, in nanoseconds.
        """
        access = self.repository.access
        registry = Registry(self.repository, listed)
        grace.mark(pack, index, used)
        for path in (pack, index):
            access.adjust(path)
            with path.open("rb") as file:
                os.fsync(file.fileno())
        target = self.repository.common_dir / "objects" / "pack"
        access.make_directories(target)
        while True:
            # Only consolidation reads this list: it need not survive a power cut.
            registry.add(name)
            # A second link to `owner`: its owner must be known after a power cut, too.
            keep = target / f"{name}.keep"
            # Noted first: an interrupt may come right after the link.
            self._keeps.append(keep)
            try:
                durable.link(self._directory / OWNER, keep)
                break
            except FileExistsError:
                # Another transaction holds the same objects, and may drop them.
                mine = f"{name} {self._directory.name}".encode()
                name = f"pack-{hashlib.sha1(mine, usedforsecurity=False).hexdigest()}"
        # git finds a pack by its .idx, so that comes last.
        pack.rename(target / f"{name}.pack")
        index.rename(target / f"{name}.idx")
        durable.sync_directory(target)

    def end(self) -> None:
        """Releases everything; what was published stays.

        If the disk refuses to remove something now, the next sweep removes it.
        """
        # Closing writes buffered data, which a full disk refuses.
        with suppress(OSError):
            self._pack.abandon()
        with suppress(OSError):
            owner = (self._directory / OWNER).stat().st_ino
            let_go(self.repository, self._directory, owner, self._keeps)


def files_in(txn: Transaction) -> trees.ReadTree:
    """Returns what reads trees of a transaction as `Objects.files` does."""
    return lambda oid: txn.objects.chunked.meant(txn.tree(oid))


@contextmanager
def transaction(repository: Repository) -> Iterator[Transaction]:
    """Opens a transaction, and cleans up after dead ones.

    Raises:
        StorageError: the disk refused.
    """
    root = repository.store_dir / TRANSACTIONS
    with durable.storage("preparing to save"):
        repository.make_directory(root)
        area.open_up(repository.common_dir, repository.git_dir, repository.access)
        sweep(repository)
        # A sweep of another process may take a directory before its owner is locked.
        owner = None
        directory = root
        while owner is None:
            directory = root / os.urandom(8).hex()
            directory.mkdir(mode=0o700)
            repository.access.adjust(directory)
            try:
                owner = durable.try_lock(directory / OWNER)
            except FileNotFoundError:
                continue
            except StorageError:
                (directory / OWNER).unlink()
                directory.rmdir()
                raise
    opened = Transaction(repository, directory)
    process = os.getpid()
    try:
        yield opened
    finally:
        # A process forked meanwhile leaves it to its parent.
        if process == os.getpid():
            opened.end()
        durable.unlock(owner, process=process)


@contextmanager
def looking(repository: Repository) -> Iterator[Transaction]:
    """Opens a transaction that will publish nothing, in a read-only repository, too.

    Raises:
        StorageError: the disk refused.
    """
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(transaction(repository))
        except StorageError as exc:
            cause = exc.__cause__
            if not (isinstance(cause, OSError) and cause.errno in durable.READ_ONLY):
                raise
            import tempfile  # noqa: PLC0415  rarely

            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="gitcp-"))
            opened = Transaction(repository, Path(scratch))
            stack.callback(opened.end)
        yield opened
