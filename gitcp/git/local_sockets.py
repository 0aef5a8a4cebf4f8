"""Asks the watchers that answer on a local socket: Watchman, and git's own daemon."""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

# More is no answer worth having; in bytes.
LONGEST = 64 << 20
# Bytes of a path for which the address of a socket has room on every system.
_ROOM = 103
_FLUSH = b"0000"
_HEAD = 4


class WatcherError(Exception):
    """The watcher gave no answer; `late` where it took too long."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.late = late


@contextmanager
def address(place: str) -> Iterator[str]:
    """Yields a name of a socket for which its address has room, however long its path is.

    Raises:
        OSError: its directory cannot be opened.
    """
    if len(os.fsencode(place)) <= _ROOM:
        yield place
        return
    directory, name = os.path.split(place)
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{held}/{name}"
    finally:
        os.close(held)


@contextmanager
def _connected(place: str, who: str, until: float) -> Iterator["_Lines"]:
    try:
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked,
            address(place) as short,
        ):
            asked.settimeout(max(0.01, until - time.monotonic()))
            asked.connect(short)
            with asked.makefile("rb") as lines:
                yield _Lines(asked, lines, until)
    except TimeoutError as exc:
        raise WatcherError(f"{who} did not answer in time", late=True) from exc
    except OSError as exc:
        raise WatcherError(f"{who} is not running: {exc.strerror or exc}") from exc


class _Lines:
    def __init__(self, asked: socket.socket, lines: IO[bytes], until: float) -> None:
        self._asked = asked
        self._lines = lines
        self._until = until

    def send(self, data: bytes) -> None:
        self._asked.sendall(data)

    def line(self) -> bytes:
        self._asked.settimeout(max(0.01, self._until - time.monotonic()))
        return self._lines.readline(LONGEST)

    def read(self, size: int) -> bytes:
        self._asked.settimeout(max(0.01, self._until - time.monotonic()))
        return self._lines.read(size)


# --- git's daemon ------------------------------------------------------------------------


def from_daemon(place: str, token: str, until: float) -> bytes:
    """Returns what git's daemon says, asked as git asks it (`simple-ipc`).

    Raises:
        WatcherError: the daemon is not running, or its answer is not valid.
    """
    body = token.encode("utf-8", "surrogateescape") or b"none"
    with _connected(place, "git's daemon", until) as lines:
        lines.send(b"%04x" % (len(body) + _HEAD) + body + _FLUSH)
        return b"".join(_packets(lines))


def _packets(lines: _Lines) -> Iterator[bytes]:
    total = 0
    while True:
        head = lines.read(_HEAD)
        if head == _FLUSH:
            return
        try:
            size = int(head, 16) - _HEAD
        except ValueError as exc:
            raise WatcherError("git's daemon does not speak its protocol") from exc
        total += size
        if size < 0 or total > LONGEST:
            raise WatcherError("git's daemon gave an answer that is too long")
        block = lines.read(size)
        if len(block) < size:
            raise WatcherError("git's daemon ended in the middle of its answer")
        yield block


# --- Watchman ----------------------------------------------------------------------------


def from_watchman(
    place: str, top: str, token: str | None, until: float
) -> tuple[str, list[str] | None]:
    """Returns Watchman's clock, and the names that may have changed; None for all.

    It answers with text: names that are no text have it send none (version 4.9), or other
    ones, which `paths` of an answer takes for all.

    Raises:
        WatcherError: Watchman does not run or watch the directory, or its answer is not valid.
    """
    question: list[Any] = ["clock", top]
    if token is not None:
        wanted = {
            "since": token,
            "fields": ["name"],
            "expression": ["not", ["dirname", ".git"]],
            "empty_on_fresh_instance": True,
        }
        question = ["query", top, wanted]
    with _connected(place, "Watchman", until) as lines:
        lines.send(json.dumps(question).encode("utf-8") + b"\n")
        raw = lines.line()
    try:
        said = json.loads(raw)
        if "error" in said:
            raise WatcherError(f"Watchman says: {said['error']}")
        clock = str(said["clock"])
        if token is None or said["is_fresh_instance"]:
            return clock, None
        return clock, [str(name) for name in said["files"]]
    except (ValueError, TypeError, KeyError) as exc:
        raise WatcherError("Watchman's answer cannot be understood") from exc


def watchman_socket(raw: bytes) -> str:
    """Returns the path that `watchman get-sockname` printed.

    Raises:
        WatcherError: it printed no path.
    """
    try:
        return str(json.loads(raw)["sockname"])
    except (ValueError, TypeError, KeyError) as exc:
        raise WatcherError("Watchman is not running") from exc
