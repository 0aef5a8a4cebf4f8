"""Pruning and collecting, killed at any moment or beside writers: old or new, all there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fault.harness import (
    Point,
    calls,
    every,
    fresh,
    fsck,
    in_parallel,
    inject,
    make_scene,
    needs_strace,
    nothing_left,
    tip,
    users_state,
)
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_environment,
    run_gitcp,
    write_files,
)

MAIN, TRY = "refs/gitcp/s/main/main", "refs/gitcp/s/main/try"


def run(repo: Path, *args: str) -> bytes:
    done = run_gitcp(repo, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def scene(path: Path, *, pruned: bool = False) -> Path:
    """Two branches that share history, eight checkpoints each."""
    import gitcp

    repo = make_scene(path)
    session = gitcp.open(repo).session("main")
    for number in range(1, 13):
        write_files(repo, {"edit.txt": b"%d\n" % number * 999})
        made = session.save(append=[{"n": number}])
        if number == 4:
            session.fork(made, "try")
    branch = gitcp.open(repo).session("main", "try")
    for number in range(101, 107):
        write_files(repo, {"edit.txt": b"%d\n" % number * 999})
        branch.save(append=[{"n": number}])
    if pruned:
        run(repo, "prune", "--keep-last", "2", "-y")
    return repo


def held(repo: Path, ref: str) -> dict[str, tuple[str, str]]:
    """The tree and number of each checkpoint of a line, by id; by git's own reading."""
    out = git_line(
        repo,
        "log",
        "--committer=gitcp@localhost",
        "--format=%(trailers:key=Gitcp-Checkpoint,valueonly,separator=)"
        " %T %(trailers:key=Gitcp-Seq,valueonly,separator=)",
        ref,
    )
    rows = (line.split() for line in out.splitlines())
    return {row[0]: (row[1], row[2]) for row in rows}


PRUNE = ("prune", "--keep-last", "2", "-y")


def killed(repo: Path, step: int, args: tuple[str, ...], trial) -> None:
    points = every(calls(fresh(repo), *args), step)
    count = []

    def one(point: Point) -> None:
        copy = fresh(repo)
        done = inject(copy, point, "signal=KILL", *args)
        assert done.returncode in {0, -9}, done.stderr
        count.append(done.returncode == -9)
        trial(copy, done)
        shutil.rmtree(copy)

    in_parallel(one, points)
    assert sum(count) >= 0.9 * len(points) > 3


def killed_prune(tmp_path: Path, step: int) -> None:
    repo = scene(tmp_path / "scene")
    user = users_state(repo)
    old = {ref: held(repo, ref) for ref in (MAIN, TRY)}
    through = fresh(repo)
    run(through, *PRUNE)
    new = {ref: held(through, ref) for ref in (MAIN, TRY)}
    assert len(new[MAIN]) == 3 < len(old[MAIN])
    assert set(new[MAIN].items()) < set(old[MAIN].items())
    commits = {ref: tip(through, ref) for ref in (MAIN, TRY)}

    def trial(copy: Path, done) -> None:
        fsck(copy)
        # Whatever comes next finds both branches old, or both new.
        (copy / "edit.txt").write_text("next")
        run(copy, "save", "-s", "aside")
        now = {ref: held(copy, ref) for ref in (MAIN, TRY)}
        assert now in (old, new)
        if done.stdout:
            assert now == new
        nothing_left(copy)
        assert users_state(copy) == user
        run(copy, *PRUNE, "-s", "main")
        assert {ref: tip(copy, ref) for ref in (MAIN, TRY)} == commits
        run(copy, "gc")
        run(copy, "verify")
        fsck(copy)
        nothing_left(copy)

    killed(repo, step, PRUNE, trial)


@needs_strace
def test_killed_at_sampled_syscalls_of_a_prune(tmp_path):
    killed_prune(tmp_path, 13)


@needs_strace
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_every_syscall_of_a_prune(tmp_path):
    killed_prune(tmp_path, 1)


def killed_gc(tmp_path: Path, step: int) -> None:
    repo = scene(tmp_path / "scene", pruned=True)
    user = users_state(repo)
    now = {ref: held(repo, ref) for ref in (MAIN, TRY)}

    def trial(copy: Path, done) -> None:
        del done
        fsck(copy)
        run(copy, "verify")
        run(copy, "save", "--allow-empty", "-s", "aside")
        nothing_left(copy)
        assert {ref: held(copy, ref) for ref in (MAIN, TRY)} == now
        assert users_state(copy) == user
        run(copy, "gc")
        run(copy, "verify")
        fsck(copy)
        nothing_left(copy)
        packs = (copy / ".git/objects/pack").glob("*.pack")
        assert len(list(packs)) == 1

    killed(repo, step, ("gc",), trial)


@needs_strace
def test_killed_at_sampled_syscalls_of_a_gc(tmp_path):
    killed_gc(tmp_path, 19)


@needs_strace
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_every_syscall_of_a_gc(tmp_path):
    killed_gc(tmp_path, 1)


_SAVER = """
import os, sys
import gitcp
name, ended = sys.argv[1], sys.argv[2]
session = gitcp.open(".").session("main")
number = 0
while number < 4 or not os.path.exists(ended):
    with open(f"by-{name}", "w") as file:
        file.write(f"{name} {number} " * 999)
    print(session.save(append=[{"by": name, "n": number}], note=name).id, flush=True)
    number += 1
"""


def beside(repo: Path, savers: int, rounds: int, *commands: tuple[str, ...]) -> None:
    """Many processes save for as long as some commands are repeated."""
    places = [repo]
    for number in range(1, min(savers, 3)):
        places.append(repo.with_name(f"{repo.name}-{number}"))
        git(repo, "worktree", "add", "-q", "--detach", places[-1])
    ended = repo.with_name(f"{repo.name}.ended")
    patient = {"GITCP_LOCK_TIMEOUT": "100s"}
    running = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", _SAVER, str(number), str(ended)],
            cwd=places[number % len(places)],
            env=gitcp_environment(patient),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(savers)
    ]
    told: list[str] = []
    try:
        done = 0
        while done < rounds:
            codes = [run_gitcp(repo, *one, env=patient) for one in commands]
            # 11: git used a pack just then.
            failed = [one.stderr for one in codes if one.returncode not in {0, 11}]
            assert not failed, failed
            done += all(one.returncode == 0 for one in codes)
    finally:
        ended.touch()
        for process in running:
            out, err = process.communicate(timeout=280)
            assert process.returncode == 0, err
            told += out.split()
    assert len(set(told)) == len(told)
    # Nothing acknowledged is lost: the newest has every message of all of them.
    newest = git_line(repo, "cat-file", "blob", f"{MAIN}:.gitcp/checkpoint.json")
    assert f'"messages": {len(told)},' in newest
    assert f'"seq": {len(told)},' in newest
    assert set(held(repo, MAIN)) <= set(told)
    run(repo, "verify")
    fsck(repo)


def tidy(repo: Path) -> None:
    """The next save leaves nothing over; git's own gc has ended, its packs are whole."""
    run(repo, "save", "--allow-empty")
    nothing_left(repo)


def test_eight_savers_beside_prunes_and_gcs(tmp_path):
    repo = make_scene(tmp_path / "scene")
    beside(repo, 8, 3, ("prune", "--keep-last", "3", "-y"), ("gc",))
    tidy(repo)


def test_savers_that_prune_by_themselves(tmp_path):
    repo = make_scene(tmp_path / "scene")
    git(repo, "config", "gitcp.maxCheckpoints", "4")
    beside(repo, 4, 3, ("gc",))
    # Two housekeepers at once leave it to the next save.
    tidy(repo)
    assert len(held(repo, MAIN)) == 4


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_eight_savers_beside_prunes_and_gcs_and_gits_own(tmp_path):
    for turn in range(5):
        repo = make_scene(tmp_path / f"scene{turn}")
        stop = threading.Event()

        def collect(repo: Path = repo, stop: threading.Event = stop) -> None:
            while not stop.is_set():
                git(repo, "gc", "-q", "--prune=now", check=False)

        thread = threading.Thread(target=collect)
        thread.start()
        try:
            beside(repo, 8, 10, ("prune", "--keep-last", "3", "-y"), ("gc",))
        finally:
            stop.set()
            thread.join()
        tidy(repo)
