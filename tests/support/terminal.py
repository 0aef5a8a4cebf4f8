"""The command line at a terminal: in this process, or in one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import sys
import termios
from pathlib import Path
from unittest import mock

from gitcp.cli import main
from tests.support import forked
from tests.support.gitrepo import gitcp_environment


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def at_terminal(repo: Path, *args: str) -> tuple[int, str, str]:
    """Runs a command whose stderr is a terminal; returns its status and both outputs."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = Terminal(io.BytesIO(), encoding="utf-8")
    with (
        contextlib.chdir(repo),
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
    ):
        status = main(list(args))
    texts = []
    for stream in (out, err):
        stream.flush()
        raw = stream.buffer
        assert isinstance(raw, io.BytesIO)
        texts.append(raw.getvalue().decode())
    return status, texts[0], texts[1]


def on_screen(repo: Path, *args: str, answers: bytes = b"") -> tuple[int, str]:
    """Runs a command in a fork and at a terminal of its own, and types the answers.

    Returns its status and all that comes to its screen, as the command writes it.
    """
    ours, theirs = pty.openpty()
    mode = termios.tcgetattr(theirs)
    mode[1] &= ~termios.OPOST
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    env = gitcp_environment({"NO_COLOR": "1", "TERM": "dumb"})
    child = forked.start_at(repo, args, env, theirs)
    os.close(theirs)
    os.write(ours, answers)
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 65536):
            shown += chunk
    os.close(ours)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, shown.decode("utf-8", "replace")


def without_progress(text: str) -> str:
    """What was written to a terminal, without what steers gitcp's own line of progress."""
    return re.sub("\r([^\x00-\x1f]*)\x1b\\[K", r"\1", text)


def screen(text: str) -> str:
    """What a terminal shows in the end of what was written to it."""
    lines, column = [""], 0
    for part in re.findall(r"\r|\n|\x1b\[K|[^\r\n\x1b]+", text):
        line = lines[-1]
        if part == "\n":
            lines.append("")
            column = 0
        elif part == "\r":
            column = 0
        elif part == "\x1b[K":
            lines[-1] = line[:column]
        else:
            lines[-1] = line[:column] + part + line[column + len(part) :]
            column += len(part)
    return "\n".join(lines)
