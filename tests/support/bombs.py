"""A few kilobytes that stand for more than any machine can hold."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support.forge import Entry, Forge
from tests.support.gitrepo import gitcp_argv, gitcp_environment

LIMIT = 512 * 1024 * 1024


def nested(forge: Forge, levels: int = 10, width: int = 10) -> list[Entry]:
    """Entries of a root tree below which lie width ** levels paths."""
    blob = forge.blob(b"x")
    entries: list[Entry] = [(b"100644", b"%02d" % n, blob) for n in range(width)]
    for _ in range(levels - 1):
        tree = forge.tree(entries)
        entries = [(b"40000", b"%02d" % n, tree) for n in range(width)]
    return entries


class Ran(NamedTuple):
    """How a command ended, and the most memory that it or a child of it took, in bytes."""

    status: int
    out: bytes
    err: bytes
    peak: int


def measured(
    repo: Path, *args: str | Path, timeout: float = 60, limit: int | None = 2 * LIMIT
) -> Ran:
    """Runs gitcp in a process of its own and measures it; `limit` is of its memory."""
    script = f'ulimit -v {limit // 1024} && exec "$@"' if limit else 'exec "$@"'
    out, err = repo.with_name("measured.out"), repo.with_name("measured.err")
    with out.open("wb") as one, err.open("wb") as two:
        process = subprocess.Popen(
            ["timeout", str(timeout), "sh", "-c", script, "sh", *gitcp_argv(*args)],
            cwd=repo,
            env=gitcp_environment(),
            stdin=subprocess.DEVNULL,
            stdout=one,
            stderr=two,
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = used.ru_maxrss * 1024
    return Ran(process.returncode, out.read_bytes(), err.read_bytes(), peak)
