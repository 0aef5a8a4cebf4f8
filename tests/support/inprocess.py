"""gitcp's command line in this process: many times faster than one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from gitcp.cli import main
from tests.support.gitrepo import Env


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


def invoke(
    cwd: Path,
    *args: str | bytes | Path,
    input: bytes | None = None,  # noqa: A002  the name subprocess uses
    env: Env | None = None,
) -> Done:
    """Runs one command as `run_gitcp` does."""
    streams = [io.TextIOWrapper(io.BytesIO(part or b"")) for part in (input, b"", b"")]
    for stream in streams[1:]:
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")
    names = ("stdin", "stdout", "stderr")
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(cwd))
        stack.enter_context(_environment(env or {}))
        for name, stream in zip(names, streams, strict=True):
            stack.enter_context(mock.patch.object(sys, name, stream))
        status = main([os.fsdecode(arg) for arg in args])
    outputs = []
    for stream in streams[1:]:
        stream.flush()
        buffer = stream.buffer
        assert isinstance(buffer, io.BytesIO)
        outputs.append(buffer.getvalue())
    return Done(status, *outputs)


@contextlib.contextmanager
def _environment(env: Env) -> Iterator[None]:
    """Variables of one command; those that are None are not set."""
    before = dict(os.environ)
    try:
        _become({**before, **env})
        yield
    finally:
        _become(before)


def _become(wanted: Env) -> None:
    # Only what differs: to write all variables each time would take longer than some commands.
    there = dict(os.environ)
    for name in {*there, *wanted}:
        value = wanted.get(name)
        if value is None:
            os.environ.pop(name, None)
        elif there.get(name) != value:
            os.environ[name] = value


def ok(
    cwd: Path,
    *args: str | bytes | Path,
    input: bytes | None = None,  # noqa: A002
    env: Env | None = None,
    status: int = 0,
) -> Any:
    """The JSON document of a command that must succeed, or end with a status."""
    done = invoke(cwd, args[0], "--json", *args[1:], input=input, env=env)
    assert done.returncode == status, (args, done.stdout, done.stderr)
    return json.loads(done.stdout)


def partly(cwd: Path, *args: str | bytes | Path) -> Any:
    """The JSON document of a command that must leave something out, and list it."""
    return ok(cwd, *args, status=3)


def fails(
    cwd: Path,
    status: int,
    *args: str | bytes | Path,
    input: bytes | None = None,  # noqa: A002
) -> str:
    """What a command says that must fail: one sentence, and the way out."""
    done = invoke(cwd, *args, input=input)
    said = done.stderr.decode("utf-8", "backslashreplace")
    assert done.returncode == status, (args, done.stdout, said)
    last = [line for line in said.splitlines() if line.startswith("gitcp: ")]
    assert last, said
    assert "Traceback" not in said
    return said
