"""Starts programs other than git, at the user's request."""

import os
import select
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from gitcp import at_fork
from gitcp.errors import (
    NotFoundError,
    ProgramNotFoundError,
    ProgramNotRunnableError,
)

_CHUNK = 65536
_QUIET = 0.2
_SIGNALLED = 128
# How many seconds a program has to end after a signal.
_GRACE = 5.0


class Finished(NamedTuple):
    """A finished program: its exit status as a shell gives it, and its output."""

    status: int
    output: bytes


class Watched(NamedTuple):
    """A finished program: its exit status, and the end of its output.

    Two pipes do not show in which order their texts were written, so they stay
    separate.
    """

    status: int
    out: bytes
    err: bytes
    timed_out: bool = False


def collect(
    args: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None
) -> Finished:
    """Runs a program without input and returns its output, both streams in their order.

    Raises:
        NotFoundError: the program cannot be started.
    """
    try:
        with at_fork.opening():
            process = subprocess.Popen(
                args,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            at_fork.started(process)
    except OSError as exc:
        raise unstartable(args, exc) from exc
    output, _ = process.communicate()
    return Finished(_status(process.returncode), output)


def tee(
    args: Sequence[str],
    *,
    cwd: Path,
    keep: int,
    out: int = 1,
    err: int = 2,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    keep_open: tuple[int, ...] = (),
) -> Watched:
    """Runs a program on our own input and output; keeps the last `keep` bytes of each.

    `env` is added to our own environment. After `timeout` seconds the program gets a
    signal to end, and is killed if it does not. It inherits the descriptors
    `keep_open`.

    Its output goes to the descriptors `out` and `err` at once. It does not wait for a
    program left running in the background. While the program runs, an interrupt
    concerns the program, not us; a signal to end is passed on to it.

    Raises:
        NotFoundError: the program cannot be started.
    """
    tails = _Tail(keep), _Tail(keep)
    ended = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = _start(args, cwd, env, keep_open)
        handed_on = _hand_on(process)
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            threading.Thread(target=_pump, args=(stream, to, tail, ended))
            for stream, to, tail in zip(
                (process.stdout, process.stderr), (out, err), tails, strict=True
            )
        ]
        for reader in readers:
            reader.start()
        timed_out = _wait(process, timeout)
        ended.set()
        for reader in readers:
            reader.join()
        for number, handler in handed_on.items():
            signal.signal(number, handler)
    finally:
        signal.signal(signal.SIGINT, before)
    said, complained = (tail.content() for tail in tails)
    return Watched(_status(process.returncode), said, complained, timed_out)


def _start(
    args: Sequence[str],
    cwd: Path,
    env: Mapping[str, str] | None,
    keep_open: tuple[int, ...],
) -> subprocess.Popen[bytes]:
    try:
        with at_fork.opening():
            process = subprocess.Popen(
                args,
                cwd=cwd,
                env={**os.environ, **env} if env else None,
                pass_fds=keep_open,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            at_fork.started(process)
    except OSError as exc:
        raise unstartable(args, exc) from exc
    return process


def _hand_on(process: subprocess.Popen[bytes]) -> dict[int, Any]:
    """Passes signals that would end us on to a program; returns their previous handlers."""
    before: dict[int, Any] = {
        number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    # `nohup` applies to us, too.
    before = {one: found for one, found in before.items() if found != signal.SIG_IGN}
    for number in before:
        signal.signal(number, lambda got, _: process.send_signal(got))
    return before


def _wait(process: subprocess.Popen[bytes], timeout: float | None) -> bool:
    """Waits for a program; returns whether it had to be stopped."""
    if timeout is None:
        _wait_for_signals_too(process)
        return False
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.terminate()
    else:
        return False
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return True


def _wait_for_signals_too(process: subprocess.Popen[bytes]) -> None:
    # Python runs the handler of a signal in this thread. A signal that comes just before
    # this thread waits in the system, or that another thread gets, would wait with it
    # until the program ends: this thread must come back by itself.
    waiter = threading.Thread(target=process.wait)
    waiter.start()
    while waiter.is_alive():
        waiter.join(_QUIET)


class _Tail:
    """The last bytes of a stream."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        self._data += data
        del self._data[: -self._keep]

    def content(self) -> bytes:
        return bytes(self._data)


def _pump(stream: IO[bytes], to: int, tail: _Tail, ended: threading.Event) -> None:
    source = stream.fileno()
    listening = True
    with stream:
        while True:
            ready, _, _ = select.select([source], [], [], _QUIET)
            if not ready:
                # A background process may hold the pipe open for ever.
                if ended.is_set():
                    return
                continue
            data = os.read(source, _CHUNK)
            if not data:
                return
            tail.add(data)
            if listening:
                # The reader of our output may be gone; the program continues.
                listening = _write(to, data)


def _write(to: int, data: bytes) -> bool:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(to, view) :]
    except OSError:
        return False
    return True


def _status(returncode: int) -> int:
    return returncode if returncode >= 0 else _SIGNALLED - returncode


def unstartable(args: Sequence[str], exc: OSError) -> NotFoundError:
    """Returns the error for a program that cannot be started."""
    kind = (
        ProgramNotFoundError
        if isinstance(exc, FileNotFoundError)
        else ProgramNotRunnableError
    )
    return kind(
        f"{args[0]!a} cannot be started: {exc.strerror}",
        hint="check its name, and that it is executable",
    )
