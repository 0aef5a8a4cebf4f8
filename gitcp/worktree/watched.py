"""Decides whether a scan may rely on the user's watcher, and stops that after a wrong answer.

What is noted lies beside the scan state and is derived, as that is (docs/format.md, I7).
Why a watcher is believed as far as it is: docs/decisions/0105.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from gitcp import durable, notices
from gitcp.errors import GitFailedError
from gitcp.format import index as indexes
from gitcp.format.index import Stat, trim
from gitcp.git import watchers
from gitcp.git.local_sockets import WatcherError
from gitcp.git.repository import Repository
from gitcp.git.watchers import Question, Unused, Watcher
from gitcp.worktree.clock import Clock
from gitcp.worktree.names import parents
from gitcp.worktree.state import ScanState

_BILLION = 1_000_000_000
# Everything is compared after so many captures that were not, or so much time (ns).
_CAPTURES = 100
_AGE = 3_600 * _BILLION
# Comparing everything is as quick.
_NAMES = 10_000
# How much a capture compares that the watcher did not name.
_FILES, _DIRECTORIES = 1_000, 200
_BLOCK = 160
# How long to wait for an answer, in seconds; and when to ask again, in ns.
_PATIENCE, _FIRST_PATIENCE = 5.0, 30.0
_PAUSE = 600 * _BILLION


class Noted(msgspec.Struct):
    """What is known of a watcher; only with the scan state whose checksum `state` is.

    `whole` is when everything was compared last, by the disk's clock, and `since` the
    number of captures after it; `file` and `directory` are where the next sample begins,
    in the index with the checksum `index` and in the state. `ask_at` is when a watcher
    that gave no answer in time is asked again.
    """

    watcher: str = ""
    state: bytes = b""
    token: str = ""
    version: int = 0
    boot: bytes = b""
    whole: int = 0
    since: int = 0
    index: bytes = b""
    file: int = 0
    directory: int = 0
    ask_at: int = 0


class Missed(msgspec.Struct):
    """That a watcher did not name a path that had changed; `when` is in seconds."""

    watcher: str
    path: bytes
    when: int


class Watch:
    """What a watcher says of one capture; `trusted` while its answer decides what is read.

    `missed` is a path that it should have named, once one was found.
    """

    def __init__(
        self,
        repository: Repository,
        directory: Path,
        clock: Clock,
        watcher: Watcher,
        deadline: float | None = None,
    ) -> None:
        self._repository = repository
        self._directory = directory
        self._clock = clock
        self._watcher = watcher
        self._deadline = deadline
        self._name = repr(tuple(watcher))
        self._noted = Noted()
        self._question: Question | None = None
        self._answer: watchers.Answer | None = None
        self._has_token = False
        # Whether it is not yet time to compare everything.
        self._enough = False
        self.missed: bytes | None = None
        self.trusted = False
        self.asked_at = clock.reading.now

    # --- asking -----------------------------------------------------------------

    def begin(self, state: ScanState) -> bool:
        """Asks in the background; returns whether the answer may be enough for the scan."""
        if missed(self._directory, self._watcher) is not None:
            return False
        noted = _load(self._directory)
        if noted is None or noted.watcher != self._name:
            noted = Noted(self._name)
        self._noted = noted
        reading = self._clock.reading
        self._has_token = bool(
            noted.token and noted.state == state.stored and noted.boot == reading.boot
        )
        if noted.ask_at > reading.now:
            return False
        self._question = Question(
            self._repository,
            self._watcher,
            noted.token if self._has_token else None,
            noted.version,
        )
        self._enough = (
            self._has_token
            and noted.since < _CAPTURES
            and 0 <= reading.now - noted.whole < _AGE
        )
        return self._enough

    def close(self) -> None:
        """Ends a question whose answer is no longer needed."""
        question, self._question = self._question, None
        if question is not None:
            question.close()

    def hear(self) -> frozenset[bytes] | None:
        """Waits for the answer; None if it does not say which paths may have changed."""
        question, self._question = self._question, None
        if question is not None:
            try:
                # Asked for the first time, some name all files.
                patience = _PATIENCE if self._has_token else _FIRST_PATIENCE
                if self._deadline is not None:
                    patience = min(patience, (self._deadline - time.monotonic()) / 4)
                self._answer = question.answer(patience)
            except WatcherError as exc:
                if exc.late:
                    self._noted.ask_at = self._clock.reading.now + _PAUSE
        answer = self._answer
        if answer is None or answer.paths is None or not self._enough:
            return None
        return answer.paths if len(answer.paths) <= _NAMES else None

    def _covers(self, path: bytes) -> bool:
        answer = self._answer
        if answer is None or answer.paths is None or not self._has_token:
            return True
        names = answer.paths
        return any(
            one in names or one + b"/" in names for one in (path, *parents(path))
        )

    # --- comparing ----------------------------------------------------------------

    def sample(
        self, state: ScanState, stat: Callable[[bytes], os.stat_result | None]
    ) -> tuple[list[bytes], list[bytes]]:
        """Returns directories and files to look at that the watcher did not name.

        Each capture continues where the last one ended.
        """
        noted = self._noted
        if noted.index != state.index:
            noted.index, noted.file = state.index, 0
        total = len(state.dirs)
        begin = noted.directory if noted.directory < total else 0
        noted.directory = begin + _DIRECTORIES
        directories = list(islice(state.dirs, begin, begin + _DIRECTORIES))
        files = []
        for path, known in self._next_files():
            status = None if path in state.overlay else stat(path)
            if path not in state.overlay and (
                status is None or not _is_same(status, known)
            ):
                files.append(path)
        return directories, files

    def _next_files(self) -> Iterator[tuple[bytes, Stat]]:
        noted = self._noted
        form = self._repository.form
        try:
            fd = os.open(self._directory / "index", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            raw = os.pread(fd, _FILES * _BLOCK, noted.file)
            is_last = noted.file + len(raw) >= os.fstat(fd).st_size
        finally:
            os.close(fd)
        entries, read = indexes.part(raw, noted.file, _FILES, form)
        noted.file = 0 if is_last and len(entries) < _FILES else noted.file + read
        for entry in entries:
            yield entry.path, entry.stat

    def judge(self, path: bytes, changed_at: int) -> None:
        """Notes a path that changed before the question, and that the answer leaves out.

        `changed_at` is when it changed at the latest, by the disk's clock in nanoseconds.
        """
        if 0 < changed_at < self.asked_at and not self._covers(path):
            self.missed = path

    def judge_stat(self, path: bytes, stat: Stat) -> None:
        """Does so by the stat that a file was read with."""
        if stat.device == trim(self._clock.device):
            self.judge(path, stat.ctime * _BILLION + stat.ctime_ns)

    def judge_directory(self, path: bytes, status: os.stat_result) -> None:
        """Does so by the directory that a file is gone from."""
        if status.st_dev == self._clock.device:
            self.judge(path, max(status.st_ctime_ns, status.st_mtime_ns))

    # --- remembering -----------------------------------------------------------------

    def remember(self, state: ScanState) -> None:
        """Stores the token that goes with a state, or that the watcher is not believed."""
        if self.missed is not None:
            found = Missed(self._name, self.missed, int(time.time()))
            _store(self._directory / "watcher-missed", found)
            _tell(self.missed)
            (self._directory / "watcher").unlink(missing_ok=True)
            return
        noted, answer = self._noted, self._answer
        if not noted.watcher:
            return
        if answer is not None:
            noted.token, noted.version = answer.token, answer.version
            noted.boot = self._clock.reading.boot
        elif not self._has_token:
            noted.token = ""
        noted.since = noted.since + 1 if self.trusted else 0
        if not self.trusted:
            noted.whole = self._clock.reading.now
        noted.state = state.stored
        _store(self._directory / "watcher", noted)


def watch(
    repository: Repository, directory: Path, clock: Clock, deadline: float | None
) -> Watch | None:
    """Returns the watch over a work tree; None if no watcher is to be asked."""
    try:
        found = watchers.configured(repository)
    except GitFailedError:
        return None
    if not isinstance(found, Watcher):
        return None
    return Watch(repository, directory, clock, found, deadline)


def missed(directory: Path, watcher: Watcher) -> Missed | None:
    """Returns in which wrong answer a watcher was caught, if it was."""
    with suppress(OSError, msgspec.MsgspecError):
        raw = (directory / "watcher-missed").read_bytes()
        found = msgspec.msgpack.decode(raw, type=Missed)
        if found.watcher == repr(tuple(watcher)):
            return found
    return None


def keep_token(directory: Path, before: bytes, state: ScanState) -> None:
    """Has the token that went with one state go with the next, which knows more."""
    noted = _load(directory)
    if noted is not None and before and noted.state == before != state.stored:
        noted.state = state.stored
        _store(directory / "watcher", noted)


def _tell(path: bytes) -> None:
    """Says that a watcher was caught in a wrong answer."""
    notices.tell(
        f"the watcher of core.fsmonitor missed a change of {os.fsdecode(path)!a}:"
        " from now on gitcp compares every file (`gitcp doctor`)"
    )


def distrusted(repository: Repository, directory: Path) -> str | None:
    """Returns which change the watcher in use missed, if it was caught."""
    found = watchers.configured(repository)
    caught = missed(directory, found) if isinstance(found, Watcher) else None
    return None if caught is None else os.fsdecode(caught.path)


def standing(repository: Repository, directory: Path) -> tuple[str, str | None]:
    """Returns how the scan state and a repository's watcher are used, with a hint.

    Raises:
        GitFailedError: git cannot read its configuration.
    """
    found = watchers.configured(repository)
    if found is None:
        return "usable", None
    detail, hint = _standing(found, directory)
    return f"usable; the watcher of core.fsmonitor is {detail}", hint


def _standing(found: Watcher | Unused, directory: Path) -> tuple[str, str | None]:
    if isinstance(found, Unused):
        return f"not used: {found.reason}", found.hint
    caught = missed(directory, found)
    if caught is not None:
        day = time.strftime("%Y-%m-%d", time.gmtime(caught.when))
        path = os.fsdecode(caught.path)
        return (
            f"not used: it missed a change of {path!a} on {day}",
            f"to try it again, remove {directory / 'watcher-missed'}",
        )
    noted = _load(directory)
    if noted is not None and noted.ask_at > time.time_ns():
        return "paused for some minutes: it did not answer in time", None
    if noted is None or not noted.token:
        return "not asked yet, or without an answer: gitcp compares every file", None
    return f"in use; {noted.since} captures since all files were compared", None


def _is_same(status: os.stat_result, known: Stat) -> bool:
    from gitcp.worktree.plain import index_stat  # noqa: PLC0415  few have one

    return index_stat(status) == known


def _load(directory: Path) -> Noted | None:
    with suppress(OSError, msgspec.MsgspecError):
        raw = (directory / "watcher").read_bytes()
        if hashlib.sha1(raw[20:], usedforsecurity=False).digest() == raw[:20]:
            return msgspec.msgpack.decode(raw[20:], type=Noted)
    return None


def _store(path: Path, what: Noted | Missed) -> None:
    raw = msgspec.msgpack.encode(what)
    if isinstance(what, Noted):
        raw = hashlib.sha1(raw, usedforsecurity=False).digest() + raw
    durable.replace(path, raw, sync=False)
