"""Starts a program with pipes to its input and output; it shares our stderr."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gitcp import at_fork
from gitcp.git.command import unstartable

Program = subprocess.Popen[bytes]
_SIGNALLED = 128


def start(
    words: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    apart: bool = False,
) -> Program:
    """Starts a program; `apart` gives it a process group and session of its own.

    Raises:
        NotFoundError: the program cannot be started.
    """
    try:
        with at_fork.opening():
            program = subprocess.Popen(
                words,
                cwd=cwd,
                env=env,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=apart,
            )
            at_fork.started(program)
    except OSError as exc:
        raise unstartable(words, exc) from exc
    return program


def status(program: Program) -> int:
    """Waits for a program, and returns its exit status as a shell gives it."""
    code = program.wait()
    return _SIGNALLED - code if code < 0 else code
