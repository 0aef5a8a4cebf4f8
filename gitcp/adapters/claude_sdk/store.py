"""The SDK's session store in a git repository: each append is a checkpoint."""

import datetime
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread
import msgspec
from claude_agent_sdk import fold_session_summary, project_key_for_directory

from gitcp import at_fork
from gitcp.adapters.claude_sdk import foreign, keys, records
from gitcp.adapters.claude_sdk.keys import MAIN, Key
from gitcp.errors import BusyError, GitFailedError, NotFoundError, StorageError
from gitcp.format import jsontext, layout, log
from gitcp.format.layout import LogName
from gitcp.format.log import Meta
from gitcp.names import encode
from gitcp.project.adapter_store import merge_packs, store_at, write
from gitcp.project.following import Following
from gitcp.store import logs
from gitcp.store.append import grow
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, NewRecords

if TYPE_CHECKING:
    import os

    from claude_agent_sdk import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
    )
    from claude_agent_sdk.types import SessionStoreListEntry, SessionSummaryEntry

T = TypeVar("T")

TRIGGER = "session-store"
_KIND = "claude-code"
_CONVERSATION = b"conversation"
# The summary is a page of text; where one is longer, it is made when asked for.
_SUMMARY_LIMIT = 256 * 1024
_MILLISECONDS = 1_000
_DELETE_ATTEMPTS = 20
_LOCKS = 64


class GitcpSessionStore:
    """Keeps the transcripts of Claude Agent SDK sessions in a git repository.

        store = GitcpSessionStore("transcripts.git")
        options = ClaudeAgentOptions(session_store=store)

    `path` is a git repository, or an empty or new directory, in which a bare one is made.
    It may be used from any number of processes, tasks and threads at once; every method
    does its work in a thread. An append has survived a power cut when it returns. A
    record that is there already, by its uuid, is not stored twice; one that comes again
    with another content takes the old one's place.

    A session that was made elsewhere (pulled, imported) is neither listed nor loaded, unless
    it came from a remote that the user trusts (`gitcp trust`), or `trust` is true. Then it
    is rebuilt from known fields, without permission modes, file histories and subagents.

    Raises:
        NotARepositoryError: the directory holds something else.
        UnsupportedRepositoryError: gitcp cannot serve the repository.
    """

    def __init__(self, path: "str | os.PathLike[str]", *, trust: bool = False) -> None:
        self._store = store_at(path)
        self._trust = trust
        self._following = Following(self._store.repository)
        self._seen = records.Seen(self._store.repository.form)
        self._reset_after_fork()
        at_fork.in_child(self, GitcpSessionStore._reset_after_fork)

    def __repr__(self) -> str:
        return f"<GitcpSessionStore {str(self._store.repository.git_dir)!r}>"

    def _reset_after_fork(self) -> None:
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))

    # --- what the SDK calls -------------------------------------------------------

    async def append(
        self, key: "SessionKey", entries: "list[SessionStoreEntry]"
    ) -> None:
        """Adds transcript records at the end, durably.

        Raises:
            UsageError: a record is not JSON, or the key is longer than 1,000 bytes.
            BusyError, BranchMovedError: other processes kept the session; transient.
            StorageError: the disk refused; nothing was added.
        """
        await _in_thread(lambda: self._append(key, entries))

    async def load(self, key: "SessionKey") -> "list[SessionStoreEntry] | None":
        """Returns all records, equal to what was appended; None if there are none.

        Raises:
            UsageError: the session was made elsewhere, and is not trusted.
            CorruptError: something stored is damaged.
        """
        return await _in_thread(lambda: self._load(key))

    async def list_sessions(self, project_key: str) -> "list[SessionStoreListEntry]":
        """Returns the sessions of a project: id and time of the last append in ms."""
        return await _in_thread(lambda: self._list(project_key))

    async def list_session_summaries(
        self, project_key: str
    ) -> "list[SessionSummaryEntry]":
        """Returns what `fold_session_summary` made of each session of a project."""
        return await _in_thread(lambda: self._summaries(project_key))

    async def delete(self, key: "SessionKey") -> None:
        """Deletes a session with all its subpaths and forks, or only one subpath.

        A session's refs go; git removes the bytes when it next prunes. Of a subpath the
        records go from here on; what they were stays in the session's own history until
        the session is deleted. Nothing but sessions of this store is ever deleted.

        Raises:
            BusyError: something kept a ref locked.
        """
        await _in_thread(lambda: self._delete(key))

    async def list_subkeys(self, key: "SessionListSubkeysKey") -> list[str]:
        """Returns the subpaths of a session that hold records."""
        return await _in_thread(lambda: self._subkeys(key))

    # --- and what it lacks ----------------------------------------------------------

    async def adopt(self, session_id: str, directory: str | None = None) -> int:
        """Makes a session of another directory resumable in this one.

        The SDK looks for sessions under a key made of the working directory: on another
        machine, or after a move, it finds none. This copies the session, with its
        subpaths, to the key of `directory` (the current one). Returns the number of
        records copied; 0 if they were there.

        Raises:
            NotFoundError: no project in this store has the session.
            UsageError: the session was made elsewhere, and is not trusted.
        """
        target = Key(project_key_for_directory(directory), session_id)
        return await _in_thread(lambda: self._adopt(target))

    # --- the same, in a thread --------------------------------------------------------

    def _append(self, key: "SessionKey", entries: "list[SessionStoreEntry]") -> int:
        self._following.now()
        where = Key(key["project_key"], key["session_id"])
        source = keys.source_of(key.get("subpath"))
        return self._add(where, source, entries)

    def _add(self, where: Key, source: str, entries: list[Any]) -> int:
        lines = records.lines_of(entries)
        if not lines:
            return 0
        fresh: list[records.Line] = []

        def draft(tip: Checkpoint | None) -> Draft | None:
            nonlocal fresh
            fresh = self._seen.new(where.name, source, tip, lines)
            if not fresh:
                return None
            added = [jsontext.decode(line.data) for line in fresh]
            return Draft(
                TRIGGER,
                records=(
                    NewRecords(
                        b"".join(line.data for line in fresh),
                        whole=False,
                        kind=_KIND,
                        source=source,
                        agent_session=_unicode(where.session),
                        beside=source != MAIN,
                    ),
                ),
                metadata=self._folded(where, tip, added) if source == MAIN else None,
            )

        # Of one session: its threads need not race for the ref.
        with self._locks[hash(where.name) % _LOCKS]:
            with write(self._store) as opened:
                saved = grow(self._store, opened, where.name, MAIN, draft)
            if saved is None:
                return 0
            self._seen.added(where.name, source, fresh)
        # The records are stored: housekeeping that fails must not deny that.
        with suppress(StorageError):
            merge_packs(self._store)
        return len(fresh)

    def _folded(
        self, where: Key, tip: Checkpoint | None, added: list[Any]
    ) -> msgspec.Raw:
        """Returns the metadata of the next checkpoint: the summary so far."""
        summary = _summary_in(tip)
        before = None
        if summary is not None:
            before = {"session_id": where.session, "mtime": 0, "data": summary}
        elif tip is not None:
            added = [*_stored(tip, MAIN), *added]
        key: Any = {"project_key": where.project, "session_id": where.session}
        folded = fold_session_summary(before, key, added)  # type: ignore[arg-type]
        raw = records.encode({"claude_agent_sdk": {"summary": folded["data"]}})
        if len(raw) > _SUMMARY_LIMIT:
            raw = b"null"
        return msgspec.Raw(raw)

    def _load(self, key: "SessionKey") -> "list[SessionStoreEntry] | None":
        name = Key(key["project_key"], key["session_id"]).name
        source = keys.source_of(key.get("subpath"))
        tip = self._store.tip(name, MAIN)
        if tip is None or not _holds(tip, source):
            return None
        if not foreign.is_foreign(tip):
            return _stored(tip, source)
        self._allowed().check(tip)
        return _rebuilt(tip, key["session_id"]) if source == MAIN else None

    def _allowed(self) -> foreign.Allowed:
        return foreign.Allowed(self._store, trust=self._trust)

    def _sessions(self, project: str | None) -> Iterator[tuple[Key, Checkpoint]]:
        """Yields the sessions that hold a main transcript; None for all projects."""
        prefix = keys.PREFIX if project is None else keys.project_prefix(project)
        start = "".join(map(_component, prefix))
        for branch, oid in self._store.refs().items():
            head = branch.session.partition("%%")[0]
            if branch.branch != MAIN or not (
                head.startswith(start) or start.startswith(head)
            ):
                continue
            key = keys.parse(self._store.names(branch, oid)[0])
            if key is None or (project is not None and key.project != project):
                continue
            tip = self._store.checkpoint(oid)
            if tip is not None and _holds(tip, MAIN):
                yield key, tip

    def _list(self, project: str) -> "list[SessionStoreListEntry]":
        allowed = self._allowed()
        return [
            {"session_id": key.session, "mtime": _mtime(tip)}
            for key, tip in self._sessions(project)
            if tip in allowed
        ]

    def _summaries(self, project: str) -> "list[SessionSummaryEntry]":
        allowed = self._allowed()
        return [
            {
                "session_id": key.session,
                "mtime": _mtime(tip),
                "data": data,
            }
            for key, tip in self._sessions(project)
            # The SDK makes the summary of one that is not in this list by itself.
            if tip in allowed and (data := _summary_in(tip)) is not None
        ]

    def _subkeys(self, key: "SessionListSubkeysKey") -> list[str]:
        tip = self._store.tip(Key(key["project_key"], key["session_id"]).name, MAIN)
        return [] if tip is None or foreign.is_foreign(tip) else list(_subpaths(tip))

    def _delete(self, key: "SessionKey") -> None:
        self._following.now()
        name = Key(key["project_key"], key["session_id"]).name
        subpath = key.get("subpath")
        if subpath:
            self._empty(name, keys.source_of(subpath))
            return
        # The main transcript last: while it is there the session can be seen.
        prefix = layout.session_prefix(name)
        refs = self._store.repository.refs
        for ref in sorted(refs.list(prefix), key=lambda one: one == f"{prefix}{MAIN}"):
            self._remove(ref)

    def _empty(self, name: str, source: str) -> None:
        def draft(tip: Checkpoint | None) -> Draft | None:
            if tip is None or not _holds(tip, source):
                return None
            nothing = NewRecords(
                b"", whole=True, kind=_KIND, source=source, beside=True
            )
            return Draft(TRIGGER, records=(nothing,))

        with write(self._store) as opened:
            grow(self._store, opened, name, MAIN, draft)

    def _remove(self, ref: str) -> None:
        """Removes a ref, also a packed one, whatever it points to meanwhile."""
        repository = self._store.repository
        failure: GitFailedError | None = None
        for _ in range(_DELETE_ATTEMPTS):
            oid = repository.refs.read(ref)
            if oid is None:
                return
            try:
                repository.refs.delete({ref: oid})
            except GitFailedError as exc:
                failure = exc
        assert failure is not None
        raise BusyError(
            f"{ref} cannot be deleted: {failure.message}",
            hint="another process is changing it; delete the session again",
        ) from failure

    def _adopt(self, target: Key) -> int:
        found = [
            (key, tip)
            for key, tip in self._sessions(None)
            if key.session == target.session and key != target
        ]
        if not found:
            if self._store.tip(target.name, MAIN) is not None:
                return 0
            raise NotFoundError(
                f"no project in this store has the session {target.session!a}",
                hint="`gitcp sessions` lists what there is; pull the session if it is"
                " missing",
            )
        allowed = self._allowed()
        wanted = [one for one in found if one[1] in allowed] or found
        _, tip = max(wanted, key=lambda one: _mtime(one[1]))
        if foreign.is_foreign(tip):
            allowed.check(tip)
            return self._add(target, MAIN, _rebuilt(tip, target.session))
        copied = self._add(target, MAIN, _stored(tip, MAIN))
        for subpath in _subpaths(tip):
            source = keys.source_of(subpath)
            copied += self._add(target, source, _stored(tip, source))
        return copied


def _stored(tip: Checkpoint, source: str) -> list[Any]:
    return records.read(tip.conversation(source), f"{source} in {tip.session}")


def _rebuilt(tip: Checkpoint, session: str) -> list[Any]:
    raw = foreign.rebuilt(tip, MAIN, session)
    return records.read(raw, f"{MAIN} in {tip.session}")


async def _in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)


def _component(character: str) -> str:
    """Returns what a character is in a ref, in the middle of a name."""
    return encode(f"x{character}")[1:]


def _unicode(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _meta(tip: Checkpoint, source: str) -> Meta | None:
    return logs.meta(tip.log_tree, LogName("conversation", source), tip.objects)


def _holds(tip: Checkpoint, source: str) -> bool:
    meta = _meta(tip, source)
    return meta is not None and meta.bytes > 0


def _subpaths(tip: Checkpoint) -> Iterator[str]:
    """Yields the subpaths that hold records."""
    read = tip.objects.tree
    if tip.log_tree is None or _CONVERSATION not in (top := read(tip.log_tree)):
        return
    for entry in read(top[_CONVERSATION].oid).values():
        raw = tip.objects.blob(read(entry.oid)[layout.META].oid)
        meta = log.decode_meta(raw, tip.id)
        subpath = keys.subpath_of(meta.name)
        if subpath is not None and meta.bytes:
            yield subpath


def _summary_in(tip: Checkpoint | None) -> dict[str, Any] | None:
    found = tip.metadata if tip is not None else None
    own = found.get("claude_agent_sdk") if isinstance(found, dict) else None
    summary = own.get("summary") if isinstance(own, dict) else None
    return summary if isinstance(summary, dict) else None


def _mtime(tip: Checkpoint) -> int:
    """Returns the time of the last append in ms since 1970."""
    moment = datetime.datetime.fromisoformat(tip.manifest.created)
    return round(moment.timestamp() * _MILLISECONDS)
