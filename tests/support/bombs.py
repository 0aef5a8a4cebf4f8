"""A few kilobytes that stand for more than any machine can hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from gitcp.format import log
from tests.support.forge import Entry, Forge
from tests.support.gitrepo import gitcp_argv, gitcp_environment

LIMIT = 512 * 1024 * 1024
_SHOWN = 1024 * 1024


def nested(forge: Forge, levels: int = 10, width: int = 10) -> list[Entry]:
    """Entries of a root tree below which lie width ** levels paths."""
    blob = forge.blob(b"x")
    entries: list[Entry] = [(b"100644", b"%02d" % n, blob) for n in range(width)]
    for _ in range(levels - 1):
        tree = forge.tree(entries)
        entries = [(b"40000", b"%02d" % n, tree) for n in range(width)]
    return entries


def long_log(
    forge: Forge,
    piece: bytes,
    times: int,
    *,
    session: str = "evil",
    kind: str = "messages",
) -> bytes:
    """A checkpoint whose conversation is one blob, listed many times."""
    oid = forge.blob(piece)
    digest = log.EMPTY_DIGEST
    for _ in range(times):
        digest = log.chain(digest, piece)
    totals = {
        "messages": piece.count(b"\n") * times,
        "bytes": len(piece) * times,
        "segments": times,
        "digest": digest,
    }
    meta = {"format": 1, "name": "main", "kind": kind, **totals, "agent_session": None}
    high = [
        (
            b"40000",
            b"%04x" % at,
            forge.tree(
                [
                    (b"100644", b"%02x.jsonl" % n, oid)
                    for n in range(min(256, times - at * 256))
                ]
            ),
        )
        for at in range((times + 255) // 256)
    ]
    source = forge.tree(
        [*high, (b"100644", b"meta.json", forge.blob(json.dumps(meta).encode()))]
    )
    logs = forge.tree(
        [(b"40000", b"conversation", forge.tree([(b"40000", b"main", source)]))]
    )
    said = {"source": "main", "kind": kind, **totals, "agent_session": None}
    return forge.checkpoint(
        session=session, own=[(b"40000", b"log", logs)], conversation=said
    )


class Ran(NamedTuple):
    """How a command ended, and the most memory that it or a child of it took, in bytes.

    `out` is the end of what it printed, `size` how much that was.
    """

    status: int
    out: bytes
    err: bytes
    peak: int
    size: int


# A process begins with the peak of the one that it was forked from, and tests need much.
_LAUNCHER = """
import os, sys
process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(process, 0)
with open(sys.argv[1], "w") as file:
    file.write(str(used.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""


def measured(
    repo: Path, *args: str | Path, timeout: float = 60, limit: int | None = 2 * LIMIT
) -> Ran:
    """Runs gitcp in a process of its own and measures it; `limit` is of its memory."""
    script = f'ulimit -v {limit // 1024} && exec "$@"' if limit else 'exec "$@"'
    out, err = repo.with_name("measured.out"), repo.with_name("measured.err")
    used = repo.with_name("measured.peak")
    command = ["timeout", str(timeout), "sh", "-c", script, "sh", *gitcp_argv(*args)]
    with out.open("wb") as one, err.open("wb") as two:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, used, *command],
            cwd=repo,
            env=gitcp_environment(),
            stdin=subprocess.DEVNULL,
            stdout=one,
            stderr=two,
            check=False,
        )
    peak = int(used.read_text()) * 1024
    size = out.stat().st_size
    with out.open("rb") as file:
        file.seek(max(0, size - _SHOWN))
        shown = file.read()
    return Ran(done.returncode, shown, err.read_bytes(), peak, size)
