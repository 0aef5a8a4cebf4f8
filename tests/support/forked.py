"""gitcp as a process of its own that is forked from the tests', not started.

Starting Python and loading gitcp takes ten times as long as most commands. A fork has
all of it loaded. Descriptors, directory, environment, signals and locks are its own.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import itertools
import os
import pkgutil
import selectors
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import gitcp

# A pipe holds this much before it is read; a longer input needs a real process.
_PIPE = 1 << 16
# What Python obeys before it runs the first line, and a fork cannot.
_AT_START = ("PYTHON", "LC_", "LANG")
_loaded: set[str] = set()


def serves(cwd: Path, given: bytes, env: Mapping[str, str | None]) -> bool:
    """Whether a fork comes to the same as a process that is started."""
    # A lock that another thread holds in the middle of a call would stay locked.
    alone = threading.current_thread() is threading.main_thread()
    early = any(name.startswith(_AT_START) for name in env)
    return alone and not early and len(given) < _PIPE and Path(cwd).is_dir()


def run(
    cwd: Path, words: Sequence[str], given: bytes, env: dict[str, str], timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Runs a command in a fork; the arguments are those of `subprocess.run`."""
    _load()
    pipes = [os.pipe() for _ in range(3)]
    os.write(pipes[0][1], given)
    child = _fork()
    if not child:
        _in_child(cwd, words, env, [pipes[0][0], pipes[1][1], pipes[2][1]])
    for end in (*pipes[0], pipes[1][1], pipes[2][1]):
        os.close(end)
    ended = False
    try:
        out, err = _read([pipes[1][0], pipes[2][0]], timeout)
        ended = True
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(pipes[1][0])
        os.close(pipes[2][0])
    code = os.waitstatus_to_exitcode(status)
    return subprocess.CompletedProcess(["gitcp", *words], code, out, err)


def start_at(
    cwd: Path, words: Sequence[str], env: dict[str, str], terminal: int
) -> int:
    """Starts a command in a fork that has a terminal for its own; returns the fork's id."""
    _load()
    child = _fork()
    if not child:
        _in_child(cwd, words, env, [terminal] * 3, owns_terminal=True)
    return child


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 and newer warn of threads: execnet has one, and it only waits.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _load() -> None:
    """Loads the whole of gitcp, so that no child has to."""
    if _loaded:
        return
    for module in pkgutil.walk_packages(gitcp.__path__, "gitcp."):
        if not module.name.startswith(("gitcp.adapters", "gitcp.__main__")):
            importlib.import_module(module.name)
            _loaded.add(module.name)


def _read(ends: list[int], timeout: float) -> list[bytes]:
    """Reads both pipes to their end, which a background process can put off."""
    found: dict[int, bytearray] = {end: bytearray() for end in ends}
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired("gitcp", timeout)
            for key, _ in selector.select(left):
                data = os.read(key.fd, _PIPE)
                found[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
    return [bytes(found[end]) for end in ends]


def _in_child(
    cwd: Path,
    words: Sequence[str],
    env: Mapping[str, str],
    ends: Sequence[int],
    *,
    owns_terminal: bool = False,
) -> NoReturn:
    status = 120
    try:
        # Files of the tests' are not to be closed here: their numbers get other meanings.
        gc.freeze()
        atexit._clear()
        for number, end in enumerate(ends):
            os.dup2(end, number)
        if owns_terminal:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        _close_files()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        # Python remembers the directory that it found when the tests began.
        tempfile.tempdir = env.get("TMPDIR", tempfile.tempdir)
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        _open_streams()
        status = _command(words)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  nothing of the tests' may run in this process
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(status)


def _close_files() -> None:
    """Closes what the tests have open, but not packs.

    libgit2 has a table of the packs that this process has open. It would map another file
    under the same number, and SIGBUS ends the process where that one is shorter.
    """
    kept = [2]
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            if "/pack-" in os.readlink(f"/dev/fd/{name}"):
                kept.append(int(name))
    ends = [*sorted(kept), os.sysconf("SC_OPEN_MAX")]
    for number, following in itertools.pairwise(ends):
        os.closerange(number + 1, following)


def _open_streams() -> None:
    """Opens the streams as Python does in a UTF-8 locale without a terminal."""
    how: dict[str, Any] = {"encoding": "utf-8", "closefd": False}
    sys.stdin = os.fdopen(0, "r", errors="surrogateescape", **how)
    sys.stdout = os.fdopen(1, "w", errors="surrogateescape", **how)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", **how)


def _command(words: Sequence[str]) -> int:
    from gitcp.cli import main
    from gitcp.wal import background

    sys.argv = [str(Path(gitcp.__path__[0], "__main__.py")), *words]
    try:
        return main(words)
    finally:
        # What a process does at its end.
        background._at_exit()
        threading._shutdown()  # type: ignore[attr-defined]
