"""Many at once, and beside the user's git: nothing acknowledged is lost."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fault.harness import (
    REF,
    check,
    fsck,
    ids,
    line,
    make_scene,
    nothing_left,
    rework,
    saved,
    tip,
    users_state,
)
from tests.support.gitrepo import (
    commit_all,
    git,
    git_line,
    gitcp_argv,
    gitcp_environment,
    make_repo,
    run_gitcp,
    tree_bytes,
    write_files,
)

# One process that saves again and again into one session and prints what it was told.
_SAVER = """
import os, sys, time
import gitcp
name, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
session = gitcp.open(".").session("main")
until = time.monotonic() + seconds
number = 0
while number < count or time.monotonic() < until:
    with open(f"by-{name}", "w") as file:
        file.write(f"{name} {number}\\n")
    print(session.save(append=[{"by": name, "n": number}], note=name).commit, flush=True)
    number += 1
"""


def saver(cwd: Path, name: str, count: int, seconds: float = 0) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _SAVER, name, str(count), str(seconds)],
        cwd=cwd,
        env=gitcp_environment({"GITCP_LOCK_TIMEOUT": "60s"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def acknowledged(savers: Sequence[subprocess.Popen]) -> list[str]:
    """Waits for all and returns what they were told; none may fail."""
    told: list[str] = []
    for process in savers:
        out, err = process.communicate(timeout=250)
        assert process.returncode == 0, err
        told += out.split()
    return told


def a_chain_of(repo: Path, told: Sequence[str]) -> None:
    """Every acknowledgement is one link of one line, and there is no other link."""
    chain = line(repo)
    assert sorted(chain) == sorted(told)
    assert len(set(ids(repo))) == len(chain)
    numbers = git_line(
        repo,
        "log",
        "--first-parent",
        "--format=%(trailers:key=Gitcp-Seq,valueonly,separator=)",
        "--committer=gitcp@localhost",
        REF,
    ).split()
    assert [int(n) for n in numbers] == list(range(len(told), 0, -1))


@contextmanager
def meanwhile(*works: Callable[[], None]) -> Iterator[list[int]]:
    """Repeats works in the background; yields how often each was done."""
    stop = threading.Event()
    done = [0] * len(works)
    failed: list[BaseException] = []

    def run(at: int) -> None:
        try:
            while not stop.is_set():
                works[at]()
                done[at] += 1
        except BaseException as exc:  # noqa: BLE001  shown below
            failed.append(exc)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(works))]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed, failed
    assert all(done)


def worktrees(repo: Path, count: int) -> list[Path]:
    made = [repo.with_name(f"worktree{number}") for number in range(count)]
    for path in made:
        git(repo, "worktree", "add", "--quiet", "--detach", path)
    return made


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_scene(tmp_path / "scene")


# --- 17 to 19: one branch, many writers ---------------------------------------------------


@pytest.mark.parametrize("saves", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_eight_processes_save_again_and_again_in_one_work_tree(repo, saves):
    user = users_state(repo)
    told = acknowledged([saver(repo, str(n), saves) for n in range(8)])
    assert len(told) == 8 * saves
    a_chain_of(repo, told)
    check(repo, user, told)


@pytest.mark.parametrize("saves", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_two_terminals_in_two_worktrees_of_one_session(repo, saves):
    """Nothing but the ref keeps them apart; each has its own files in its saves."""
    places = worktrees(repo, 2)
    user = users_state(repo)
    told = acknowledged([saver(place, str(n), saves) for n, place in enumerate(places)])
    assert len(told) == 2 * saves
    a_chain_of(repo, told)
    for commit in told[:: saves // 2]:
        page = git_line(repo, "cat-file", "blob", f"{commit}:.gitcp/summary.md")
        by = page.splitlines()[2]
        files = git_line(repo, "ls-tree", "--name-only", commit).split()
        assert f"by-{by}" in files
        assert f"by-{1 - int(by)}" not in files
    messages = git(repo, "cat-file", "blob", f"{REF}:.gitcp/checkpoint.json")
    assert b'"messages": %d,' % (2 * saves) in messages
    check(repo, user, told)


@pytest.mark.slow
def test_eight_worktrees_save_forty_times_into_one_session(repo):
    places = worktrees(repo, 8)
    told = acknowledged([saver(place, str(n), 40) for n, place in enumerate(places)])
    a_chain_of(repo, told)
    fsck(repo)


def test_no_decision_is_lost_to_a_save_under_way(repo):
    deciders = [
        subprocess.Popen(
            gitcp_argv(*command),
            cwd=repo,
            env=gitcp_environment(),
            stdout=subprocess.DEVNULL,
        )
        for number in range(6)
        for command in (["decide", f"number {number}."], ["save", "--allow-empty"])
    ]
    assert [process.wait(timeout=60) for process in deciders] == [0] * 12
    saved(repo, "--allow-empty")
    kept = git(repo, "grep", "-h", "number", REF, "--", ".gitcp/log/decisions")
    assert sorted(kept.count(b"number %d." % number) for number in range(6)) == [1] * 6


@pytest.mark.parametrize("saves", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_beside_pack_refs_and_update_ref(repo, saves):
    places = worktrees(repo, 2)

    def pack() -> None:
        git(repo, "pack-refs", "--all", "--prune", check=False)

    def update() -> None:
        git(repo, "update-ref", "refs/gitcp-test/x", "HEAD", check=False)
        now = tip(repo)
        if now is not None:
            # The same lock as gitcp's, for as long as git needs.
            git(repo, "update-ref", "--stdin", input=b"verify %s %s\n"
                % (REF.encode(), now.encode()), check=False)  # fmt: skip
            git(repo, "update-ref", REF, now, now, check=False)

    with meanwhile(pack, update):
        savers = [saver(place, str(n), saves) for n, place in enumerate(places)]
        told = acknowledged([*savers, saver(places[0], "again", saves)])
    assert len(told) == 3 * saves
    a_chain_of(repo, told)
    fsck(repo)
    nothing_left(repo)


def at_once(repo: Path, *commands: Sequence[str]) -> list[int]:
    """Starts them together and returns how each ended."""
    started = [
        subprocess.Popen(
            gitcp_argv(*command),
            cwd=repo,
            env=gitcp_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=None,
        )
        for command in commands
    ]
    return [process.wait(timeout=60) for process in started]


def test_a_session_made_by_four_at_once_is_one_line(repo):
    for turn in range(2):
        name = f"session{turn}"
        places = [("save", "-s", name, "--allow-empty", "-m", str(n)) for n in range(4)]
        started = at_once(repo, *places)
        assert started == [0] * 4
        assert len(line(repo, f"refs/gitcp/s/{name}/main")) == 4


def test_of_four_forks_with_one_name_exactly_one_wins(repo):
    saved(repo)
    for turn in range(2):
        fork = ("fork", "1", f"try{turn}", "--no-switch")
        started = at_once(repo, *[fork] * 4)
        codes = sorted(started)
        assert codes[0] == 0, codes
        assert set(codes[1:]) <= {2, 12}, codes
        assert codes.count(0) == 1
        made = line(repo, f"refs/gitcp/s/main/try{turn}")
        assert len(made) == 2
    fsck(repo)
    nothing_left(repo)


# Forks again and again, each time in the same instant as the others.
_FORKER = """
import sys, time
import gitcp
begin, turns = float(sys.argv[1]), int(sys.argv[2])
session = gitcp.open(".").session("main")
start = session.last
for turn in range(turns):
    at = begin + turn * 0.1
    time.sleep(max(0, at - time.time() - 0.005))
    while time.time() < at:
        pass
    try:
        session.fork(start, f"turn{turn}")
        print(turn, flush=True)
    except (gitcp.BranchMovedError, gitcp.UsageError):
        pass
"""


@pytest.mark.parametrize("turns", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_of_forks_in_the_same_instant_exactly_one_wins(repo, turns):
    saved(repo)
    forkers = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", _FORKER, str(time.time() + 1.5), str(turns)],
            cwd=repo,
            env=gitcp_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert sorted(map(int, acknowledged(forkers))) == list(range(turns))
    for turn in range(turns):
        assert len(line(repo, f"refs/gitcp/s/main/turn{turn}")) == 2


# --- 20, 21: the user's housekeeping --------------------------------------------------------


def beside(repo: Path, seconds: float, *commands: Sequence[str]) -> tuple[int, list]:
    """Saves from two worktrees while git cleans up; every answer must stay whole."""
    places = worktrees(repo, 2)

    def work(command: Sequence[str]) -> Callable[[], None]:
        return lambda: void(git(repo, *command, check=False))

    with meanwhile(*map(work, commands)) as done:
        savers = [saver(place, str(n), 5, seconds) for n, place in enumerate(places)]
        told = acknowledged(savers)
    a_chain_of(repo, told)
    fsck(repo)
    nothing_left(repo, packers=len(PACKERS.intersection(one[0] for one in commands)))
    # Whole is more than connected: every file of every checkpoint can be had.
    for commit in told[:: max(1, len(told) // 20)]:
        git(repo, "archive", "--format=tar", commit)
    return len(told), done


def void(_: object) -> None:
    return


# git commands that pack. Two of one kind count once: git runs one `gc` at a time.
PACKERS = {"gc", "maintenance", "repack"}
GC = ("gc", "--prune=now", "--quiet")
CLEANERS = [
    [("prune", "--expire=now"), ("pack-refs", "--all", "--prune")],
    [("repack", "-adfq"), ("maintenance", "run", "--quiet", "--task=gc")],
]


def test_gc_beside_saves(repo):
    told, done = beside(repo, 1.5, GC)
    assert told >= 10
    assert done[0] >= 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_three_hundred_gcs_beside_a_thousand_saves(repo):
    told, done = beside(repo, 120, GC, GC)
    assert told >= 1000
    assert sum(done) >= 300


@pytest.mark.parametrize("commands", CLEANERS, ids=["prune", "repack"])
def test_other_cleaners_beside_saves(repo, commands):
    told, _ = beside(repo, 1, *commands)
    assert told >= 10


@pytest.mark.slow
@pytest.mark.parametrize("commands", CLEANERS, ids=["prune", "repack"])
def test_other_cleaners_beside_saves_for_a_minute(repo, commands):
    told, _ = beside(repo, 60, *commands)
    assert told >= 200


# --- 22, 23: the user's git at work ------------------------------------------------------------


def test_a_held_index_lock_neither_stops_nor_delays_a_save(repo):
    saved(repo)
    # A command that waits for a lock waits longer than this test may take.
    git(repo, "config", "gitcp.lockTimeout", "3600")
    lock = repo / ".git" / "index.lock"
    lock.write_bytes(b"another's")
    user = users_state(repo)
    (repo / "edit.txt").write_text("two\n")
    saved(repo)
    assert users_state(repo) == user
    assert run_gitcp(repo, "restore", "1", "--yes").returncode == 0
    assert users_state(repo) == user


def test_saves_beside_commits(repo):
    git(repo, "config", "core.hooksPath", os.devnull)
    place = repo
    commits: list[str] = []

    def commit() -> None:
        (repo / "mine.txt").write_text(str(len(commits)))
        commits.append(commit_all(repo))

    with meanwhile(commit):
        told = acknowledged([saver(place, "0", 10)])
    a_chain_of(repo, told)
    assert git_line(repo, "rev-parse", "HEAD") == commits[-1]
    assert len(git_line(repo, "rev-list", "HEAD").split()) == len(commits) + 1
    fsck(repo)


HOOKS = ["pre-commit", "post-commit"]


def install(repo: Path, name: str) -> None:
    """A hook that saves; git sets GIT_DIR, GIT_INDEX_FILE and more for it."""
    python = shlex.join(map(str, gitcp_argv("save", "-m", f"in {name}")))
    hook = repo / ".git" / "hooks" / name
    hook.write_text(f"#!/bin/sh\nenv >{repo}.env\n{python} >>{repo}.out 2>&1\n")
    hook.chmod(0o755)


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("place", ["top", "subdirectory", "worktree"])
def test_a_save_inside_a_hook(tmp_path, name, place):
    repo = make_repo(tmp_path / "repo", {"file": b"one\n", "sub/file": b"one\n"})
    install(repo, name)
    where = worktrees(repo, 1)[0] if place == "worktree" else repo
    (where / "file").write_bytes(b"two\n")
    (where / "sub" / "file").write_bytes(b"two\n")
    cwd = where / "sub" if place == "subdirectory" else where
    # -a: the index that is committed is not .git/index, and index.lock is held.
    git(cwd, "commit", "-qam", "with a hook", env=gitcp_environment())
    out = Path(f"{repo}.out").read_bytes()
    assert out.startswith(b"Saved"), out
    assert b"GIT_INDEX_FILE=" in Path(f"{repo}.env").read_bytes()
    assert git_line(where, "log", "-1", "--format=%s") == "with a hook"
    assert git(where, "status", "--porcelain") == b""
    ref = "refs/gitcp/s/worktree0/main" if place == "worktree" else REF
    assert git(repo, "show", f"{ref}:file") == b"two\n"
    assert git(repo, "show", f"{ref}:sub/file") == b"two\n"
    base = git_line(
        repo, "log", "-1", "--format=%(trailers:key=Gitcp-Base,valueonly)", ref
    )
    now = "HEAD" if name == "post-commit" else "HEAD~1"
    assert base.strip() == git_line(where, "rev-parse", now)
    fsck(repo)


@pytest.mark.parametrize("name", HOOKS)
def test_a_save_of_another_repository_inside_a_hook(tmp_path, name):
    """GIT_DIR and GIT_INDEX_FILE of the commit under way lead to the wrong place."""
    other = make_repo(tmp_path / "other", {"file": b"other\n"})
    user = users_state(other)
    repo = make_repo(tmp_path / "repo", {"file": b"one\n"})
    place = repo.with_name("worktree0")
    git(repo, "worktree", "add", "--quiet", "--detach", place)
    hook = repo / ".git" / "hooks" / name
    save = shlex.join(map(str, gitcp_argv("-C", other, "save")))
    hook.write_text(f"#!/bin/sh\n{save} >{repo}.out 2>&1\n")
    hook.chmod(0o755)
    (place / "file").write_bytes(b"two\n")
    git(place, "commit", "-qam", "with a hook", env=gitcp_environment())
    assert Path(f"{repo}.out").read_bytes().startswith(b"Saved")
    assert git(other, "show", f"{REF}:file") == b"other\n"
    assert users_state(other) == user
    assert git(repo, "for-each-ref", "refs/gitcp") == b""


# --- 24: two at once in one work tree -------------------------------------------------------------


def test_a_restore_waits_for_a_save_and_gives_up_as_busy(repo):
    from gitcp import durable

    saved(repo)
    rework(repo)
    before = tree_bytes(repo)
    lock = durable.try_lock(repo / ".git" / "gitcp" / "worktree.lock")
    assert lock is not None
    brief = {"GITCP_LOCK_TIMEOUT": "200ms"}
    for command in (["restore", "1", "--yes"], ["save"]):
        done = run_gitcp(repo, *command, env=brief)
        assert done.returncode == 11, done.stderr
    assert tree_bytes(repo) == before
    os.close(lock)
    assert run_gitcp(repo, "restore", "1", "--yes").returncode == 0


def test_restores_and_saves_at_once_take_turns(repo):
    write_files(repo, {"edit.txt": b"first\n"})
    saved(repo)
    first = tree_bytes(repo)
    rework(repo)
    saved(repo)
    second = tree_bytes(repo)
    user = users_state(repo)
    for _ in range(2):
        started = at_once(
            repo,
            ["restore", "1", "--yes"],
            ["restore", "2", "--yes"],
            ["save", "--allow-empty"],
        )
        assert started == [0] * 3
        assert tree_bytes(repo) in (first, second)
    check(repo, user, [])
