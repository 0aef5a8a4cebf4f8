"""Runs git as a transport, with limits on time and output, and passes on its progress."""

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from gitcp.errors import TransferError
from gitcp.git import process

# Variables for the user's connection to the remote, besides those that every git of
# ours gets.
_KEPT = re.compile(
    r"GIT_(CONFIG_(COUNT|PARAMETERS|KEY_\d+|VALUE_\d+)|HTTP_\w+|SSL_\w+|ALLOW_PROTOCOL)"
)
_SAFE = (
    # Never allow a transport that runs a program named in the address.
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "protocol.fd.allow=never",
)
_POLL = 0.1
_CHUNK = 65536
_ENOUGH = 64 * 1024
_GRACE = 2.0
_LINGER = 0.5
_SHOWN = 3
_SECRET = re.compile(r"(://)[^/@\s]*@")
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_BOILERPLATE = (
    "Please make sure you have the correct access rights",
    "and the repository exists.",
    "error: failed to push some refs to",
    "hint:",
    "To ",
    "warning: redirecting to",
)
_PROGRESS = re.compile(r"(remote: )?[A-Z][\w ]*: +\d+(%|, done|\b)")


Told = Callable[[str], None]
Look = Callable[[], int]


class Limits(NamedTuple):
    """How long git may be silent and may take, in seconds; how large it may grow.

    `file`, `memory` and `out`, what it prints, are bytes, None for no limit.
    """

    silence: float
    total: float
    file: int | None = None
    memory: int | None = None
    out: int | None = None


class TooLongError(TransferError):
    """git printed more than it may."""


class Ended(NamedTuple):
    """A finished git process: its exit status, stdout and stderr."""

    status: int
    out: bytes
    said: tuple[str, ...]

    def reason(self) -> str:
        """Returns what it said in a line."""
        return "; ".join(self.said[:_SHOWN]) or f"exit status {self.status}"


def run(
    args: Sequence[str],
    *,
    cwd: Path,
    limits: Limits,
    doing: str,
    env: Mapping[str, str] | None = None,
    data: bytes = b"",
    source: IO[bytes] | None = None,
    progress: Told | None = None,
    look: Look | None = None,
    interactive: bool = False,
) -> Ended:
    """Runs git, ends it where it passes a limit, and returns how it ended.

    It reads `data`, or else the file `source`. `look` is called again and again; it
    returns a number that grows while things continue, and raises to stop git. Without
    `interactive` nothing can ask for a password at a terminal.

    Raises:
        TransferError: a limit was passed; `doing` says of what.
        GitFailedError: git is not installed.
    """
    stdin = process.PIPE if source is None else source
    started = _start(args, cwd, limits, env, stdin, interactive=interactive)
    try:
        return _attend(started, limits, doing, data, progress, look)
    finally:
        _end(started, alone=interactive)


def _start(
    args: Sequence[str],
    cwd: Path,
    limits: Limits,
    env: Mapping[str, str] | None,
    stdin: int | IO[bytes],
    *,
    interactive: bool,
) -> process.Process:
    limit_commands = []
    if limits.file is not None:
        limit_commands.append(f"ulimit -f {max(limits.file // 512, 1)}")
    if limits.memory is not None:
        limit_commands.append(f"ulimit -d {limits.memory // 1024}")
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    asked = {"GIT_TERMINAL_PROMPT": "1"} if interactive else {}
    return process.start(
        [*_SAFE, *args],
        cwd=cwd,
        env={**kept, **asked, **(env or {})},
        stdin=stdin,
        limits=limit_commands,
        # Without a terminal of its own nothing below can wait for an answer there, and
        # all of it can be ended at once.
        new_session=not interactive,
    )


def _attend(
    started: process.Process,
    limits: Limits,
    doing: str,
    data: bytes,
    progress: Told | None,
    look: Look | None,
) -> Ended:
    assert started.stdout is not None
    assert started.stderr is not None
    out = bytearray()
    heard = _Heard(progress)
    patience = _Patience(limits, doing, look)
    ended = 0.0
    view = memoryview(data)
    with selectors.DefaultSelector() as ready:
        ready.register(started.stdout, selectors.EVENT_READ)
        ready.register(started.stderr, selectors.EVENT_READ)
        if started.stdin is not None:
            _offer(started.stdin, data, ready)
        while ready.get_map():
            for key, _ in ready.select(_POLL):
                if started.stdin is not None and key.fileobj is started.stdin:
                    with suppress(BlockingIOError, BrokenPipeError):
                        view = view[os.write(key.fd, view[:_CHUNK]) :]
                        if view:
                            continue
                    if not view or started.poll() is not None:
                        ready.unregister(key.fileobj)
                        with suppress(BrokenPipeError):
                            started.stdin.close()
                    continue
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    ready.unregister(key.fileobj)
                    continue
                patience.renew()
                if key.fileobj is started.stdout:
                    out += chunk
                    _refuse_if_long(out, limits, doing)
                else:
                    heard.take(chunk)
            if started.poll() is not None:
                # An ssh that stays for the next connection keeps our pipe.
                now = time.monotonic()
                ended = ended or now
                if now - ended > _LINGER:
                    break
            patience.check()
    try:
        status = started.wait(limits.silence)
    except subprocess.TimeoutExpired:
        raise TransferError(
            f"{doing}: git did not exit", hint="check the network and the address"
        ) from None
    return Ended(status, bytes(out), heard.end())


def _offer(stdin: IO[bytes], data: bytes, ready: selectors.BaseSelector) -> None:
    """Has git's input wait for `data`; closes it if there is none."""
    if data:
        os.set_blocking(stdin.fileno(), False)
        ready.register(stdin, selectors.EVENT_WRITE)
    else:
        stdin.close()


class _Patience:
    """How long a transfer may be silent, and how long it may take in all."""

    def __init__(self, limits: Limits, doing: str, look: Look | None) -> None:
        self._limits = limits
        self._doing = doing
        self._look = look
        self._begun = self._alive = time.monotonic()
        self._seen = 0

    def renew(self) -> None:
        """Notes that it said something."""
        self._alive = time.monotonic()

    def check(self) -> None:
        """Gives up on a transfer that says nothing, or takes too long.

        Raises:
            TransferError: the transfer sent nothing for too long, or took too long.
        """
        if self._look is not None and (grown := self._look()) != self._seen:
            self._seen = grown
            self.renew()
        now, limits = time.monotonic(), self._limits
        if now - self._alive > limits.silence:
            raise TransferError(
                f"{self._doing}: no data for {limits.silence:g} s",
                hint="check the network and the address; gitcp.transferTimeout sets"
                " how long to wait",
            )
        if now - self._begun > limits.total:
            raise TransferError(
                f"{self._doing}: not finished after {limits.total:g} s",
                hint="the connection is too slow; gitcp.transferLimit sets how long a"
                " transfer may take",
            )


def _refuse_if_long(out: bytearray, limits: Limits, doing: str) -> None:
    if limits.out is not None and len(out) > limits.out:
        raise TooLongError(
            f"{doing}: more than {limits.out:,} bytes were listed",
            hint="nothing was changed",
        )


def _end(started: process.Process, *, alone: bool) -> None:
    """Ends a git that has not ended by itself, and all it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if started.returncode is not None:
            # It left this process running on purpose: a cache of passwords, for
            # instance.
            break
        with suppress(ProcessLookupError, PermissionError):
            if alone:
                started.send_signal(number)
            else:
                os.killpg(started.pid, number)
        with suppress(subprocess.TimeoutExpired):
            started.wait(_GRACE)
    for stream in (started.stdin, started.stdout, started.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


class _Heard:
    """What git says: progress continues at once, the rest is kept."""

    def __init__(self, progress: Told | None) -> None:
        self._progress = progress
        self._rest = b""
        self._kept: list[str] = []
        self._size = 0

    def take(self, chunk: bytes) -> None:
        lines = re.split(rb"(?<=[\r\n])", (self._rest + chunk)[-_ENOUGH:])
        self._rest = lines.pop()
        for line in lines:
            self._line(line)

    def _line(self, raw: bytes) -> None:
        passing = raw.endswith(b"\r")
        text = _CONTROL.sub("", raw.decode("utf-8", "backslashreplace")).strip()
        text = _SECRET.sub(r"\1…@", text)
        if not text:
            return
        if passing or _PROGRESS.match(text):
            if self._progress is not None:
                self._progress(text)
        elif not text.startswith(_BOILERPLATE) and self._size < _ENOUGH:
            self._kept.append(text)
            self._size += len(text)

    def end(self) -> tuple[str, ...]:
        if self._rest:
            self._line(self._rest)
        # git's own verdict says more than what led to it.
        return tuple(
            sorted(self._kept, key=lambda line: not line.startswith("fatal: "))
        )
