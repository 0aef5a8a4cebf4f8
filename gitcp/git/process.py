"""The only module that starts git, with a cleaned environment."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from gitcp import at_fork
from gitcp.errors import (
    GitFailedError,
    GitStoppedError,
    GitTimeoutError,
    GitUnseenError,
)
from gitcp.git import migrating
from gitcp.git.launch import SAFE, Launched, environment

Process = subprocess.Popen[bytes]
# A git, whichever way it was started.
Running = Process | Launched
PIPE = subprocess.PIPE
NOTHING = subprocess.DEVNULL

# Seconds between two checks whether to stop a git.
_ASK = 0.1
# `git repack` writes its packs under other names first. A git that has seen such a name, and
# opens the pack after it got its own, says this.
_RENAMED = (": packfile ", ".pack cannot be accessed")
_READS = frozenset({"cat-file", "diff-tree", "ls-tree", "merge-base", "rev-list"})
_TRIES = 3


def start(
    args: Sequence[str | bytes],
    *,
    cwd: str | Path,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    limits: Sequence[str] | None = None,
    new_session: bool = False,
    inherited: Sequence[int] = (),
) -> Process:
    """Starts `git ARGS` and returns the process; stdout and stderr are pipes.

    `limits` are commands of a shell that becomes git after them: what they limit is
    limited for every helper that git starts, too. With `new_session` the process has no
    terminal, and a process group of its own. It and what it starts keep the descriptors
    `inherited` open.

    Raises:
        GitFailedError: there is no git executable, or the directory is gone.
    """
    words = [*SAFE, *args]
    if limits is None:
        command = ["git", *words]
    else:
        script = " && ".join([*limits, 'exec git "$@"'])
        command = ["sh", "-c", script, "git", *words]
    try:
        with at_fork.opening():
            started = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment(env),
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                start_new_session=new_session,
                pass_fds=inherited,
            )
            at_fork.started(started)
    except OSError as exc:
        raise GitFailedError(
            f"git could not be started in {cwd}: {exc.strerror}",
            hint="install git 2.32 or newer and put it on PATH",
        ) from exc
    return started


def detach(words: Sequence[str], *, cwd: str) -> None:
    """Runs a program that starts another one and ends, in a session of its own.

    Raises:
        OSError: the program cannot be started.
    """
    with at_fork.opening():
        started = subprocess.Popen(
            words,
            cwd=cwd,
            env=environment(),
            stdin=NOTHING,
            stdout=NOTHING,
            stderr=NOTHING,
            start_new_session=True,
        )
        at_fork.started(started)
    started.wait()


def start_program(
    args: Sequence[str],
    *,
    cwd: str | Path,
    stdin: int = subprocess.DEVNULL,
    inherit: Sequence[int] = (),
) -> Process:
    """Starts a program that is not git, in a process group of its own; stdout is a pipe.

    `inherit` are descriptors that it gets, with the same numbers.

    Raises:
        GitFailedError: the program cannot be started.
    """
    try:
        with at_fork.opening():
            started = subprocess.Popen(
                args,
                cwd=cwd,
                env=environment(),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=inherit,
            )
            at_fork.started(started)
    except OSError as exc:
        raise GitFailedError(
            f"{args[0]} could not be started: {exc.strerror}", hint="see `gitcp doctor`"
        ) from exc
    return started


def finish(
    process: Process,
    data: bytes | None = None,
    *,
    accept: Sequence[int] = (0,),
    timeout: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> bytes:
    """Feeds `data`, waits, and returns stdout; after `timeout` seconds the process is killed.

    It is killed as well when `stop`, which is polled, returns true.

    Raises:
        GitFailedError: the exit status is not in `accept`.
        GitTimeoutError: the program took too long.
        GitStoppedError: the caller asked it to stop.
    """
    try:
        out, err = _outcome(process, data, timeout, stop)
    except (subprocess.TimeoutExpired, GitStoppedError) as exc:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            # Data that git did not read is lost with it.
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        process.wait()
        if isinstance(exc, GitStoppedError):
            raise
        raise GitTimeoutError(
            f"git took more than {timeout:g} s", hint="a later run goes on"
        ) from exc
    if process.returncode not in accept:
        raise failure(process, err)
    return out


def outcome(running: Running) -> tuple[int, bytes, bytes]:
    """Waits for git; returns its status, its stdout and its stderr.

    Raises:
        ChildProcessError: as `Launched.outcome` does.
    """
    if isinstance(running, Launched):
        return running.outcome()
    out, err = running.communicate()
    return running.returncode, out, err


def result(running: Running, *, accept: Sequence[int] = (0,)) -> bytes:
    """Waits for git and returns its stdout.

    Raises:
        GitFailedError: the exit status is not in `accept`.
        ChildProcessError: as `Launched.outcome` does.
    """
    if not isinstance(running, Launched):
        return finish(running, accept=accept)
    status, out, err = running.outcome()
    if status not in accept:
        raise _failure(running.arguments, status, err)
    return out


def end(running: Running) -> None:
    """Ends a git whose answer is no longer needed."""
    running.kill()
    if not isinstance(running, Launched):
        running.communicate()


def _outcome(
    process: Process,
    data: bytes | None,
    timeout: float | None,
    stop: Callable[[], bool] | None,
) -> tuple[bytes, bytes]:
    """Waits for a process and returns what it printed, on stdout and on stderr."""
    if stop is None:
        return process.communicate(data, timeout=timeout)
    deadline = None if timeout is None else time.monotonic() + timeout
    while not stop():
        left = _ASK if deadline is None else min(_ASK, deadline - time.monotonic())
        try:
            return process.communicate(data, timeout=max(0.0, left))
        except subprocess.TimeoutExpired:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(process.args, timeout or 0) from None
        # It has been handed over; a second time would be an error.
        data = None
    raise GitStoppedError("git was stopped", hint="a later run goes on")


def failure(process: Process, err: bytes) -> GitFailedError:
    """Returns the error for a git process that failed."""
    args = process.args
    own = args[1 + len(SAFE) :] if isinstance(args, list) else ()
    return _failure(own, process.returncode, err)


def _failure(args: Sequence[str | bytes], status: int, err: bytes) -> GitFailedError:
    said = err.decode("utf-8", "replace").strip()
    reason = last_words(said) or _ending(status)
    kind = GitUnseenError if migrating.is_unseen(said) else GitFailedError
    return kind(
        f"git {_verb(args)} failed: {reason}",
        hint="run the same command by hand to see more; `gitcp doctor` checks the rest",
    )


def last_words(said: str) -> str:
    """Returns the last line of git's error, or all lines of a list there, as one."""
    lines = [line for line in said.splitlines() if line]
    first = max(
        (at for at, line in enumerate(lines) if not line.startswith("\t")), default=0
    )
    return " ".join(line.strip() for line in lines[first:])


def _verb(args: Sequence[str | bytes]) -> str:
    """Returns which of git's commands some arguments name."""
    words = iter(args)
    for word in words:
        if word == "-c":
            next(words, None)
        elif not (name := os.fsdecode(word)).startswith("-"):
            return name
    return "?"


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"it was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"it was killed by signal {-status}"


def run(
    args: Sequence[str | bytes],
    *,
    cwd: str | Path,
    env: Mapping[str, str] | None = None,
    data: bytes | None = None,
    accept: Sequence[int] = (0,),
    timeout: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> bytes:
    """Runs `git ARGS` and returns its stdout; after `timeout` seconds git is killed.

    A command that only reads is run again, at most twice, if another git has renamed a pack
    that it was about to open. Any command is run again if `git refs migrate` hid the
    repository from it.

    Raises:
        GitFailedError: git is missing, its exit status is not in `accept`, or it took too
            long (GitTimeoutError).
    """
    pipe = subprocess.DEVNULL if data is None else subprocess.PIPE
    tries = _TRIES if _verb(args) in _READS else 1
    patience: migrating.Patience | None = None
    while True:
        started = start(args, cwd=cwd, env=env, stdin=pipe)
        try:
            return finish(started, data, accept=accept, timeout=timeout, stop=stop)
        except GitUnseenError:
            patience = patience or migrating.Patience(Path(cwd), env)
            if not patience.lasts():
                raise
        except GitFailedError as exc:
            tries -= 1
            if not tries or not all(part in exc.message for part in _RENAMED):
                raise
