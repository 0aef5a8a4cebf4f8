"""Refs in tables: git is killed while it moves one, and gitcp says how to go on.

gitcp has git change such refs (`update-ref --stdin`); here that process is killed at each
of its system calls in turn, while gitcp itself lives.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.fault.harness import (
    CHANGING,
    REF,
    Point,
    check,
    do_as_the_screen_says,
    fresh,
    fsck,
    line,
    make_scene,
    needs_strace,
    points_in,
    rework,
    saved,
    spread,
    tip,
    users_state,
)
from tests.support.gitrepo import run_gitcp, tree_bytes
from tests.support.hooks import program
from tests.support.needs import needs_reftable

pytestmark = needs_strace

SAVE = ("save", "-m", "under test")
RESTORE = ("restore", "1", "--yes")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    needs_reftable()
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    monkeypatch.setenv("GIT_DEFAULT_REF_FORMAT", "reftable")
    repo = make_scene(tmp_path / "scene")
    saved(repo)
    rework(repo)
    return repo


def run(repo: Path, args: tuple[str, ...], *strace: str) -> tuple[int, str]:
    """Runs gitcp; the first `update-ref` of it that git runs is traced."""
    real = shutil.which("git")
    place = repo.with_name(f"{repo.name}-bin")
    place.mkdir()
    options = " ".join(f"'{one}'" for one in strace)
    program(
        place / "git",
        f'case " $* " in *" update-ref "*) [ -e {place}/done ] || {{ : >{place}/done\n'
        f'exec strace -qq {options} {real} "$@"; }} ;; esac\nexec {real} "$@"',
    )
    done = run_gitcp(repo, *args, env={"PATH": f"{place}:{os.environ['PATH']}"})
    shutil.rmtree(place)
    return done.returncode, done.stderr.decode()


def calls_of_git(scene: Path, args: tuple[str, ...]) -> list[Point]:
    repo = fresh(scene)
    log = repo.with_name("update-ref.strace")
    names = ",".join(CHANGING)
    status, said = run(repo, args, "-y", "-o", str(log), "-e", f"trace={names}")
    assert status == 0, said
    return points_in(log, repo)


def killed_git(scene: Path, args: tuple[str, ...], count: int | None) -> None:
    acked, user = line(scene), users_state(scene)
    points = calls_of_git(scene, args)
    assert len(points) > 5
    files = tree_bytes(scene)
    locked = refused = 0
    for point in spread(points, count):
        repo = fresh(scene)
        at = f"inject={point.call}:signal=KILL:when={point.number}"
        status, said = run(
            repo, args, "-o", os.devnull, "-e", f"trace={point.call}", "-e", at
        )
        assert "Traceback" not in said, (point, said)
        # What git left is there once the lock is away, if it says so.
        refused += status != 0
        assert status in {0, 11, 20}, (point, status, said)
        locked += do_as_the_screen_says(repo)
        if args == SAVE:
            assert tree_bytes(repo) == files
            assert status != 0 or line(repo) != acked
        elif (repo / ".git/gitcp/restore.json").exists():
            ended = run_gitcp(repo, "restore", "--continue")
            assert ended.returncode == 0, (point, ended.stderr)
        check(repo, user, acked)
        shutil.rmtree(repo)
    print(f"{args[0]}: {len(points)} calls, {refused} refused, {locked} left a lock")
    assert locked


@pytest.mark.parametrize("args", [SAVE, RESTORE], ids=["save", "restore"])
def test_git_killed_at_sampled_calls_of_a_change_of_refs(scene, args):
    killed_git(scene, args, 4)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("args", [SAVE, RESTORE], ids=["save", "restore"])
def test_git_killed_at_every_call_of_a_change_of_refs(scene, args):
    killed_git(scene, args, None)


def test_a_lock_that_a_killed_git_left_is_named_and_never_broken(scene):
    before = tip(scene)
    lock = scene / ".git" / "reftable" / "tables.list.lock"
    lock.touch()
    assert do_as_the_screen_says(scene)
    assert tip(scene) == before
    saved(scene)
    assert tip(scene, f"{REF}~1") == before
    fsck(scene)
