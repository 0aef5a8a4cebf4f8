"""One process's end of a write-ahead log: reads what is new, appends, drains."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gitcp.format import tree as trees
from gitcp.format.commit import Commit, parse_commit
from gitcp.git.pack import read_entry
from gitcp.git.repository import Repository
from gitcp.wal.drain import OnConflict, drain
from gitcp.wal.log_file import LogFile, LogRecord, RefMove


class LogClient:
    """A write-ahead log, and what this process knows of it; safe to share among threads.

    Everything apart from `mutex`, `size` and `close` is for use within `held`. `objects`
    are those that git does not have yet, as entries of a pack. `moves` are the commits
    that the log takes each ref from and to, in order. Both are empty again once the
    log is in git; then `generation` has changed.
    """

    def __init__(
        self, repository: Repository, name: str, on_conflict: OnConflict
    ) -> None:
        self._repository = repository
        self._on_conflict = on_conflict
        self._file = LogFile(repository, name)
        self.mutex = threading.RLock()
        self.objects: dict[bytes, bytes] = {}
        self.moves: dict[str, dict[str | None, None]] = {}
        self.generation = 0
        self._known_file = self._file.generation

    def reset_after_fork(self) -> None:
        """Forgets the parent's lock, which this process's descriptor shares."""
        self._file.close()
        self.mutex = threading.RLock()
        self._forget()

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        self._file.close()

    @property
    def size(self) -> int:
        """The number of bytes that this process knows of and git does not have yet."""
        return self._file.known if self._file.opened else 0

    @contextmanager
    def held(self, *, write: bool = False, catch_up: bool = False) -> Iterator[None]:
        """Holds the log, if there is one; with `write` it is created.

        With `catch_up` the records of other processes are absorbed first.

        Raises:
            BusyError: another process kept the lock.
        """
        with self.mutex:
            if not write and not self._file.exists():
                # A reader must not leave a file behind.
                self._file.close()
                if self.moves:
                    # Another process has drained it.
                    self._forget()
                yield
                return
            with self._file.locked(timeout=self._timeout):
                self._notice_new_file()
                if catch_up:
                    self.catch_up()
                yield

    @property
    def _timeout(self) -> float:
        return self._repository.refs.lock_timeout

    def _notice_new_file(self) -> None:
        if self._file.generation != self._known_file:
            # It is another file: git has what the previous one held.
            self._known_file = self._file.generation
            self._forget()

    def _forget(self) -> None:
        self.objects.clear()
        self.moves.clear()
        self.generation += 1

    def news(self) -> Iterator[LogRecord]:
        """Absorbs the records of other processes that are new, and yields them.

        Raises:
            DamagedLogError: a record is damaged that may have been acknowledged.
        """
        if self._file.opened:
            for record, _ in self._file.news():
                self._absorb(record)
                yield record

    def catch_up(self) -> None:
        """Absorbs the records of other processes, for `objects` and `moves`.

        Raises:
            DamagedLogError: as `news`.
        """
        for _ in self.news():
            pass

    def _absorb(self, record: LogRecord) -> None:
        self.objects.update(record.objects)
        for move in record.moves:
            chain = self.moves.setdefault(move.ref, {})
            chain |= {move.expect: None, move.new: None}

    def commit(self, oid: bytes) -> Commit:
        """Returns a commit of the log, or of git.

        Raises:
            CorruptError: the object is missing or damaged.
        """
        entry = self.objects.get(oid)
        if entry is None:
            return self._repository.objects.commit(oid)
        return parse_commit(read_entry(entry)[1], len(oid))

    def tree(self, oid: bytes) -> trees.Tree:
        """Returns a tree of the log, or of git; raises as `commit`."""
        entry = self.objects.get(oid)
        if entry is None:
            return self._repository.objects.tree(oid)
        return trees.parse(read_entry(entry)[1], len(oid))

    def blob(self, oid: bytes) -> bytes:
        """Returns a blob of the log, or of git; raises as `commit`."""
        entry = self.objects.get(oid)
        if entry is None:
            return self._repository.objects.blob(oid)
        return read_entry(entry)[1]

    def append(
        self, move: RefMove, objects: Mapping[bytes, bytes], *, sync: bool = True
    ) -> None:
        """Moves a ref, and adds the objects that the move needs; needs `held(write=True)`.

        Durable on return; without `sync` only once the log is drained.

        Raises:
            StorageError: the disk refused; nothing was added.
        """
        record = LogRecord((move,), tuple(objects.items()))
        before = self._file.known
        self._file.append(record)
        try:
            if sync:
                self._file.sync()
        except BaseException:
            self._file.cut(before)
            raise
        self._absorb(record)

    def drain(self) -> None:
        """Puts the log into git and removes it, if there is one.

        Raises:
            BusyError, StorageError: the log stays, and nothing is lost.
        """
        if self._file.opened:
            try:
                drain(self._repository, [self._file], self._on_conflict)
            finally:
                self._forget_if_closed()

    def _forget_if_closed(self) -> None:
        if not self._file.opened:
            self._forget()

    def restart(self) -> None:
        """Drains the log, if there is one, and holds the next.

        Raises:
            BusyError, StorageError: as `drain`.
        """
        if self._file.opened:
            self.drain()
            self._file.acquire(timeout=self._timeout)
            self._notice_new_file()

    @contextmanager
    def drained(self) -> Iterator[None]:
        """Holds the log empty: git has everything, and no other process appends.

        Raises:
            BusyError, StorageError: the log could not be drained; nothing is lost.
        """
        with self.held(write=True):
            # Between draining it and holding it again another process may append.
            while not self._file.empty:
                self.restart()
            try:
                yield
            finally:
                self._file.remove()
