"""A user's program that is killed: what it was told is kept, and its processes end."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gitcp.adapters.claude_sdk import GitcpSessionStore
from tests.support.gitrepo import PATIENCE, git, gitcp_environment

# --- a batch -------------------------------------------------------------------------

BATCH = """
import sys, gitcp
session = gitcp.open(sys.argv[1]).session("pipe")
with session.batch(range(2_000), every=50) as batch:
    for record in batch:
        with open(sys.argv[2], "a") as log:
            log.write(f"{record}\\n")
"""


def test_a_killed_batch_repeats_at_most_what_was_not_saved(repo, tmp_path):
    log = tmp_path / "processed"
    argv = [sys.executable, "-P", "-c", BATCH, str(repo), str(log)]
    for wanted in (300, 700, 1_200):
        with subprocess.Popen(argv, env=gitcp_environment()) as process:
            while process.poll() is None:
                count = log.read_bytes().count(b"\n") if log.exists() else 0
                if count >= wanted:
                    os.kill(process.pid, signal.SIGKILL)
                    break
    subprocess.run(argv, check=True, env=gitcp_environment())
    done = [int(line) for line in log.read_text().split()]
    assert sorted(set(done)) == list(range(2_000))
    # Each kill may repeat the records since the last save, and no more.
    assert len(done) - 2_000 <= 3 * 50


WORKERS = """
import multiprocessing, os, signal, sys, time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import gitcp

def announce(workers):
    (workers / str(os.getpid())).touch()

def work(workers, started, program, number):
    if not (workers / "killed").exists():
        while len(list(workers.iterdir())) < started:
            time.sleep(0.01)
        (workers / "killed").touch()
        os.kill(program, signal.SIGKILL)
    return number * number

if __name__ == "__main__":
    method, workers = sys.argv[1], Path(sys.argv[2])
    context = multiprocessing.get_context(method)
    pool = partial(ProcessPoolExecutor, 3, context, announce, (workers,))
    # A pool starts all its workers at once only if it forks them.
    square = partial(work, workers, 3 if method == "fork" else 1, os.getpid())
    with gitcp.open(".").session("pipe").batch(range(4), executor=pool) as batch:
        print(sorted(batch.map(square, chunksize=4)))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_end_with_a_killed_program(repo, tmp_path, method):
    """They hold its output open, so what reads that would wait for ever.

    Two of the three that are forked are never handed a record. A worker that a server of
    forks started is not the program's child; it works all the same.
    """
    script, workers = tmp_path / "program.py", tmp_path / "workers"
    script.write_text(WORKERS)
    workers.mkdir()
    done = [
        subprocess.run(
            [sys.executable, script, method, workers],
            cwd=repo, env=gitcp_environment(), capture_output=True, check=False,
            timeout=PATIENCE,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert done[0].returncode == -signal.SIGKILL
    assert (done[1].returncode, done[1].stderr) == (0, b"")
    assert done[1].stdout == b"[(0, 0), (1, 1), (2, 4), (3, 9)]\n"


# --- a session store of the Claude Agent SDK -----------------------------------------

KEY: Any = {"project_key": "p", "session_id": "s"}
WRITER = """
import asyncio, sys
from gitcp.adapters.claude_sdk import GitcpSessionStore
path, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
key = {"project_key": "p", "session_id": "s"}
async def work():
    store = GitcpSessionStore(path)
    for number in range(count):
        mine = {"type": "x", "uuid": f"{who}-{number}", "who": who, "n": number}
        shared = {"type": "x", "uuid": f"shared-{number}", "n": number}
        await store.append(key, [mine, shared])
        print(number, flush=True)
asyncio.run(work())
"""


def start(place: Path, who: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(place), who, str(count)],
        env=gitcp_environment(),
        stdout=subprocess.PIPE,
    )


def loaded(place: Path) -> Any:
    return asyncio.run(GitcpSessionStore(place).load(KEY))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """It is not there yet."""
    return tmp_path / "transcripts"


def test_several_processes_append_to_one_session(place):
    writers = [start(place, who, 15) for who in "abc"]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    found = loaded(place)
    for who in "abc":
        assert [one["n"] for one in found if one.get("who") == who] == list(range(15))
    shared = [one["n"] for one in found if "who" not in one]
    assert sorted(shared) == list(range(15))
    assert git(place, "fsck", "--strict", "--no-dangling") == b""


def test_what_was_acknowledged_survives_a_kill(place):
    """Killed at a moment of chance, again and again, on one store."""
    chance = random.Random(7)
    found: Any = None
    for attempt in range(4):
        writer = start(place, f"w{attempt}", 10_000)
        assert writer.stdout is not None
        acknowledged = -1
        for _ in range(chance.randint(1, 12)):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        writer.communicate()
        found = loaded(place)
        mine = [one["n"] for one in found if one.get("who") == f"w{attempt}"]
        assert mine == list(range(len(mine)))
        assert len(mine) > acknowledged
    git(place, "gc", "--quiet", "--prune=now")
    assert loaded(place) == found
    assert git(place, "fsck", "--strict", "--no-dangling") == b""
    more: Any = {"type": "user", "uuid": "00000000-0000-4000-8000-000000000001"}
    asyncio.run(GitcpSessionStore(place).append(KEY, [more]))
    assert not list((place / "refs").rglob("*.lock"))
