"""Captures the work tree as a tree object; reads only what changed."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

from gitcp import durable
from gitcp.errors import CorruptError, GitFailedError
from gitcp.git.configuration import is_set_by_user
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.worktree import state as states
from gitcp.worktree.build import Builder
from gitcp.worktree.clock import Clock
from gitcp.worktree.databases import Databases
from gitcp.worktree.files import Root
from gitcp.worktree.listing import Found, ScanPlace
from gitcp.worktree.private import PrivateGit
from gitcp.worktree.scan import Rules, Scan
from gitcp.worktree.snapshot import Snapshot
from gitcp.worktree.state import ScanState

if TYPE_CHECKING:
    from gitcp.worktree.comparison import Comparison
    from gitcp.worktree.proof import Proven
    from gitcp.worktree.read import Written
    from gitcp.worktree.watched import Watch

T = TypeVar("T")


class Capture:
    """Captures one work tree; keeps the state that makes the next capture cheap.

    `begin` starts git's comparison at once, so that it runs while the caller does other
    things; `take` finishes the work. `looked_at` are the paths that it read or missed.
    """

    def __init__(self, repository: Repository, root: Root, rules: Rules) -> None:
        self._repository = repository
        self._top = repository.top or repository.git_dir
        self._root = root
        self._rules = rules
        self._private = PrivateGit(repository, self._top)
        self._comparison: Comparison | None = None
        self._state: ScanState | None = None
        self._clock: Clock | None = None
        self._watch: Watch | None = None
        # The checksum of the state that was loaded.
        self._stored = b""
        # Files just written here: they need not be read while their stat stays the same.
        self.written: Written = {}
        # Directories that were written and compared, by path.
        self.proven: Mapping[bytes, Proven] = {}
        self.looked_at: set[bytes] = set()
        # Databases that are not there: files beside them are captured all the same.
        self.databases: set[bytes] = set()

    @property
    def is_watched(self) -> bool:
        """Whether a watcher was asked; the scan's state records the answer."""
        return self._watch is not None

    def begin(self) -> None:
        """Starts comparing in the background.

        Raises:
            StorageError: the private directory cannot be written.
        """
        with durable.storage("preparing to scan"):
            clock = self._clock = self._prepare()
        state = self._state = states.load(self._private.directory)
        if state.clock is not None and clock.went_back(state.clock):
            state = self._state = ScanState()
        self._stored = state.stored
        if not (self._ask(state, clock) or not state.index):
            self._comparison = self._private.start_comparison()

    def _ask(self, state: ScanState, clock: Clock) -> bool:
        """Asks the user's watcher; returns whether its answer may suffice."""
        if not self._rules.watched or self._private.is_temporary:
            return False
        if not is_set_by_user(self._repository.config, "core.fsmonitor"):
            # Loading this module takes as long as half of the directories.
            return False
        from gitcp.worktree import watched  # noqa: PLC0415  few have one

        watch = watched.watch(
            self._repository, self._private.directory, clock, self._rules.deadline
        )
        self._watch = watch
        return watch is not None and watch.begin(state)

    def _prepare(self) -> Clock:
        try:
            self._private.prepare()
            return Clock(self._private.directory / "clock")
        except OSError as exc:
            if exc.errno not in durable.READ_ONLY:
                raise
        # Read-only commands still work: without a state, every file is read.
        self._private.move_to_temporary()
        self._private.prepare()
        return Clock(self._private.directory / "clock")

    def abandon(self) -> None:
        """Ends a comparison whose result is no longer needed."""
        running, self._comparison = self._comparison, None
        if running is not None:
            running.end()
        if self._watch is not None:
            self._watch.close()

    def take(self, transaction: Transaction, *, fresh: bool = False) -> Snapshot:
        """Captures the work tree into a transaction.

        With `fresh`, nothing from earlier captures is used.

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
        # Directories that an earlier capture kept open may be gone or replaced.
        self._root.forget()
        if fresh or state is None:
            self.abandon()
            state = ScanState()
        snapshot = self._take(transaction, state, clock, fresh=fresh)
        watch = self._watch
        if watch is not None and watch.missed is not None and watch.trusted:
            watch.trusted = False
            self._watch = None
            state = states.load(self._private.directory)
            snapshot = self._take(transaction, state, clock, fresh=False)
            self._watch = watch
        return snapshot

    def _take(
        self, transaction: Transaction, state: ScanState, clock: Clock, *, fresh: bool
    ) -> Snapshot:
        with ExitStack() as stack:
            stack.callback(self.abandon)
            stack.enter_context(durable.storage("reading the project's files"))
            if state.tree is not None:
                transaction.objects.pin(state.root)
            if state.lists is not None:
                transaction.objects.chunked.learn(state.lists)
            state.databases = dict.fromkeys(self.databases) | state.databases
            builder = Builder(
                self._repository,
                self._root,
                self._rules,
                transaction,
                clock,
                {} if fresh else self.written,
                state.lists,
                Databases(
                    self._root,
                    clock,
                    self._private.directory,
                    state.databases,
                    backups=self._rules.backups,
                ),
            )
            watch = None if fresh else self._watch
            if self.proven and not fresh:
                builder.enter_proven(state, self.proven)
            try:
                result = self._scan(state, builder, clock, watch)
            except GitFailedError:
                if not state.index:
                    raise
                # The private index may be damaged; without it nothing depends on it.
                state, watch = ScanState(), None
                result = self._scan(state, builder, clock, watch)
            self.looked_at = result.look | result.gone
            return builder.build(state, result, watch)

    def using(
        self, transaction: Transaction, use: Callable[[Snapshot], T]
    ) -> tuple[Snapshot, T]:
        """Captures, and returns the snapshot with the result of `use`.

        If objects that an earlier scan relied on are gone (a branch was deleted or
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

    def _scan(
        self, state: ScanState, builder: Builder, clock: Clock, watch: "Watch | None"
    ) -> Found:
        def differing() -> list[bytes]:
            running, self._comparison = self._comparison, None
            if running is None and state.index:
                running = self._private.start_comparison()
            return running.names() if running is not None else []

        context = ScanPlace(
            self._repository,
            self._top,
            self._root,
            clock,
            self._private,
            builder.previous(state.tree),
        )
        return Scan(context, self._rules, state, watch).run(differing)

    def remember(self, snapshot: Snapshot) -> None:
        """Stores the scan's state; call it only after a ref holds the captured objects."""
        if self._clock is None:
            raise ValueError("a capture that was not begun")
        with durable.storage("keeping the scan state"):
            states.save(
                self._private.directory,
                snapshot.state,
                self._clock,
                self._repository.form,
            )
            self._remember_watch(snapshot.state)
        if self._repository.private:
            from gitcp.git.private_stores import note_names  # noqa: PLC0415  rarely

            note_names(self._repository)

    def _remember_watch(self, state: ScanState) -> None:
        if self._watch is not None:
            self._watch.remember(state)
        elif self._stored and (self._private.directory / "watcher").exists():
            from gitcp.worktree import watched  # noqa: PLC0415  few have one

            watched.keep_token(self._private.directory, self._stored, state)
