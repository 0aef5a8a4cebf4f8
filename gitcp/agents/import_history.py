"""Imports the conversations that clients have on disk: one session each, without files.

The size of a transcript shows whether it was imported before, because clients only append to
it; what comes from a database or another document is compared. If it grew since then, its
session continues. Conversations that hooks save are left out.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp import progress
from gitcp.agents import bindings, resume
from gitcp.agents.bindings import Binding
from gitcp.agents.imported import Stored
from gitcp.agents.resume import Resumption
from gitcp.checkpoints import conversation, spoken_turns
from gitcp.checkpoints.first_line import brief
from gitcp.clients import history, registry
from gitcp.clients.client import Client, Event, Source, whole_lines
from gitcp.clients.history import Kept
from gitcp.errors import CorruptError, StorageError
from gitcp.format.checkpoint import IMPORT
from gitcp.git.consolidate import consolidate
from gitcp.git.transaction import transaction
from gitcp.project.workspace import MAIN, Workspace
from gitcp.store.append_dated import Dated, append_dated
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, NewRecords

_NOTE = 72
_LARGEST = 512 << 20
_LONGEST_LINE = 64 << 20
# Bytes of the beginning, which holds the first prompt, and of the end, which holds the last
# time.
_HEAD = 1 << 20
_TAIL = 1 << 18
# So many bytes are made durable at once: an interrupted run keeps the batches before.
_BATCH = 64 << 20
_AT_ONCE = 200
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class TakenIn(NamedTuple):
    """An imported conversation, and whether it continues a session imported before."""

    checkpoint: Checkpoint
    grew: bool


class Imported(NamedTuple):
    """The result of an import: conversations imported, and how many were here already.

    `left` lists what was left out, and why; `noted` lists flaws of imported conversations.
    """

    taken: tuple[TakenIn, ...]
    known: int
    left: tuple[str, ...]
    noted: tuple[str, ...]


class _Refused(Exception):  # noqa: N818  it never leaves this module
    """A transcript cannot be imported; the message says why."""


class _Waiting(NamedTuple):
    """A conversation that is going to be imported."""

    dated: Dated
    size: int
    grew: bool


def import_history(
    workspace: Workspace, agents: Sequence[str] = (), since: float | None = None
) -> Imported:
    """Imports the conversations that all or some clients keep of this project.

    `since` leaves out conversations without a message after it, in seconds since 1970.

    Raises:
        UsageError: there is no such client, or gitcp cannot read its conversations.
        StorageError: the disk refused; conversations imported before stay.
    """
    work = _Import(workspace)
    places = resume.place(workspace.top)
    roots = _roots(workspace)
    found: list[tuple[Client, Kept]] = []
    for name in agents or history.NAMES:
        client = registry.client(name)
        found += [
            (client, kept)
            for kept in history.find(name, places, roots, work.leave)
            if since is None or kept.changed >= since
        ]
    # Earlier conversations get lower numbers.
    found.sort(key=lambda one: (one[1].changed, one[1].session))
    report = progress.of("importing conversation")
    for number, (client, kept) in enumerate(found):
        if report is not None:
            report(number, len(found))
        work.take(client, kept, since)
    work.write()
    if work.taken:
        # The import has succeeded, even if housekeeping fails.
        with suppress(StorageError):
            consolidate(workspace.repository)
    return Imported(tuple(work.taken), work.known, tuple(work.left), tuple(work.noted))


class _Import:
    """Imports one conversation after the other, and makes many of them durable at once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._waiting: list[_Waiting] = []
        self._stored = Stored(workspace.store)
        self.taken: list[TakenIn] = []
        self.known = 0
        self.left: list[str] = []
        self.noted: list[str] = []

    def leave(self, what: str, why: str) -> None:
        """Notes a conversation that is not imported, and why."""
        self.left.append(f"{what}: {why}")

    def take(self, client: Client, kept: Kept, since: float | None) -> None:
        """Imports a conversation, if it is not here."""
        try:
            last = self._stored.last(client.name, kept.session)
            known = self._is_known(client, kept, last)
        except CorruptError as exc:
            self.leave(str(kept.path), f"its session is damaged: {exc.message}")
            return
        if known:
            self.known += 1
            return
        held = last.manifest.conversation if last is not None else None
        try:
            records = self._records(client, kept)
        except _Refused as exc:
            self.leave(str(kept.path), str(exc))
            return
        if records is None:
            return
        main = records[0].data
        if held is not None and not kept.sources and held.bytes == len(main):
            self.known += 1
            return
        when = min(_last_time(main) or kept.changed, time.time())
        if since is not None and when < since:
            return
        if broken := _broken(main):
            self.noted.append(
                f"{kept.path}: {broken} of its lines are not JSON objects"
            )
        grown = self._stored.growing(client.name, kept.session)
        session = grown or self._stored.new_name(client.name, kept.session)
        draft = Draft(
            IMPORT,
            note=_title(main),
            records=records,
            elsewhere=True,
            quiet=False,
        )
        size = sum(len(one.data) for one in records)
        waiting = _Waiting(Dated(session, MAIN, draft, when), size, grown is not None)
        self._waiting.append(waiting)
        if (
            len(self._waiting) >= _AT_ONCE
            or sum(each.size for each in self._waiting) > _BATCH
        ):
            self.write()

    def write(self) -> None:
        """Makes the conversations taken so far durable."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        with transaction(self._workspace.repository) as txn:
            made = append_dated(
                self._workspace.store, txn, [each.dated for each in waiting]
            )
        self.taken += [
            TakenIn(made[each.dated.session], each.grew)
            for each in waiting
            if each.dated.session in made
        ]

    def _is_known(self, client: Client, kept: Kept, last: Checkpoint | None) -> bool:
        """Whether hooks save a conversation, or it has not grown since `last` imported it."""
        held = last.manifest.conversation if last is not None else None
        if last is not None and held is not None:
            if last.trigger == IMPORT and kept.sources:
                return _holds(last, held.source, kept.sources)
            return last.trigger != IMPORT or held.bytes == kept.size
        if (client.name, kept.session) in self._stored:
            return True
        bound = bindings.find(self._workspace, client.name, kept.session)
        return bound is not None and _is_theirs(bound, kept)

    def _records(self, client: Client, kept: Kept) -> tuple[NewRecords, ...] | None:
        """Returns the records to store of a conversation; None if it has no messages.

        Raises:
            _Refused: it cannot be imported.
        """
        event = Event(IMPORT, kept.session, "/", transcript=kept.path)
        source = f"{client.name}-{kept.session}"
        found: list[NewRecords] = []
        for one in kept.sources or client.sources(event):
            name = f"{source}/{one.name}" if one.name else source
            try:
                raw = _content(one)
            except _Refused as exc:
                if not one.name:
                    raise
                self.leave(str(one.path), str(exc))
                continue
            lines = not one.name or name.endswith(".jsonl")
            data = whole_lines(raw) if lines else raw
            if not one.name and not client.has_messages(data):
                if broken := _broken(data):
                    raise _Refused(
                        f"no message can be read; {broken} lines are not JSON"
                    )
                return None
            if data:
                found.append(
                    NewRecords(
                        data,
                        whole=True,
                        kind=client.name,
                        source=name,
                        agent_session=kept.session,
                        beside=bool(one.name),
                    )
                )
        return tuple(found) or None


def where_it_is(workspace: Workspace, checkpoint: Checkpoint) -> Resumption | None:
    """Returns how to continue a conversation that has not changed since it was imported.

    None if its client has continued it since, or it is gone. Writes nothing.
    """
    held = checkpoint.manifest.conversation
    if held is None or checkpoint.trigger != IMPORT or held.kind not in history.NAMES:
        return None
    client = registry.client(held.kind)
    places, roots = resume.place(workspace.top), _roots(workspace)
    for kept in history.find(held.kind, places, roots, lambda *_: None):
        if kept.session == held.agent_session and kept.size == held.bytes:
            directory = resume.kept(workspace, checkpoint).directory
            command = (*client.resuming, kept.session)
            return Resumption(client.name, kept.session, command, directory)
    return None


def _holds(
    checkpoint: Checkpoint, conversation: str, sources: Sequence[Source]
) -> bool:
    """Whether a checkpoint has the messages of all sources as they are.

    What describes a session changes with each look that its client takes.
    """
    return all(
        checkpoint.conversation(f"{conversation}/{one.name}" if one.name else None)
        == one.content
        for one in sources
        if not one.name or one.name.endswith(".jsonl")
    )


def _is_theirs(bound: Binding, kept: Kept) -> bool:
    """Whether hooks save a conversation, or it is an unused copy that gitcp wrote."""
    if bound.session is None:
        return False
    if bound.transcript is not None or kept.sources:
        return True
    written = bound.written.get(str(kept.path))
    with suppress(_Refused):
        raw = _content(Source("", kept.path))
        return written == hashlib.sha256(raw).hexdigest()
    return False


def _roots(workspace: Workspace) -> list[Path]:
    """Returns the real paths of the repository's work trees."""
    roots = [workspace.top]
    linked = workspace.repository.common_dir / "worktrees"
    for pointer in sorted(linked.glob("*/gitdir")):
        with suppress(OSError, UnicodeError):
            roots.append(Path(pointer.read_text().strip()).parent)
    main = workspace.repository.common_dir
    if main.name == ".git":
        roots.append(main.parent)
    return list(dict.fromkeys(Path(os.path.realpath(root)) for root in roots))


def _content(one: Source) -> bytes:
    """Returns the present content of a conversation; its client may be writing to it.

    Raises:
        _Refused: the conversation cannot be imported.
    """
    if one.path is None:
        return one.content or b""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(one.path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _Refused("not a regular file")
            if status.st_size > _LARGEST:
                raise _Refused(f"is larger than {_LARGEST >> 20} MiB")
            raw = file.read(status.st_size)
    except OSError as exc:
        raise _Refused(f"cannot be read: {exc.strerror}") from exc
    if any(len(line) > _LONGEST_LINE for line in _lines(raw)):
        raise _Refused(f"has a line of more than {_LONGEST_LINE >> 20} MiB")
    return raw


def _lines(raw: bytes) -> Iterator[memoryview]:
    """Yields the lines without copying them."""
    view, at = memoryview(raw), 0
    while at < len(raw):
        end = raw.find(b"\n", at)
        end = len(raw) if end < 0 else end
        yield view[at:end]
        at = end + 1


def _broken(raw: bytes) -> int:
    """Returns how many lines are not JSON objects."""
    broken = 0
    for line in _lines(raw):
        try:
            if line:
                _OBJECT.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            broken += 1
    return broken


def _title(raw: bytes) -> str | None:
    """Returns the first prompt of a conversation."""
    turns = spoken_turns.turns(raw[: raw.rfind(b"\n", 0, _HEAD) + 1])
    asked = next((turn.prompt for turn in turns if turn.prompt), None)
    return brief(asked, _NOTE) if asked else None


def _last_time(raw: bytes) -> float | None:
    """Returns the time of the last record that has one."""
    end = raw[max(0, len(raw) - _TAIL) :]
    for _, value in conversation.records_backwards(end):
        at = spoken_turns.time_of(value) if isinstance(value, dict) else None
        if at is not None and at > 0:
            return at
    return None
