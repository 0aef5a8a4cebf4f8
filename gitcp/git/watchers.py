"""Asks the watcher that the user has for git (`core.fsmonitor`) which paths changed.

A hook is a program: gitcp runs one that the user's own configuration names, never one that a
repository brings along. Watchman, where a hook's name has its name, and git's own daemon are
asked by their sockets, and never started.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import GitFailedError
from gitcp.git import process
from gitcp.git.configuration import is_set_by_user
from gitcp.git.local_sockets import (
    LONGEST,
    WatcherError,
    from_daemon,
    from_watchman,
    watchman_socket,
)
from gitcp.git.repository import Repository

NAME = "core.fsmonitor"
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", ""})
# A shell would make more than one word of it, or something else.
_PLAIN = r"[\w@%+=:,./-]+"
_SOCKET = "fsmonitor--daemon.ipc"
_WATCHMAN = "watchman"
# What a watcher may write in place of a byte that is no text.
_REPLACED = (b"?", "\N{REPLACEMENT CHARACTER}".encode())
_BLOCK = 1 << 20
_BILLION = 1_000_000_000
# A clock may be read a little before the change that it is to include, in seconds.
_EARLIER = 2


class Watcher(NamedTuple):
    """A watcher that can be asked, in this order: Watchman, a hook, git's daemon.

    `watchman` is the directory that Watchman watches, `hook` a program with the `versions`
    of the protocol that it may know, `daemon` the path of a socket.
    """

    watchman: str = ""
    hook: str = ""
    versions: tuple[int, ...] = ()
    daemon: str = ""


class Unused(NamedTuple):
    """Why the watcher that git's configuration names is not asked."""

    reason: str
    hint: str


class Answer(NamedTuple):
    """What a watcher said: a token for the next time, and the paths that may have changed.

    `paths` is None if all may have. `version` is the one of the hook's protocol.
    """

    token: str
    paths: frozenset[bytes] | None
    version: int = 0


def configured(repository: Repository) -> Watcher | Unused | None:
    """Returns the watcher of a repository; None if its user has none.

    Raises:
        GitFailedError: git cannot read its configuration.
    """
    if not is_set_by_user(repository.config, NAME):
        return None
    listed = os.fsdecode(
        repository.git("config", "--show-scope", "-z", "--get-all", NAME)
    ).split("\0")
    pairs = list(zip(listed[::2], listed[1::2], strict=False))[:-1]
    if not pairs:
        return None
    scope, value = pairs[-1]
    if value.strip().lower() in _FALSE:
        return None
    if value.strip().lower() in _TRUE:
        return Watcher(daemon=str(repository.git_dir / _SOCKET))
    # The name is enough: nothing of the repository's is run.
    top = repository.top if _WATCHMAN in os.path.basename(value) else None
    watchman = os.path.realpath(top) if top and shutil.which(_WATCHMAN) else ""
    if scope in {"local", "worktree"}:
        if watchman:
            return Watcher(watchman)
        return Unused(
            "the repository's own configuration names a hook, which gitcp does not run",
            f"name it in your own configuration: git config --global {NAME}"
            " PROGRAM, or a file that `includeIf` includes there",
        )
    return _hook(repository, value, watchman)


def _hook(repository: Repository, value: str, watchman: str) -> Watcher | Unused:
    path = os.path.expanduser(value)
    if not re.fullmatch(_PLAIN, path):
        return Unused(
            f"{NAME} is a command line", f"set {NAME} to the path of a program"
        )
    if "/" not in path:
        path = shutil.which(path) or path
    if not os.path.isabs(path):
        return Unused(
            f"{NAME} is not an absolute path", f"set {NAME} to an absolute path"
        )
    real = Path(os.path.realpath(path))
    for own in (repository.top, repository.git_dir, repository.common_dir):
        if own is not None and real.is_relative_to(os.path.realpath(own)):
            return Unused(
                "the hook is inside the project, and gitcp runs nothing from there",
                f"move it out of the project, and set {NAME} to its new path",
            )
    version = (repository.setting("core.fsmonitorhookversion") or "").strip()
    versions = (int(version),) if version in {"1", "2"} else (2, 1)
    return Watcher(watchman, path, versions)


class Question:
    """A question that a watcher is answering in the background."""

    def __init__(
        self, repository: Repository, watcher: Watcher, token: str | None, version: int
    ) -> None:
        """Asks what changed since a token of a version; None asks for a first token."""
        self._top = repository.top or repository.git_dir
        self._watcher = watcher
        self._token = token
        self._version = version
        self._process: process.Process | None = None
        self._asked = ""
        if watcher.watchman:
            self._start(_WATCHMAN, "--no-spawn", "--no-pretty", "get-sockname")
        else:
            self._ask(self._tries()[0])

    def _tries(self) -> tuple[int, ...]:
        versions = self._watcher.versions or (0,)
        return (self._version,) if self._version in versions else versions

    def _ask(self, version: int) -> None:
        if not self._watcher.hook:
            return
        now = self._asked = str(time.time_ns() - _EARLIER * _BILLION)
        token = self._token if self._token is not None else now
        self._start(self._watcher.hook, str(version), token)

    def _start(self, *args: str) -> None:
        # What cannot be started gives no answer, which is said where one is waited for.
        with suppress(GitFailedError):
            self._process = process.start_program(args, cwd=self._top)

    def close(self) -> None:
        """Ends a question whose answer is no longer needed."""
        started, self._process = self._process, None
        if started is not None:
            _kill(started)
            _end(started)

    def answer(self, seconds: float) -> Answer:
        """Waits for the answer.

        Raises:
            WatcherError: there is none, or one that makes no sense.
        """
        until = time.monotonic() + seconds
        watcher = self._watcher
        if watcher.watchman:
            try:
                return self._watchman(until)
            except WatcherError as exc:
                if exc.late or not watcher.hook:
                    raise
            # It may start Watchman, or have it watch the directory.
            self._ask(self._tries()[0])
        if watcher.daemon:
            raw = from_daemon(watcher.daemon, self._token or "", until)
            return _parsed(raw, 0, self._asked)
        return self._from_hook(until)

    def _watchman(self, until: float) -> Answer:
        place = os.environ.get("WATCHMAN_SOCK") or watchman_socket(self._output(until))
        token, names = from_watchman(place, self._watcher.watchman, self._token, until)
        if names is None:
            return Answer(token, None)
        joined = "\0".join(names).encode("utf-8", "replace")
        return Answer(token, _paths(joined))

    def _from_hook(self, until: float) -> Answer:
        tries = self._tries()
        for number, version in enumerate(tries):
            if number:
                self._ask(version)
            try:
                raw = self._output(until)
            except WatcherError as exc:
                if exc.late or version == tries[-1]:
                    raise
                continue
            return _parsed(raw, version, self._asked)
        raise WatcherError("it knows no version of the protocol")

    def _output(self, until: float) -> bytes:
        started, self._process = self._process, None
        if started is None:
            raise WatcherError("it could not be started")
        try:
            assert started.stdout is not None
            raw = _read(started.stdout.fileno(), until)
        except WatcherError:
            _kill(started)
            raise
        finally:
            status = _end(started)
        if status:
            raise WatcherError(f"it ended with status {status}")
        return raw


def _read(fd: int, until: float) -> bytes:
    """Reads to the end; what a hook leaves running may keep the pipe open for ever."""
    pieces: list[bytes] = []
    total = 0
    while True:
        ready, _, _ = select.select([fd], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise WatcherError("it did not answer in time", late=True)
        piece = os.read(fd, _BLOCK)
        if not piece:
            return b"".join(pieces)
        total += len(piece)
        if total > LONGEST:
            raise WatcherError("its answer is too long")
        pieces.append(piece)


def _kill(started: process.Process) -> None:
    # It has a group of its own: what it has started ends with it.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(started.pid, signal.SIGKILL)


def _end(started: process.Process) -> int:
    """Waits for a hook that has said all; one that continues is killed."""
    try:
        status = started.wait(1)
    except subprocess.TimeoutExpired:
        _kill(started)
        status = started.wait()
    for pipe in (started.stdout, started.stderr):
        if pipe is not None:
            pipe.close()
    return status


def _parsed(raw: bytes, version: int, asked: str) -> Answer:
    """Returns the answer that was given; that of version 1 has no token."""
    token, names = asked, raw
    if version != 1:
        first, nul, names = raw.partition(b"\0")
        token = first.decode("utf-8", "surrogateescape")
        if not (token and nul):
            raise WatcherError("its answer has no token")
    if names.startswith(b"/"):
        return Answer(token, None, version)
    return Answer(token, _paths(names), version)


def _paths(names: bytes) -> frozenset[bytes] | None:
    """Returns the names of an answer; None if one may stand for another."""
    if any(mark in names for mark in _REPLACED):
        return None
    found: set[bytes] = set()
    for name in names.split(b"\0"):
        if not name or name == b".git" or name.startswith(b".git/"):
            continue
        parts = name.removesuffix(b"/").split(b"/")
        if b"" in parts or b"." in parts or b".." in parts:
            raise WatcherError("its answer has a path that leads out of the project")
        found.add(name)
    return frozenset(found)
