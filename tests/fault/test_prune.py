"""Pruning and collecting beside writers: nothing acknowledged is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fault.harness import (
    fsck,
    make_scene,
    nothing_left,
)
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_environment,
    run_gitcp,
)

MAIN, TRY = "refs/gitcp/s/main/main", "refs/gitcp/s/main/try"


def run(repo: Path, *args: str) -> bytes:
    done = run_gitcp(repo, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


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


def tidy(repo: Path) -> None:
    """The next save leaves nothing over; git's own gc has ended, its packs are whole.

    `git fsck` fails if a repack renames a pack meanwhile.
    """
    run(repo, "save", "--allow-empty")
    nothing_left(repo)
    fsck(repo)


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
