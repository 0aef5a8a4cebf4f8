"""Keeps the index of a thread up to date with its refs and its write-ahead log."""

from contextlib import suppress

from gitcp import durable
from gitcp.adapters.langgraph.index import Index
from gitcp.format import layout
from gitcp.format.commit import Commit, trailers_of
from gitcp.names import encode
from gitcp.store.store import Store
from gitcp.wal.client import LogClient
from gitcp.wal.log_file import LogRecord

# Reading so many commits again takes a few milliseconds.
_WORTH = 64


class CurrentIndex:
    """The index of one thread, on disk too; the caller holds the thread's log.

    The file is derived: losing it costs time.
    """

    def __init__(self, store: Store, session: str, log: LogClient) -> None:
        self.index = Index()
        repository = self._repository = store.repository
        self._prefix = layout.session_prefix(session)
        self._log = log
        self._file = repository.store_dir / "graph" / f"{encode(session)}.index"
        self._stored = 0
        # What was read: the log it was, and the state of the refs.
        self._signature: tuple[int, object] | None = None

    def refresh(self) -> None:
        """Indexes what other processes did since the last time.

        Raises:
            CorruptError: what is stored is damaged.
        """
        refs = self._repository.refs.signature(self._prefix)
        signature = (self._log.generation, refs)
        if signature != self._signature:
            self._read_refs()
            self._signature = signature
        for record in self._log.news():
            self._apply(record)

    def _tips(self) -> dict[str, bytes]:
        refs = self._repository.refs
        for name in refs.damaged(self._prefix):
            # Raises: what is not seen would be taken for deleted.
            refs.read(name)
        return {
            name.removeprefix(self._prefix): bytes.fromhex(oid)
            for name, oid in refs.list(self._prefix).items()
        }

    def _read_refs(self) -> None:
        tips = self._tips()
        if tips and not self.index.lines:
            self._load()
        gone = any(
            name not in tips and not self._is_moved(name) for name in self.index.lines
        )
        # All of them: `main` first, for forks begin there.
        moved = [not self._forward(name, tips[name]) for name in sorted(tips)]
        if not gone and not any(moved):
            return
        # Another process pruned, deleted or moved a branch. What the log still holds is
        # put beside it, and everything is read again.
        self._log.restart()
        self.forget()
        for name, tip in sorted(self._tips().items()):
            self._forward(name, tip)

    def _forward(self, name: str, tip: bytes) -> bool:
        """Indexes what is new on a branch; False if it did not only grow."""
        line = self.index.lines.get(name)
        if tip in self.index:
            if line is None:
                self.index.place(name, tip, self._log.commit(tip))
                return True
            return line.tip == tip or self._is_moved(name)
        fresh: list[tuple[bytes, Commit]] = []
        oid: bytes | None = tip
        while oid is not None and oid not in self.index:
            commit = self._log.commit(oid)
            if trailers_of(commit) is None:
                break
            fresh.append((oid, commit))
            oid = commit.parents[0] if commit.parents else None
        if line is not None and oid != line.tip:
            return False
        for new, commit in reversed(fresh):
            self.index.apply(new, commit, name)
        return True

    def _is_moved(self, name: str) -> bool:
        """Whether the write-ahead log moves a branch: its ref is behind."""
        return self._prefix + name in self._log.moves

    def _apply(self, record: LogRecord) -> None:
        for move in record.moves:
            oid = bytes.fromhex(move.new)
            if oid not in self.index:
                name = move.ref.rpartition("/")[2]
                self.index.apply(oid, self._log.commit(oid), name)

    # --- kept between processes -----------------------------------------------------

    def _load(self) -> None:
        """Loads the index that an earlier process stored; a commit of it may be gone."""
        with suppress(OSError):
            index = Index.load(self._file.read_bytes())
            if index is not None:
                self.index = index
                self._stored = len(index)

    def store(self) -> None:
        """Stores the index for the next process; without it, it reads every commit."""
        if len(self.index) - self._stored < _WORTH:
            return
        with suppress(OSError):
            self._repository.make_directory(self._file.parent)
            durable.replace(self._file, self.index.dump(), sync=False)
            self._stored = len(self.index)

    def forget(self) -> None:
        """Drops the index; the next refresh reads every commit."""
        self.index = Index()
        self._stored = 0
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
        self._signature = None
