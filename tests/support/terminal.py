"""The command line in this process, with a terminal as its stderr."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from unittest import mock

from gitcp.cli import main


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
