"""One thread of LangGraph as a session of gitcp (docs/format.md, 15)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from gitcp.adapters.langgraph import events
from gitcp.adapters.langgraph.builder import EventCommit, EventCommitBuilder
from gitcp.adapters.langgraph.current_index import CurrentIndex
from gitcp.adapters.langgraph.events import Typed, Write
from gitcp.adapters.langgraph.index import Index, IndexedCheckpoint
from gitcp.adapters.langgraph.origins import Origins
from gitcp.adapters.langgraph.reader import StoredCheckpoint, ThreadReader
from gitcp.adapters.langgraph.values import Value, encode_value
from gitcp.errors import CorruptError, UsageError
from gitcp.format import layout
from gitcp.format.checkpoint import Base
from gitcp.format.commit import parse_commit
from gitcp.format.graph import (
    WRITES,
    EventHeader,
    GraphKey,
    decode_header,
    encode_header,
)
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.names import decode, encode
from gitcp.store.aside import keep_aside
from gitcp.store.builder import Extra
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import FORK, FilesState
from gitcp.store.relink import Relink, copy_branches, delete_branches
from gitcp.store.store import Store
from gitcp.trust.trusted_remotes import Pulled
from gitcp.wal.client import LogClient
from gitcp.wal.log_file import RefMove
from gitcp.wal.record_sink import RecordSink

MAIN = "main"


class Put(NamedTuple):
    """A checkpoint to store; the parts are packed by the caller.

    `values` holds what has to be stored again; the channels in `same` are as they are
    in the parent. `root` is the root checkpoint that one of a subgraph belongs to.
    """

    header: EventHeader
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    order: Sequence[str]
    values: Mapping[str, Typed]
    same: frozenset[str]
    note: str
    root: str | None = None
    files: FilesState | None = None


class Thread:
    """One thread: reads and appends. Every public method may be called by any thread."""

    def __init__(
        self, store: Store, thread_id: str, session: str, pulled: Pulled
    ) -> None:
        self._store = store
        self.thread_id = thread_id
        self.session = session
        self.log = LogClient(store.repository, encode(session), keep_aside)
        self.mutex = self.log.mutex
        self.reader = ThreadReader(self.log)
        self._current = CurrentIndex(store, session, self.log)
        self._origins = Origins(store, self.reader, self.log, session, pulled)
        self._builder = EventCommitBuilder(
            store, self.reader, session, thread_id, self._origins
        )
        self._made_here: set[bytes] = set()

    @property
    def index(self) -> Index:
        """The index as it was last read."""
        return self._current.index

    @contextmanager
    def current(self, *, write: bool = False) -> Iterator[Index]:
        """Holds the thread's lock, with the index as the disk has it.

        Raises:
            BusyError: another process kept the lock.
            CorruptError: what is stored is damaged.
        """
        with self.log.held(write=write):
            self._current.refresh()
            yield self.index

    def _forget(self) -> None:
        """Drops all that was learnt; the next call reads it again."""
        self._current.forget()
        self.reader.forget()
        self._made_here.clear()

    # --- reading --------------------------------------------------------------------

    def known(self, key: GraphKey) -> StoredCheckpoint | None:
        """Returns a checkpoint as it is stored; None if there is none."""
        node = self.index.nodes.get(key)
        if node is None:
            with self.current():
                node = self.index.nodes.get(key)
        return self.reader.state(key, node) if node is not None else None

    def writes(self, key: GraphKey) -> list[Write]:
        """Returns the pending writes of a checkpoint, in the order they take effect."""
        writes: dict[tuple[str, int], Write] = {}
        for oid in self.index.writes.get(key, ()):
            for write in self.reader.writes(oid):
                slot = (write.task, write.number)
                if write.replace or slot not in writes:
                    writes[slot] = write
        return sorted(
            writes.values(), key=lambda write: (write.path, write.task, write.number)
        )

    def elsewhere(self, key: GraphKey) -> Iterator[bytes]:
        """Yields the commits of a checkpoint and its writes that were not made here.

        Nor are those that carry on what was not. Of one that git does not have yet, it is
        the one before that.
        """
        for oid in (self.index.nodes[key].oid, *self.index.writes.get(key, ())):
            if oid not in self._made_here:
                doubt = self._origins.doubt(oid, self.index)
                if doubt is not None:
                    yield self._settled(doubt)
                else:
                    self._made_here.add(oid)

    def _settled(self, oid: bytes) -> bytes:
        while oid in self.reader.logged and (parents := self.log.commit(oid).parents):
            oid = parents[0]
        return oid

    # --- appending ------------------------------------------------------------------

    def put(
        self,
        new: Put,
        base: Base | None,
        anchor: Callable[[], str | None],
        *,
        sync: bool = True,
    ) -> bool:
        """Stores a checkpoint and returns whether it has other files.

        It is durable on return; without `sync` once the thread is settled.

        Raises:
            BusyError, StorageError: the checkpoint is not stored.
        """
        header = new.header
        with self.current(write=True) as index:
            sink = RecordSink(self.log.objects, self._store.repository.form)
            above = self._above(header)
            before = self.reader.state(*above) if above is not None else None
            if before is None and new.same:
                raise CorruptError(
                    f"the parent {header.parent} of {header.key.ident} was removed"
                    " meanwhile",
                    hint="run the step again",
                )
            values = self._values(new, before, sink)
            event = events.encode_put(
                self.thread_id, header, new.checkpoint, new.metadata, values
            )
            channels = {
                encode(name).encode(): Entry(DIRECTORY, value.tree)
                for name, value in values.items()
                if value.tree is not None
            }
            line, start = index.line_of_put(header, new.root)
            branch, seq, parent = self._place(header, line, start)
            held = None
            if parent is not None:
                held = self.reader.manifest(parent).files.tree
            commit = EventCommit(
                header,
                new.note,
                branch,
                seq,
                parent,
                {layout.EVENT: Entry(FILE, sink.add_blob(event))},
                channels,
                new.files,
                base,
                above[1].oid if above is not None else None,
            )
            oid = self._append(sink, commit, anchor, sync=sync)
            state = StoredCheckpoint(
                events.decode_event(event, header.key.ident), values
            )
            self.reader.keep(header.key, oid, state)
        tree = new.files.tree if new.files is not None else None
        return tree is not None and tree.hex() != held

    def _above(self, header: EventHeader) -> tuple[GraphKey, IndexedCheckpoint] | None:
        if header.parent is None:
            return None
        key = GraphKey(header.key.namespace, header.parent)
        node = self.index.nodes.get(key)
        return (key, node) if node is not None else None

    def _values(
        self, new: Put, before: StoredCheckpoint | None, sink: RecordSink
    ) -> dict[str, Value]:
        values = {}
        old = before.values if before is not None else {}
        for name in new.order:
            if name in new.same:
                values[name] = old[name]
            else:
                kind, data = new.values[name]
                values[name] = encode_value(name, kind, data, old.get(name), sink)
        return values

    def put_writes(
        self,
        key: GraphKey,
        writes: Sequence[Write],
        base: Base | None,
        *,
        sync: bool = True,
    ) -> None:
        """Stores pending writes; they are durable as in `put`.

        Raises:
            BusyError, StorageError: the writes are not stored.
        """
        with self.current(write=True) as index:
            have = {(write.task, write.number) for write in self.writes(key)}
            fresh = [
                write
                for write in writes
                if write.replace or (write.task, write.number) not in have
            ]
            if not fresh:
                return
            header = EventHeader(WRITES, key, None, None)
            sink = RecordSink(self.log.objects, self._store.repository.form)
            event, data = events.encode_writes(self.thread_id, header, fresh)
            graph = {layout.EVENT: Entry(FILE, sink.add_blob(event))}
            if data:
                graph[layout.WRITES] = Entry(FILE, sink.add_blob(data))
            names = ", ".join(dict.fromkeys(write.channel for write in fresh))
            branch, seq, parent = self._place(header, index.line_of_writes(key), None)
            commit = EventCommit(
                header, f"writes: {names}", branch, seq, parent, graph, None, None, base
            )
            self._append(sink, commit, lambda: None, sync=sync)

    def _place(
        self, header: EventHeader, component: str | None, start: bytes | None
    ) -> tuple[str, int, bytes | None]:
        """Returns branch, number and parent of the next commit on a line, or a new one."""
        if component is not None:
            line = self.index.lines[component]
            name = decode(component) or self.reader.manifest(line.tip).branch
            return name, line.seq + 1, line.tip
        if not self.index.lines:
            return MAIN, 1, None
        name = base = f"fork-{header.key.ident[:13].lower()}"
        number = 1
        while encode(name) in self.index.lines:
            number += 1
            name = f"{base}-{number}"
        return name, 1, start

    def _append(
        self,
        sink: RecordSink,
        commit: EventCommit,
        anchor: Callable[[], str | None],
        *,
        sync: bool,
    ) -> bytes:
        oid, raw = self._builder.commit(sink, commit, anchor)
        expect = (
            commit.parent.hex()
            if commit.parent is not None and commit.seq > 1
            else None
        )
        move = RefMove(
            layout.branch_ref(self.session, commit.branch), expect, oid.hex()
        )
        self.log.append(move, sink.objects, sync=sync)
        self.index.apply(oid, parse_commit(raw, len(oid)), encode(commit.branch))
        return oid

    # --- housekeeping ---------------------------------------------------------------

    def remove(self, chosen: Callable[[Index], set[GraphKey]]) -> None:
        """Takes checkpoints and their writes out of history, for good.

        The rest is made again, with the same trees: commit ids change. What was
        removed is gone once git's gc has run.

        Raises:
            BusyError, StorageError: some branches may have been done.
        """
        with self.current() as index:
            if not chosen(index):
                return
        with self.current(write=True) as index:
            gone = chosen(index)
            self.log.drain()

            def is_gone(checkpoint: Checkpoint) -> bool:
                header = decode_header(checkpoint.raw)
                # A fork without an event holds a copy of what may be going.
                return header.key in gone if header else checkpoint.trigger == FORK

            def vouches(checkpoint: Checkpoint) -> bool:
                return self._origins.vouches(checkpoint.oid, index)

            Relink(self._store, self.session, is_gone, _header, vouches).run()
            self._forget()

    def delete(self) -> None:
        """Removes the whole thread.

        Raises:
            BusyError, StorageError, GitFailedError: a part of the thread may be there.
        """
        with self.current(write=True):
            self.log.drain()
            delete_branches(self._store, self.session)
            self._forget()

    def copy(self, target: "Thread") -> None:
        """Makes another thread that begins where this one is.

        Raises:
            UsageError: the other one exists.
            BusyError, StorageError: a part of the thread may be there.
        """
        # In one order, so that two copies in opposite directions do not wait for ever.
        first, second = sorted((self, target), key=lambda thread: thread.session)
        with first.current(write=True), second.current(write=True):
            if target.index.lines:
                raise UsageError(
                    f"the thread {target.thread_id!r} exists",
                    hint="delete it first, or choose another name",
                )
            self.log.drain()
            about = msgspec.Raw(msgspec.json.encode({"thread_id": target.thread_id}))
            copy_branches(self._store, self.session, target.session, about)
            target.log.drain()

    @property
    def label(self) -> str:
        """The name for warnings."""
        return f"the thread {self.thread_id!r}"

    @property
    def undrained(self) -> int:
        """The number of bytes that this process knows of and git does not have yet."""
        return self.log.size

    def drain(self) -> None:
        """Puts the write-ahead log into git.

        Raises:
            BusyError, StorageError: the log stays, and nothing is lost.
        """
        with self.current():
            self.log.drain()
            self._current.store()


def _header(checkpoint: Checkpoint) -> Extra:
    header = decode_header(checkpoint.raw)
    return (encode_header(header),) if header is not None else ()


def note_of(metadata: Mapping[str, Any]) -> str:
    """Returns what `gitcp log` shows of a checkpoint: its source and step."""
    words = [
        metadata[name] for name in ("source", "step") if metadata.get(name) is not None
    ]
    return " ".join(map(str, words)) or "checkpoint"
