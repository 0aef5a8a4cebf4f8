"""The boundary around a hook: it never fails, never prints, and ends in time."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from gitcp import notices
from gitcp.errors import GitcpError

_DISABLE = "GITCP_DISABLE"


class OutOfTimeError(Exception):
    """The hook has run out of time."""


def guarded(
    what: str, work: Callable[[float], bytes | None], *, directory: str
) -> None:
    """Does a hook's work; any failure only becomes a line in `hooks.log`.

    `work` gets its start time, from `time.monotonic()`. It may narrow its own limit with
    `limited`. Only its return value is printed. `GITCP_DISABLE` in the environment turns
    hooks off.
    """
    if is_disabled():
        return
    started = time.monotonic()
    noted: list[str] = []
    output: bytes | None = None
    with _silenced():
        try:
            with notices.listening(noted.append):
                output = work(started)
        except GitcpError as exc:
            _log(directory, what, started, f"{exc.code}: {exc.message}")
        except BaseException as exc:  # noqa: BLE001  nothing may reach the caller
            import traceback

            trace = "".join(traceback.format_exception(exc))
            _log(directory, what, started, f"gave up: {trace}")
        for text in noted:
            _log(directory, what, started, f"warning: {text}")
    if output:
        # The client may have closed its end of the pipe.
        with suppress(OSError):
            os.write(1, output)


def is_disabled() -> bool:
    """Whether the environment turns hooks off."""
    return os.environ.get(_DISABLE, "0") not in ("", "0")


def _log(directory: str, what: str, started: float, text: str) -> None:
    # Only a hook that has something to log loads this module.
    from gitcp.project.hook_log import write

    write(directory, what, started, text)


@contextmanager
def limited(seconds: float, what: str) -> Iterator[None]:
    """Ends the work inside after a time, by an exception that `guarded` logs."""

    def over(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise OutOfTimeError(f"{what} took more than {seconds:g} s (hookTimeout)")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _silenced() -> Iterator[None]:
    """Discards both output streams, because a client may act on a hook's output."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept: list[tuple[int, int]] = []
    try:
        for stream in (1, 2):
            with suppress(OSError):
                kept.append((stream, os.dup(stream)))
                os.dup2(nowhere, stream)
        yield
    finally:
        for stream, copy in kept:
            os.dup2(copy, stream)
            os.close(copy)
        os.close(nowhere)


def here() -> str:
    """Returns the directory that a hook was started in; `/` if that is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        return "/"
