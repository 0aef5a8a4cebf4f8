"""A reader of a branch never finds it broken while it is pruned and collected."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gitcp
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_argv,
    gitcp_environment,
    make_repo,
    run_gitcp,
)

PATIENT = {"GITCP_LOCK_TIMEOUT": "100s"}
HURRIED = {"GITCP_LOCK_TIMEOUT": "0.3s"}
BUSY = 11


def run(repo: Path, *args: str, status: int = 0) -> bytes:
    done = run_gitcp(repo, *args, env=HURRIED if status == BUSY else PATIENT)
    assert done.returncode == status, done.stderr
    return done.stdout


# libgit2 keeps the packs that a process has read, for all who read in it later. So it is
# another process that writes.
WRITER = """
import pathlib, sys
import gitcp

top = pathlib.Path(sys.argv[1])
session = gitcp.open(top).session("main")
for number in range(1, 31):
    (top / "a.txt").write_bytes(b"%d\\n" % number * 99)
    made = session.save(append=[{"n": number}], note=f"{number}: {'x' * 3000}")
    if number == 10:
        session.fork(made, "try")
"""


@pytest.fixture
def repo(tmp_path):
    repo = make_repo(tmp_path / "repo", {"a.txt": b"0\n"})
    argv = [sys.executable, "-c", WRITER, str(repo)]
    subprocess.run(argv, check=True, env=gitcp_environment(), timeout=120)
    return repo


def listed(repo: Path) -> list[int]:
    """What a walk that begins now lists."""
    return [one.seq for one in gitcp.open(repo).session("main").checkpoints()]


# A process keeps the packs that it has read from: `gc` takes their names away and gives
# their space back when the process ends. So a walk lists what lies in the same packs as what
# it has seen, and then what is left. How much that is depends on which packs were merged;
# that nothing in between is missing does not.


def test_a_walk_continues_with_what_a_prune_leaves(repo):
    walk = gitcp.open(repo).session("main").checkpoints()
    seen = [next(walk).seq for _ in range(5)]
    run(repo, "prune", "--keep-last", "3", "-y")
    run(repo, "gc")
    seen += [one.seq for one in walk]
    # 10 is where the fork begins: it stays.
    assert seen.pop() == 10
    assert 5 <= len(seen) <= 20
    assert seen == list(range(30, 30 - len(seen), -1))
    assert listed(repo) == [30, 29, 28, 10]


def test_a_walk_ends_where_a_pruning_leaves_nothing_before(repo):
    git(repo, "update-ref", "-d", "refs/gitcp/s/main/try")
    walk = gitcp.open(repo).session("main").checkpoints()
    seen = [next(walk).seq for _ in range(5)]
    run(repo, "prune", "--keep-last", "3", "-y")
    run(repo, "gc")
    seen += [one.seq for one in walk]
    assert 5 <= len(seen) < 30
    assert seen == list(range(30, 30 - len(seen), -1))
    assert listed(repo) == [30, 29, 28]


def test_a_commit_that_is_lost_is_told_and_passed_over(repo):
    gone = git_line(repo, "rev-parse", "refs/gitcp/s/main/main~8")
    for pack in (repo / ".git/objects/pack").glob("*.pack"):
        moved = pack.rename(repo / pack.name)
        git(repo, "unpack-objects", "-q", input=moved.read_bytes())
        pack.with_suffix(".idx").unlink()
    (repo / ".git/objects" / gone[:2] / gone[2:]).unlink()
    with pytest.warns(gitcp.GitcpWarning, match=gone):
        found = [one.seq for one in gitcp.open(repo).session("main").checkpoints()]
    assert found == [number for number in range(30, 0, -1) if number != 22]


def slow_reader(repo: Path) -> subprocess.Popen[bytes]:
    """A `gitcp log` that has begun, and waits for its output to be read."""
    out, into = os.pipe()
    # The smallest there is: a line is printed before the next checkpoint is read.
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    started = subprocess.Popen(
        gitcp_argv("log", "-s", "main"),
        cwd=repo,
        env=gitcp_environment({"COLUMNS": "1500"}),
        stdout=into,
        stderr=subprocess.PIPE,
    )
    os.close(into)
    started.stdout = os.fdopen(out, "rb", buffering=0)
    assert started.stdout.read(500)
    return started


def the_rest(reader: subprocess.Popen[bytes]) -> int:
    """Lets it go on; returns how many checkpoints it listed."""
    with reader:
        out, err = reader.communicate(timeout=100)
    assert reader.returncode == 0, err
    # Only a part of the first line was read before.
    return out.count(b"\n")


def test_gc_waits_for_readers(repo):
    reader = slow_reader(repo)
    run(repo, "prune", "--keep-last", "3", "-y")
    # Twice: who was waited for in vain is not forgotten.
    run(repo, "gc", status=BUSY)
    run(repo, "gc", status=BUSY)
    assert the_rest(reader) == 30
    run(repo, "gc")
    assert not list((repo / ".git/gitcp").glob("readers-*"))
    assert b'"dropped":0' in run(repo, "gc", "--json").replace(b" ", b"")


def test_gc_does_not_wait_for_a_reader_that_was_killed(repo):
    reader = slow_reader(repo)
    run(repo, "prune", "--keep-last", "3", "-y")
    run(repo, "gc", status=BUSY)
    reader.kill()
    with reader:
        reader.communicate()
    run(repo, "gc")


def test_gc_does_not_wait_for_those_who_come_later(repo):
    first = slow_reader(repo)
    collecting = subprocess.Popen(
        gitcp_argv("gc"), cwd=repo, env=gitcp_environment(PATIENT)
    )
    try:
        while not list((repo / ".git/gitcp").glob("readers-*")):
            assert collecting.poll() is None
            time.sleep(0.01)
        later = slow_reader(repo)
        assert collecting.poll() is None
        assert the_rest(first) == 30
        assert collecting.wait(100) == 0
        assert the_rest(later) == 30
    finally:
        collecting.kill()
        collecting.wait()


def test_looking_where_nothing_can_be_written_works(repo):
    store = repo / ".git/gitcp"
    store.rename(repo / ".git/was")
    assert run(repo, "log", "--json").count(b'"seq"') == 30
    assert not store.exists()


_LOOKS = """
import os, sys
from gitcp.cli.app import run
ended, *looks = sys.argv[1:]
turns = 0
while turns < 2 or not os.path.exists(ended):
    for look in looks:
        status = run(look.split())
        if status:
            sys.exit(f"{look}: {status}")
    turns += 1
"""
_SAVES = """
import os, sys
import gitcp
session = gitcp.open(".").session("main")
number = 0
while not os.path.exists(sys.argv[1]):
    with open("a.txt", "w") as file:
        file.write(f"{number} " * 999)
    session.save(append=[{"n": number}])
    number += 1
    for found in session.checkpoints():
        found.seq
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_look_succeeds_beside_saves_prunings_and_collections(repo, tmp_path):
    ended = tmp_path / "ended"
    looks = (
        ["log", "log --json --all", "show", "sessions", "messages", "files", "context"],
        ["diff ~2", "decisions", "verify", "du", "status", "restore last --dry-run"],
        [
            f"export last -o {tmp_path}/main.bundle --force",
            "log -s main/try",
            "show ~1",
        ],
    )
    programs = [(_SAVES, []), *((_LOOKS, some) for some in looks)]
    running = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", text, str(ended), *some],
            cwd=repo,
            env=gitcp_environment(PATIENT),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for text, some in programs
    ]
    try:
        for _ in range(25):
            run(repo, "prune", "--keep-last", "3", "-y")
            # 11: git used a pack just then.
            assert run_gitcp(repo, "gc", env=PATIENT).returncode in {0, BUSY}
    finally:
        ended.touch()
        for process in running:
            _, err = process.communicate(timeout=300)
            assert process.returncode == 0, err[-2000:]
