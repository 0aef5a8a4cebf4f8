"""Purging, killed at any moment: all branches as they were, or all without the secret."""

from __future__ import annotations

import shutil

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
from tests.support.gitrepo import git, run_gitcp, write_files

MAIN, OTHER = "refs/gitcp/s/main/main", "refs/gitcp/s/main/try"
VALUE = b"k3J9dLq0" + b"Xz7Yv3Wn5Bt1"
PURGE = ("purge", "conf.ini", "--yes")


def scene(path):
    """Two branches that share history; both hold a file that is to go."""
    import gitcp

    repo = make_scene(path)
    session = gitcp.open(repo).session("main")
    write_files(repo, {"conf.ini": b"token=" + VALUE + b"\n"})
    for number in range(3):
        write_files(repo, {"edit.txt": b"%d\n" % number * 99})
        session.save(append=[{"n": number}])
    session.fork(next(session.checkpoints()), "try")
    write_files(repo, {"edit.txt": b"on the fork\n"})
    gitcp.open(repo).session("main", "try").save(append=[{"n": 9}])
    (repo / "conf.ini").unlink()
    return repo


def everything(repo):
    return git(repo, "cat-file", "--batch-all-objects", "--batch", "--unordered")


def killed(repo, step):
    user = users_state(repo)
    before = tip(repo, MAIN), tip(repo, OTHER)
    done = fresh(repo)
    assert run_gitcp(done, *PURGE).returncode == 0
    after = tip(done, MAIN), tip(done, OTHER)
    assert after != before
    points = every(calls(fresh(repo), *PURGE), step)
    count = []

    def one(point: Point) -> None:
        copy = fresh(repo)
        ended = inject(copy, point, "signal=KILL", *PURGE)
        count.append(ended.returncode == -9)
        fsck(copy)
        # Whoever comes next finishes what was decided.
        assert run_gitcp(copy, "verify").returncode == 0
        assert run_gitcp(copy, "gc").returncode == 0
        found = tip(copy, MAIN), tip(copy, OTHER)
        assert found in (before, after)
        again = run_gitcp(copy, *PURGE)
        # Where it was done there is nothing more to purge.
        assert again.returncode == (13 if found == after else 0), again.stderr
        assert (tip(copy, MAIN), tip(copy, OTHER)) == after
        assert VALUE not in everything(copy)
        assert users_state(copy) == user
        fsck(copy)
        assert run_gitcp(copy, "save").returncode == 0
        nothing_left(copy)
        shutil.rmtree(copy)

    in_parallel(one, points)
    assert sum(count) >= 0.8 * len(points) > 1


@needs_strace
def test_a_purge_killed_at_sampled_syscalls_is_done_or_not(tmp_path):
    killed(scene(tmp_path / "repo"), 40)


@needs_strace
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_purge_killed_at_every_syscall_is_done_or_not(tmp_path):
    killed(scene(tmp_path / "repo"), 1)
