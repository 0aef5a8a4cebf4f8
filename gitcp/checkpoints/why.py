"""Finds the turn that wrote each line of a file, and what was decided in it."""

import bisect
import datetime
import functools
import itertools
import os
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Literal, NamedTuple

from gitcp.checkpoints.beside import Beside, Span
from gitcp.checkpoints.diff import new_entries
from gitcp.checkpoints.file_history import FileHistory, FileVersion
from gitcp.checkpoints.history import prompt_of
from gitcp.checkpoints.turns import ENDS, INNER, Row, rows
from gitcp.checkpoints.whose import Whose
from gitcp.clients.triggers import TURN_END, TURN_START
from gitcp.errors import (
    CorruptError,
    GitcpError,
    GitFailedError,
    NotFoundError,
    TransferError,
    UsageError,
)
from gitcp.format.checkpoint import show_path, timestamp
from gitcp.format.log import Decision
from gitcp.format.numbers import Assigned
from gitcp.git import reflog
from gitcp.git.blame import commits_of, first_appearances
from gitcp.git.objects import IN_MEMORY
from gitcp.git.own_file import read_regular
from gitcp.git.paths_at import blobs_at
from gitcp.names import quoted
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint

By = Literal["agent", "hand", "unknown"]

# Triggers of checkpoints made in a turn, or at the moment when the agent begins.
_OF_AGENT = (INNER | ENDS) - {TURN_START}
# Other triggers, of checkpoints with files as people, or their git, left them.
_BY_HAND = frozenset({TURN_START, "manual", "commit", "before-restore"})
# How far back the log of HEAD is read, if git has to be asked for it.
_MOVES = 10_000
_COMMITTED = re.compile(rb"^[0-9a-f]+ ([0-9a-f]+) .*\tcommit\b", re.MULTILINE)
# How long a turn without an end counts as running.
_RUNS_ON = datetime.timedelta(hours=12)


class Origin(NamedTuple):
    """The origin of lines: the checkpoint in which they first appear, and why it was made.

    `by` is `agent` if a turn wrote them, `hand` if they existed before the next turn began
    or when a person saved, and otherwise `unknown`. `prompt` is the turn's prompt,
    `decisions` the entries recorded meanwhile. `beside` are the numbers of other turns
    that may have written them, as they ran at the same time. `first` says that it is the
    first checkpoint of all: the lines are older.
    """

    checkpoint: Checkpoint
    entry: Assigned
    by: By
    prompt: str | None = None
    decisions: tuple[Decision, ...] = ()
    beside: tuple[int, ...] = ()
    first: bool = False

    @property
    def agent(self) -> str | None:
        """The client whose turn it was, by its name, or None."""
        held = self.checkpoint.manifest.conversation
        return held.kind if self.by == "agent" and held is not None else None


class Line(NamedTuple):
    """A line of a file, counted from 1; `origin` is None if no checkpoint has it.

    `commit` is the commit of the project that brought it, None if it is in none.
    """

    number: int
    text: bytes
    origin: Origin | None
    commit: str | None


def why(
    workspace: Workspace, path: bytes, lines: tuple[int, int] | None = None
) -> list[Line]:
    """Returns the lines of a file, or some of them, each with where it comes from.

    Reads the file on disk or, if it is gone, the one in the newest checkpoint.

    Raises:
        NotFoundError: the path is neither on disk nor in the newest checkpoint.
        UsageError: the file does not have these lines, or is not text.
    """
    history = FileHistory(workspace.store, workspace.repository)
    versions = history.of(path, workspace.store.numbers.place)
    content = _content(workspace, path, versions)
    texts = content.removesuffix(b"\n").split(b"\n") if content else []
    first, last = lines or (1, len(texts))
    if not 1 <= first <= last <= len(texts) and (lines or texts):
        raise UsageError(
            f"{show_path(path)} has {len(texts)} lines", hint="name lines that it has"
        )
    if not texts:
        return []
    where = workspace.repository, path, content, (first, last)
    with ExitStack() as stack:
        commits: list[str | None] = [None] * (last - first + 1)
        found: Callable[[], list[str | None]] | None = None
        with suppress(GitFailedError, CorruptError):
            found = stack.enter_context(commits_of(*where))
        known = _known(workspace, history, versions, path, content, (first, last))
        if found is not None:
            with suppress(GitFailedError):
                commits = found()
    return [
        Line(number, texts[number - 1], origin, commit)
        for number, origin, commit in zip(
            range(first, last + 1), known, commits, strict=True
        )
    ]


def _known(
    workspace: Workspace,
    history: FileHistory,
    versions: list[FileVersion],
    path: bytes,
    content: bytes,
    lines: tuple[int, int],
) -> "list[Origin | None]":
    origins = _Origins(workspace, history, versions)
    found = first_appearances(
        workspace.repository,
        [one.version for one in versions],
        content,
        lines,
        # Do this while git still searches for the next line.
        meanwhile=origins.of,
    )
    known = [None if at is None else origins.of(at) for at in found]
    if any(one is None or one.by == "unknown" for one in known):
        known = _of_others(workspace, history, path, content, lines, known)
    return known


def _of_others(
    workspace: Workspace,
    history: FileHistory,
    path: bytes,
    content: bytes,
    lines: tuple[int, int],
    known: "list[Origin | None]",
) -> "list[Origin | None]":
    """Returns the origins of lines; unknown ones are looked up in what others saved.

    Git brought these lines from another work tree, or from the authors of pulled sessions.
    """
    versions, tips = history.among_others(path, workspace.store.numbers.place)
    if not tips:
        return known
    origins = _Origins(workspace, history, versions)
    found = first_appearances(
        workspace.repository,
        [one.version for one in versions],
        content,
        lines,
        tips=tips,
        meanwhile=lambda _: None,
    )
    return [
        _better(origin, None if at is None else origins.of(at))
        for origin, at in zip(known, found, strict=True)
    ]


def _better(origin: "Origin | None", other: "Origin | None") -> "Origin | None":
    """Returns the origin of a line known here, unless another work tree knows more."""
    if origin is None or (
        origin.by == "unknown" and other is not None and other.by != "unknown"
    ):
        return other
    return origin


def _content(
    workspace: Workspace, path: bytes, versions: Sequence[FileVersion]
) -> bytes:
    name = show_path(path)
    data: bytes | None = None
    with suppress(FileNotFoundError, NotADirectoryError):
        data = _on_disk(workspace, path)
    if data is None:
        if not versions:
            raise NotFoundError(
                f"{name} is neither here nor in the newest checkpoint",
                hint=f"`gitcp log -- {quoted(name)}` lists what changed it",
            )
        blob = versions[-1].version.blob
        data = b"".join(workspace.repository.objects.content(blob))
    if b"\0" in data:
        raise UsageError(f"{name} has no lines: it is no text", hint="name a text file")
    return data


def _on_disk(workspace: Workspace, path: bytes) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(os.path.join(os.fsencode(workspace.top), path), flags)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as exc:
        raise UsageError(
            f"{show_path(path)} cannot be read: {exc.strerror}",
            hint="name a file, not a link to one",
        ) from exc
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > IN_MEMORY:
            raise UsageError(
                f"{show_path(path)} is no file of up to {IN_MEMORY >> 20} MB",
                hint="name a text file",
            )
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


class _Origins:
    """Finds the origin of each version of a file, once."""

    def __init__(
        self, workspace: Workspace, history: FileHistory, versions: list[FileVersion]
    ) -> None:
        self._workspace = workspace
        self._store = workspace.store
        self._versions = versions
        self._found: dict[int, Origin | None] = {}
        self._checkpoints: dict[str, Checkpoint | None] = {}
        self._whose = Whose(workspace.store, Beside(workspace.store))
        self._turns: dict[int, Row] = {}
        # Checkpoints of a work tree that were made while an agent was at work there.
        self._meanwhile: set[int] = set()
        for place in {entry.place for entry in history.entries}:
            self._note([one for one in history.entries if one.place == place])

    def _note(self, entries: list[Assigned]) -> None:
        """Notes the turns of a work tree, by all their numbers."""
        for row in rows(reversed(entries)):
            if not row.is_turn:
                continue
            for entry in row.entries:
                self._turns[entry.number] = row
            until = row.last.created
            if row.last.trigger != TURN_END:
                later = datetime.datetime.fromisoformat(until) + _RUNS_ON
                until = timestamp(later.timestamp())
            start = bisect.bisect(entries, row.first.number, key=lambda one: one.number)
            for entry in itertools.islice(entries, start, None):
                over = entry.key == row.last.key and entry.number > row.last.number
                if over or entry.created > until:
                    break
                self._meanwhile.add(entry.number)

    def of(self, at: int) -> Origin | None:
        if at not in self._found:
            self._found[at] = self._look(self._versions[at])
        return self._found[at]

    def _look(self, one: FileVersion) -> Origin | None:
        checkpoint = self._checkpoint(one.entry.commit)
        if checkpoint is None:
            return None
        if one.before is None:
            return Origin(checkpoint, one.entry, "unknown", first=True)
        changers = self._changers(one)
        if one.entry.trigger in _OF_AGENT or changers:
            return self._by_agent(one, checkpoint, changers)
        by_hand = (
            one.entry.trigger in _BY_HAND
            and one.entry.number not in self._meanwhile
            and not self._by_git(one, checkpoint)
        )
        decisions = self._decided(checkpoint, checkpoint)
        by: By = "hand" if by_hand else "unknown"
        return Origin(checkpoint, one.entry, by, decisions=decisions)

    def _checkpoint(self, commit: str) -> Checkpoint | None:
        """Returns the checkpoint in a commit; cached, because most are needed several times."""
        if commit not in self._checkpoints:
            self._checkpoints[commit] = self._store.checkpoint(commit)
        return self._checkpoints[commit]

    def _by_agent(
        self, one: FileVersion, checkpoint: Checkpoint, changers: list[Span]
    ) -> Origin:
        """Returns the turn that wrote a version, also where others ran beside it."""
        entry = one.entry
        turn = self._turns.get(entry.number)
        own = turn.last.number if turn else entry.number
        if changers and own not in {each.last.number for each in changers}:
            # Nothing else is known of it than its turn.
            entry = changers.pop(0).last
            checkpoint = self._checkpoint(entry.commit) or checkpoint
            own = entry.number
        beside = tuple(each.last.number for each in changers if each.last.number != own)
        turn = self._turns.get(entry.number)
        end = self._checkpoint(turn.last.commit) if turn else None
        first = self._checkpoint(turn.first.commit) if turn else None
        decisions = self._decided(first or checkpoint, end or checkpoint)
        prompt = prompt_of(end or checkpoint)
        return Origin(checkpoint, entry, "agent", prompt, decisions, beside)

    def _changers(self, one: FileVersion) -> list[Span]:
        """Returns the turns that may have written a version, as they ran at that time."""
        with suppress(CorruptError, TransferError):
            return self._whose.changers(one.entry, one.path)
        return []

    def _decided(self, first: Checkpoint, last: Checkpoint) -> tuple[Decision, ...]:
        """Returns the entries added to the log from one checkpoint to another, both included."""
        parents = first.raw.parents
        with suppress(CorruptError):
            before = self._checkpoint(parents[0].hex()) if parents else None
            if before and before.manifest.decisions == last.manifest.decisions:
                return ()
            return new_entries(before, last)
        return ()

    def _by_git(self, one: FileVersion, checkpoint: Checkpoint) -> bool:
        """Whether a version came with a new commit that was not made in this work tree."""
        if one.entry.trigger == "commit" or one.before is None:
            return False
        base = checkpoint.trailers.base
        old = self._checkpoint(one.before.commit)
        if base is None or old is None or old.trailers.base == base:
            return False
        if base.encode() in self._committed_here:
            return False
        with suppress(GitcpError):
            (blob,) = blobs_at(self._workspace.repository, [base], one.path)
            return blob == one.version.blob
        return False

    @functools.cached_property
    def _committed_here(self) -> frozenset[bytes]:
        """The commits made in this work tree, according to git's log of HEAD."""
        repository = self._workspace.repository
        if repository.ref_storage != "files":
            told = reflog.moves(repository, _MOVES)
            made = (one.new for one in told if one.what.startswith("commit"))
            return frozenset(map(str.encode, made))
        with suppress(OSError):
            log = read_regular(repository.git_dir / "logs" / "HEAD")
            return frozenset(_COMMITTED.findall(log))
        return frozenset()
