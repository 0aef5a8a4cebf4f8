"""Numbers of checkpoints: each is permanent in its repository (docs/format.md, 22).

They are in a file beside git's own: it outlives `rm -rf .git/gitcp`, and copying refs
does not copy it. It only grows; a number is never assigned twice.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import StorageError
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import (
    BEFORE_GIT,
    ELSEWHERE,
    MAIN_TREE,
    Assigned,
    Fates,
    Gone,
    Moved,
    NumberLine,
    Outline,
    decode_assigned,
    decode_line,
    encode_line,
    fates,
    outlines,
    unnamed,
)
from gitcp.git.repository import Repository
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint

NAME = "gitcp-numbers"
LOCK = "numbers.lock"
_HEADS = rb"\n([+=-]) (\d+) ([0-9a-f]{12}(?= ))?"
# Building an index takes about as long as so many searches through the whole list.
_SEARCHES = 10
# Bytes: a few lines.
_FEW = 2_000


class _Index(NamedTuple):
    """Offsets of lines, by kind and number, and offsets of ids in them."""

    lines: dict[tuple[bytes, bytes], int]
    ids: dict[bytes, list[int]]


class Numbers:
    """The numbers of one repository; each look sees what other processes added."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._path = repository.common_dir / NAME
        # The lines, each after a newline, so that one search finds any of them.
        self._raw = b"\n"
        self._file: tuple[int, int] | None = None
        # When every checkpoint last got its number, by the monotonic clock.
        self.completed = float("-inf")
        # Bytes that were searched without an index.
        self._searched = 0
        # Whether there is a line of a kind.
        self._kinds: dict[bytes, bool] = {}
        self._index: _Index | None = None

    @property
    def place(self) -> str:
        """The place of checkpoints that are made in this work tree."""
        if self._repository.top is None:
            return ELSEWHERE
        name = self._repository.worktree_name
        return MAIN_TREE if name is None else encode(name)

    def of(self, ident: str, key: BranchKey | None = None) -> int | None:
        """Returns the number of a checkpoint, by its id and branch; None: it has none.

        Use the id alone only if nothing depends on it: pulled checkpoints may repeat one.
        """
        self._look()
        for at in self._places(ident):
            line = decode_line(self._line_around(at))
            if (
                isinstance(line, Assigned)
                and line.id == ident
                and key in {None, line.key}
            ):
                return line.number
        return None

    def number_of(self, checkpoint: Checkpoint) -> int | None:
        """Returns the number of a checkpoint; None: it has none that can be read."""
        # If the file cannot be read, a checkpoint is named by its id.
        with suppress(StorageError):
            return self.of(checkpoint.id, checkpoint.trailers.key)
        return None

    def find(self, number: int) -> Assigned | None:
        """Returns which checkpoint has a number, with its last known commit."""
        self._look()
        line = self._last(b"+", number)
        if not isinstance(line, Assigned):
            return None
        moved = self._last(b"=", number)
        return line._replace(commit=moved.commit) if isinstance(moved, Moved) else line

    def gone(self, number: int) -> str | None:
        """Returns when the checkpoint of a number was pruned; None: it was not."""
        self._look()
        line = self._last(b"-", number)
        return line.at if isinstance(line, Gone) else None

    def fates(self) -> Fates:
        """Returns which checkpoints were pruned or rewritten since they got a number."""
        self._look()
        return fates(self._raw)

    def newest_first(
        self, trigger: str | None = None, *, below: int | None = None
    ) -> Iterator[Assigned]:
        """Yields every number that was assigned, or those of one trigger.

        With `below` only those that stand before the line of a number. The commit is the
        one that it was assigned to.
        """
        self._look()
        if trigger is None:
            # Many lines are read at once, but not all where the first will do.
            raw, size = self._raw, _FEW
            end = len(raw) if below is None else self._place(b"+", below)
            while end > 0:
                start = raw.rfind(b"\n", 0, max(end - size, 0)) + 1
                yield from reversed(list(decode_assigned(raw[start:end])))
                end, size = start, size * 4
            return
        for raw in self._backwards(trigger, below=below):
            line = decode_line(raw)
            if isinstance(line, Assigned) and line.trigger == trigger:
                yield line

    def outlines(self, *, below: int | None = None) -> list[Outline]:
        """Returns what was assigned, or stands before the line of a number, newest first."""
        self._look()
        end = len(self._raw) if below is None else self._place(b"+", below)
        return outlines(self._raw[: max(end, 0)])

    @property
    def damaged(self) -> int:
        """How many lines cannot be read."""
        self._look()
        return sum(decode_line(raw) is None for raw in self._backwards())

    def before(self, ident: str, key: BranchKey) -> Iterator[Assigned]:
        """Yields what was made in a checkpoint's work tree before it, newest first.

        Nothing if the checkpoint was not made here.
        """
        number = self.of(ident, key)
        own = self.find(number) if number is not None else None
        if own is None or own.place == ELSEWHERE:
            return
        for raw in self._backwards(below=own.number):
            line = decode_line(raw)
            if isinstance(line, Assigned) and line.place == own.place:
                yield self.find(line.number) or line
        # These may have been numbered later.
        for entry in self.newest_first() if own.place == MAIN_TREE else ():
            if entry.place == BEFORE_GIT:
                yield self.find(entry.number) or entry

    def first_of(self, session: str) -> Assigned | None:
        """Returns the first number that a session got, by its component."""
        self._look()
        at = self._raw.find(b" %b/" % session.encode("ascii"))
        line = decode_line(self._line_around(at)) if at >= 0 else None
        return line if isinstance(line, Assigned) else None

    def unnamed(self, commits: Iterable[str]) -> set[str]:
        """Returns those of these commits that no numbered checkpoint has, or had."""
        self._look()
        return unnamed(self._raw, commits)

    def assign(self, wanted: Iterable[Assigned]) -> list[int]:
        """Gives checkpoints their numbers, durably; those that have one keep it.

        The number that an item of `wanted` holds is ignored.

        Raises:
            BusyError: another process kept the file.
            StorageError: the disk refused; none has a new number.
        """
        numbers: list[int] = []
        with self._locked():
            lines: list[NumberLine] = []
            following = self._next()
            for one in wanted:
                number = self.of(one.id, one.key)
                if number is None:
                    number = following
                    following += 1
                    lines.append(one._replace(number=number))
                numbers.append(number)
            self._append(lines)
        return numbers

    def note_moved(self, commits: Iterable[tuple[str, BranchKey, str, str]]) -> None:
        """Notes new commits, each after id, branch and old commit: a stranger may copy an id.

        Raises:
            BusyError, StorageError: the file is not changed; the new commits are found more slowly.
        """
        with self._locked():
            lines: list[NumberLine] = []
            for ident, key, old, new in commits:
                number = self.of(ident, key)
                entry = self.find(number) if number is not None else None
                if entry is not None and entry.commit == old:
                    lines.append(Moved(entry.number, new))
            self._append(lines)

    def note_gone(self, checkpoints: Iterable[tuple[str, BranchKey]], at: str) -> None:
        """Notes that checkpoints are pruned at a time.

        Raises:
            BusyError, StorageError: nothing was noted.
        """
        with self._locked():
            numbers = (self.of(*one) for one in checkpoints)
            self._append([Gone(number, at) for number in numbers if number is not None])

    # --- the file -----------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with durable.storage("preparing to number a checkpoint"):
            self._repository.make_directory(self._repository.store_dir)
        with durable.locked(
            self._repository.store_dir / LOCK,
            what=f"the list of numbers in {self._repository.common_dir}",
            timeout=self._repository.refs.lock_timeout,
        ):
            self._look()
            yield

    def _look(self) -> None:
        """Reads what was added to the file since the last look."""
        with durable.storage("reading the numbers of checkpoints"):
            try:
                # A repository that someone sent may have a pipe there: do not wait for it.
                flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
                fd = os.open(self._path, flags)
            except FileNotFoundError:
                self._raw, self._file, self._index = b"\n", None, None
                return
            try:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    raise StorageError(
                        f"{self._path} is not a regular file",
                        hint="move it away; gitcp creates a new one",
                    )
                same = self._file is not None and self._file[0] == status.st_ino
                known = self._file[1] if same and self._file else 0
                if same and status.st_size == known:
                    return
                if status.st_size < known:
                    known = 0
                added = os.pread(fd, status.st_size - known, known)
            finally:
                os.close(fd)
        self._raw = (self._raw if known else b"\n") + added
        self._index, self._searched, self._kinds = None, 0, {}
        self._file = (status.st_ino, known + len(added))

    def _next(self) -> int:
        """Returns the next free number; skips one that a damaged line may have assigned."""
        damaged = 0
        for raw in self._backwards():
            line = decode_line(raw)
            if isinstance(line, Assigned):
                return line.number + damaged + 1
            damaged += line is None
        return damaged + 1

    def _append(self, lines: list[NumberLine]) -> None:
        if not lines:
            return
        data = b"".join(map(encode_line, lines))
        with durable.storage("numbering a checkpoint"):
            self._look()
            new = self._file is None
            if not self._raw.endswith(b"\n"):
                # A process was killed while it wrote this line: it stays, and is
                # ignored.
                data = b"\n" + data
            fd = durable.open_own(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                size = os.fstat(fd).st_size
                try:
                    if os.write(fd, data) != len(data):
                        full = errno.ENOSPC
                        raise OSError(full, os.strerror(full))  # noqa: TRY301
                    os.fsync(fd)
                except OSError:
                    with suppress(OSError):
                        os.ftruncate(fd, size)
                    raise
            finally:
                os.close(fd)
            if new:
                durable.sync_directory(self._path.parent)
            self._look()

    def _line_around(self, at: int) -> bytes:
        start = self._raw.rfind(b"\n", 0, at) + 1
        end = self._raw.find(b"\n", at)
        return self._raw[start : end if end >= 0 else None]

    def _places(self, ident: str) -> Iterator[int]:
        """Yields the offsets of an id in the lines, the last first."""
        index = self._indexed()
        if index is not None:
            yield from reversed(index.ids.get(ident.encode("ascii"), ()))
            return
        wanted = b" %b " % ident.encode("ascii")
        at = self._search(wanted, len(self._raw))
        while at >= 0:
            yield at
            at = self._search(wanted, at)

    def _last(self, kind: bytes, number: int) -> NumberLine | None:
        """Returns the last line of a kind about a number; None if there is none."""
        at = self._place(kind, number)
        return decode_line(self._line_around(at + 1)) if at >= 0 else None

    def _place(self, kind: bytes, number: int) -> int:
        """Returns the offset of the newline before that line; -1 if there is none."""
        index = self._indexed()
        if index is not None:
            return index.lines.get((kind, b"%d" % number), -1)
        if not self._has(kind):
            return -1
        return self._search(b"\n%b %d " % (kind, number), len(self._raw))

    def _has(self, kind: bytes) -> bool:
        """Whether there is a line of a kind: mostly nothing was purged or pruned."""
        if kind not in self._kinds:
            self._kinds[kind] = b"\n%b " % kind in self._raw
        return self._kinds[kind]

    def _search(self, wanted: bytes, end: int) -> int:
        """Returns the last offset of some bytes before an end; -1 if there is none."""
        at = self._raw.rfind(wanted, 0, end)
        self._searched += end - max(at, 0)
        return at

    def _indexed(self) -> _Index | None:
        """Returns the index; None if so little was searched that it does not pay."""
        if self._index is None and self._searched > _SEARCHES * len(self._raw):
            self._index = _Index({}, {})
            for match in re.finditer(_HEADS, self._raw):
                kind, number, ident = match.groups()
                self._index.lines[kind, number] = match.start()
                if ident is not None:
                    self._index.ids.setdefault(ident, []).append(match.start(3))
        return self._index

    def _backwards(
        self, word: str | None = None, *, below: int | None = None
    ) -> Iterator[bytes]:
        """Yields the lines, or those that have a word in them, the last first.

        With `below` only those that are before the line that assigned a number.
        """
        raw = self._raw
        end = len(raw) if below is None else self._place(b"+", below)
        if word is not None:
            wanted = b" %b " % word.encode("ascii")
            while (at := raw.rfind(wanted, 0, end)) >= 0:
                end = raw.rfind(b"\n", 0, at) + 1
                after = raw.find(b"\n", at)
                yield raw[end : after if after >= 0 else None]
            return
        while end > 0:
            start = raw.rfind(b"\n", 0, end) + 1
            if start < end:
                yield raw[start:end]
            end = start - 1


def last_restore(numbers: Numbers) -> Assigned | None:
    """Returns the last restore in this work tree; an undo and a fork can be one."""
    restores = numbers.newest_first("restore")
    return next((entry for entry in restores if entry.place == numbers.place), None)
