"""`GitcpSaver`: LangGraph's checkpointer interface over threads in git."""

import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.base import Checkpoint as GraphCheckpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from gitcp.adapters.langgraph import events
from gitcp.adapters.langgraph.async_saver import AsyncMethods
from gitcp.adapters.langgraph.classes import default_serializer
from gitcp.adapters.langgraph.events import Write
from gitcp.adapters.langgraph.index import ROOT
from gitcp.adapters.langgraph.removal import keep_latest, remove_runs
from gitcp.adapters.langgraph.snapshots import snapshots_of
from gitcp.adapters.langgraph.sqlite import take_over
from gitcp.adapters.langgraph.thread import Put, Thread, note_of
from gitcp.adapters.langgraph.threads import Threads
from gitcp.adapters.langgraph.tuples import (
    Address,
    config_of,
    list_tuples,
    named_tuple,
)
from gitcp.adapters.langgraph.versions import newest_version, next_version
from gitcp.errors import GitcpError, NotFoundError, UsageError
from gitcp.format.graph import PUT, EventHeader, GraphKey
from gitcp.project.adapter_store import store_at
from gitcp.store.checkpoint import Checkpoint


class GitcpSaver(AsyncMethods):
    """Keeps LangGraph's checkpoints in a git repository.

    `path` is a git repository, or an empty or new directory, in which a bare one is
    made. With `workspace`, a work tree of the same repository, each checkpoint holds the
    files as they were at the end of its step as well.

    Every method may be called from any thread, and from several processes. What `put`
    and `put_writes` have returned from survives `kill -9` and a power cut. It is in
    git's own refs a moment later: at once after `flush`, on `close`, at the end of a
    `with` block and of the process.

    Values are deserialized by `serde`. The default imports nothing: it rebuilds the types
    that LangGraph considers safe, and plain data (pydantic, dataclass, enum, NamedTuple)
    of classes that the program has loaded. Reading anything else raises
    `BlockedClassError`; `JsonPlusSerializer(allowed_msgpack_modules=[...])` allows it.

    A thread that was made elsewhere, or continues one, is not read unless it came from a
    remote that the user trusts (`gitcp trust`), or `trust` is true.

    Raises:
        NotARepositoryError: the directory holds something else.
        UnsupportedRepositoryError: gitcp cannot serve the repository.
        UsageError: `workspace` belongs to another repository.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        workspace: str | os.PathLike[str] | None = None,
        serde: SerializerProtocol | None = None,
        trust: bool = False,
    ) -> None:
        super().__init__(serde=serde or default_serializer())
        store = store_at(path)
        follower = snapshots_of(workspace, store) if workspace is not None else None
        self._threads = Threads(store, follower, trust=trust)
        # Clones share the engine, which starts again if one of them continues.
        self._finalizer = weakref.finalize(self, _close_quietly, self._threads)

    def __repr__(self) -> str:
        return f"<GitcpSaver {str(self._threads.repository.common_dir)!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- writing ------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: GraphCheckpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint, durably.

        Raises:
            BusyError: another process kept the thread's lock.
            StorageError: the disk refused; nothing was stored.
        """
        address = Address.of(config)
        key = GraphKey(address.namespace, checkpoint["id"])
        fields = dict(get_checkpoint_metadata(config, metadata))
        run = fields.get("run_id")
        header = EventHeader(
            PUT, key, address.ident, str(run) if run is not None else None
        )
        self._put(address.thread_id, header, dict(checkpoint), fields, new_versions)
        return config_of(address.thread_id, key)

    def _put(
        self,
        thread_id: str,
        header: EventHeader,
        checkpoint: dict[str, Any],
        metadata: dict[str, Any],
        new_versions: ChannelVersions,
    ) -> None:
        values = checkpoint.pop("channel_values")
        versions = checkpoint.get("channel_versions", {})
        thread = self._threads.thread(thread_id)
        follower = self._threads.follower
        newest = newest_version(versions)
        files = follower.of(newest) if follower is not None else None
        if follower is not None and files is None and new_versions:
            follower.missed()
        with thread.mutex:
            same = self._unchanged(thread, header, values, versions, new_versions)
            new = Put(
                header,
                events.pack(checkpoint, self.serde.dumps_typed),
                events.pack(metadata, self.serde.dumps_typed),
                list(values),
                {
                    name: self.serde.dumps_typed(value)
                    for name, value in values.items()
                    if name not in same
                },
                same,
                note_of(metadata),
                root=metadata.get("parents", {}).get(ROOT),
                files=files,
            )
            if follower is None:
                thread.put(new, None, lambda: None)
            elif thread.put(new, follower.base(), follower.anchor):
                # New files: their objects are kept from git's gc once a ref holds them.
                thread.drain()
                follower.published(newest)
        self._threads.drainer.note(thread)

    def _unchanged(
        self,
        thread: Thread,
        header: EventHeader,
        values: dict[str, Any],
        versions: ChannelVersions,
        new_versions: ChannelVersions,
    ) -> frozenset[str]:
        """Returns the channels that the parent holds in the same version."""
        if header.parent is None:
            return frozenset()
        before = thread.known(GraphKey(header.key.namespace, header.parent))
        if before is None:
            return frozenset()
        packed = before.event["checkpoint"]
        old = events.unpack(packed, self.serde.loads_typed).get("channel_versions", {})
        return frozenset(
            name
            for name in values
            if name in before.values
            and name in versions
            and name not in new_versions
            and old.get(name) == versions[name]
        )

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores what a task wrote, durably; again with the same task it changes nothing.

        Raises:
            BusyError: another process kept the thread's lock.
            StorageError: the disk refused; nothing was stored.
        """
        address = Address.of(config)
        key = GraphKey(address.namespace, str(address.ident))
        replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        rows = [
            Write(
                task_id,
                task_path,
                WRITES_IDX_MAP.get(channel, number),
                channel,
                self.serde.dumps_typed(value),
                replace,
            )
            for number, (channel, value) in enumerate(writes)
        ]
        thread = self._threads.thread(address.thread_id)
        follower = self._threads.follower
        thread.put_writes(key, rows, follower.base() if follower is not None else None)
        self._threads.drainer.note(thread)

    # --- reading ------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint a config names, or the newest; None if there is none.

        Raises:
            UsageError: it was made elsewhere, and is not trusted.
            CorruptError: what is stored is damaged.
        """
        return named_tuple(self._threads, config, self.serde.loads_typed)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yields checkpoints, greatest id first; without a config those of all threads.

        Raises:
            UsageError: the thread was made elsewhere, and is not trusted.
            CorruptError: what is stored is damaged.
        """
        return list_tuples(
            self._threads,
            config,
            self.serde.loads_typed,
            fields=filter,
            before=before,
            limit=limit,
        )

    # --- removing -----------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Removes a thread with all its checkpoints and writes.

        Raises:
            BusyError, StorageError, GitFailedError: a part of the thread may be left.
        """
        self._threads.thread(str(thread_id)).delete()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Removes the checkpoints that some runs have made, in all threads.

        Raises:
            DeltaChainError: a checkpoint that stays is rebuilt from one of them.
            BusyError, StorageError: some threads may have been done.
        """
        remove_runs(
            self._threads, {str(run) for run in run_ids}, self.serde.loads_typed
        )

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Makes a thread that begins as a copy of another; nothing is stored twice.

        Raises:
            UsageError: the target exists.
            BusyError, StorageError: some branches may have been copied.
        """
        source = self._threads.thread(str(source_thread_id))
        source.copy(self._threads.thread(str(target_thread_id)))

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Removes all but the newest checkpoint of each namespace, or (`delete`) all.

        Raises:
            DeltaChainError: the newest one is rebuilt from those before it.
            UsageError: there is no such strategy.
            BusyError, StorageError: some threads may have been done.
        """
        if strategy not in {"keep_latest", "delete"}:
            raise UsageError(
                f"there is no strategy {strategy!r}", hint="keep_latest, or delete"
            )
        if strategy == "delete":
            for thread_id in thread_ids:
                self.delete_thread(thread_id)
        else:
            keep_latest(self._threads, thread_ids, self.serde.loads_typed)

    # --- from elsewhere -----------------------------------------------------------

    def import_sqlite(self, path: str | os.PathLike[str]) -> int:
        """Takes over the threads of a `SqliteSaver` database; returns how many checkpoints.

        The database is only read, and no class that it names is imported. What is here
        already stays, so it can be done again.

        Raises:
            NotFoundError, UsageError: the file is not such a database.
            BusyError, StorageError: a part may have been stored.
        """
        return take_over(self._threads, path)

    # --- the store ----------------------------------------------------------------

    def flush(self) -> None:
        """Puts everything into git's refs now, for `git push` to find.

        Raises:
            BusyError, StorageError: some of it stays in the redo log, durable.
        """
        self._threads.drainer.flush()

    def close(self) -> None:
        """Flushes and stops working in the background; a later call starts it again.

        Raises:
            BusyError, StorageError: as `flush`.
        """
        self._threads.drainer.close()

    def compact(self) -> None:
        """Flushes and merges gitcp's packs into one: the smallest form on disk.

        Raises:
            BusyError, StorageError: as `flush`.
        """
        self._threads.drainer.compact()

    def checkpoint(self, config: RunnableConfig) -> Checkpoint:
        """Returns gitcp's own checkpoint behind a config: files, branch, number.

        It can be given to `Session.plan_restore` of the same repository.

        Raises:
            NotFoundError: the config names no checkpoint.
        """
        address = Address.of(config)
        thread = self._threads.thread(address.thread_id)
        self._threads.drainer.drain(thread)
        with thread.current() as index:
            named = address.node(index)
            checkpoint = self._threads.checkpoint(named[1].oid) if named else None
        if checkpoint is None:
            raise NotFoundError(
                f"thread {thread.thread_id!r} has no checkpoint {address.ident or ''}",
                hint="get_state_history of the graph lists them",
            )
        return checkpoint

    def get_next_version(
        self,
        current: str | float | None,
        channel: None,  # noqa: ARG002  LangGraph passes it
    ) -> Any:
        """Returns a version after `current`, and captures the files that belong to it.

        Called once between two steps, in the graph's own thread.

        Raises:
            UsageError: the thread has versions of another kind, and files are wanted.
        """
        follower = self._threads.follower
        if follower is not None and isinstance(current, int | float):
            raise UsageError(
                "this thread's channels have numbers as versions",
                hint="use it without workspace=, or begin a new thread",
            )
        version = next_version(current)
        if follower is not None:
            follower.snapshot(str(version))
        return version


def _close_quietly(threads: Threads) -> None:
    # At the end of the process: what is not settled stays in the log, durable.
    with suppress(GitcpError):
        threads.drainer.close()
