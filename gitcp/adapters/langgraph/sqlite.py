"""Imports the threads of a `SqliteSaver` database as they are.

Nothing is deserialized into objects: what a class was saved as stays bytes, so that no
class of the database is imported, and none that is not allowed later gets lost now.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import ormsgpack

from gitcp.adapters.langgraph import events
from gitcp.adapters.langgraph.events import Typed, Write
from gitcp.adapters.langgraph.thread import Put, Thread, note_of
from gitcp.adapters.langgraph.threads import Threads
from gitcp.errors import NotFoundError, UsageError
from gitcp.format.graph import PUT, EventHeader, GraphKey
from gitcp.wal.background import BYTES

_OPTIONS = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_REPLACE_SURROGATES
)
# Written by `json.dumps` and msgpack, whatever the serializer's own settings are.
_READ = {"msgpack", "json"}


class Row(NamedTuple):
    """One checkpoint of a database; `channels` are serialized."""

    thread_id: str
    key: GraphKey
    parent: str | None
    checkpoint: dict[str, Any]
    channels: dict[str, Typed]
    metadata: dict[str, Any]


def dump_raw(value: Any) -> Typed:
    """Serializes a value that `_load` has given, with the same bytes as it had."""
    if value is None:
        return "null", b""
    try:
        return "msgpack", ormsgpack.packb(value, option=_OPTIONS)
    except ormsgpack.MsgpackEncodeError as exc:
        raise UsageError(
            f"a value cannot be copied as it is: {exc}",
            hint="copy it with the serializer that wrote it: put() what list() yields",
        ) from exc


def _dump_json(value: Any) -> Typed:
    # The form of old releases; what it names is looked up by its own reader.
    return "json", json.dumps(value).encode()


class Database:
    """A database of `SqliteSaver` or `AsyncSqliteSaver`, opened for reading only.

    Raises:
        NotFoundError: there is no such file.
        UsageError: the file is not such a database.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        where = Path(path).absolute()
        if not where.is_file():
            raise NotFoundError(
                f"there is no file {where}", hint="name the database of the SqliteSaver"
            )
        self._name = str(where)
        self._connection = sqlite3.connect(f"{where.as_uri()}?mode=ro", uri=True)
        try:
            columns = self._connection.execute("PRAGMA table_info(writes)").fetchall()
            self._connection.execute("SELECT checkpoint FROM checkpoints LIMIT 1")
        except sqlite3.Error as exc:
            self.close()
            raise UsageError(
                f"{where} is not a database of a SqliteSaver: {exc}",
                hint="it has the tables `checkpoints` and `writes`",
            ) from exc
        # Databases from before 2026 have no paths of tasks.
        self._path = "task_path" if "task_path" in {row[1] for row in columns} else "''"

    def close(self) -> None:
        """Closes it."""
        self._connection.close()

    def rows(self) -> Iterator[Row]:
        """Yields the checkpoints of each thread, parents first.

        Raises:
            UsageError: a checkpoint is in a form that only its own serializer reads.
        """
        query = (
            "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id,"
            " type, checkpoint, metadata FROM checkpoints"
            " ORDER BY thread_id, checkpoint_id, checkpoint_ns"
        )
        with closing(self._connection.execute(query)) as rows:
            for thread, namespace, ident, parent, kind, raw, metadata in rows:
                checkpoint = self._load(kind, raw, ident)
                values = checkpoint.pop("channel_values", {})
                dump = _dump_json if kind == "json" else dump_raw
                yield Row(
                    thread,
                    GraphKey(namespace, ident),
                    parent or None,
                    checkpoint,
                    {name: dump(value) for name, value in values.items()},
                    json.loads(metadata) if metadata else {},
                )

    def _load(self, kind: str, raw: bytes, ident: str) -> dict[str, Any]:
        if kind not in _READ:
            raise UsageError(
                f"checkpoint {ident} in {self._name} is of type {kind!r}",
                hint="copy it with the serializer that wrote it: put() what list() yields",
            )
        loaded: dict[str, Any] = (
            json.loads(raw)
            if kind == "json"
            else ormsgpack.unpackb(
                raw, ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS
            )
        )
        return loaded

    def writes(self) -> Iterator[tuple[str, GraphKey, list[Write]]]:
        """Yields the pending writes of each task."""
        query = (
            "SELECT thread_id, checkpoint_ns, checkpoint_id, task_id,"  # noqa: S608
            f" {self._path}, idx, channel, type, value FROM writes"
            " ORDER BY thread_id, checkpoint_id, checkpoint_ns, task_id, idx"
        )
        last: tuple[str, GraphKey, str] | None = None
        held: list[Write] = []
        with closing(self._connection.execute(query)) as rows:
            for thread, space, ident, task, path, number, channel, kind, raw in rows:
                task_key = (thread, GraphKey(space, ident), task)
                if last is not None and task_key != last:
                    yield last[0], last[1], held
                    held = []
                last = task_key
                value = (kind or "null", raw or b"")
                held.append(Write(task, path, number, channel, value, replace=False))
        if last is not None:
            yield last[0], last[1], held


def take_over(threads: Threads, path: str | os.PathLike[str]) -> int:
    """Stores every checkpoint and write of a database; returns how many checkpoints.

    What is there already stays. It is durable on return, not before.

    Raises:
        NotFoundError, UsageError: there is no such database.
        BusyError, StorageError: a part may have been stored; it can be done again.
    """
    count = 0
    thread: Thread | None = None

    def switched(thread_id: str) -> Thread:
        if thread is not None and thread.thread_id == thread_id:
            return thread
        if thread is not None:
            threads.drainer.drain(thread)
        return threads.thread(thread_id)

    with closing(Database(path)) as database:
        for row in database.rows():
            thread = switched(row.thread_id)
            count += _take(thread, row)
            if thread.undrained > BYTES:
                threads.drainer.drain(thread)
        for thread_id, key, writes in database.writes():
            thread = switched(thread_id)
            thread.put_writes(key, writes, None, sync=False)
    if thread is not None:
        threads.drainer.drain(thread)
    return count


def _take(thread: Thread, row: Row) -> bool:
    with thread.current() as index:
        if row.key in index.nodes:
            return False
    run = row.metadata.get("run_id")
    header = EventHeader(
        PUT, row.key, row.parent, str(run) if run is not None else None
    )
    new = Put(
        header,
        events.pack(row.checkpoint, dump_raw),
        events.pack(row.metadata, dump_raw),
        list(row.channels),
        row.channels,
        frozenset(),
        note_of(row.metadata),
        root=(row.metadata.get("parents") or {}).get(""),
    )
    thread.put(new, None, lambda: None, sync=False)
    return True
