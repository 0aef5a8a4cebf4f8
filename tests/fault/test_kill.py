"""Killed at any moment: the old state or the new one, and nothing to repair by hand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fault.harness import (
    REF,
    Point,
    Scene,
    calls,
    check,
    fresh,
    in_parallel,
    inject,
    line,
    make_scene,
    needs_strace,
    nothing_left,
    rework,
    saved,
    spread,
    tip,
    users_state,
)
from tests.support.gitrepo import git, git_line, run_gitcp, tree_bytes
from tests.support.inprocess import invoke

pytestmark = needs_strace

KILL = "signal=KILL"
KILLED = -9
INTERRUPTED = 130
RESTORE = ("restore", "1", "--yes")


@pytest.fixture
def saving(tmp_path: Path) -> Scene:
    repo = make_scene(tmp_path / "scene")
    saved(repo)
    rework(repo)
    run_gitcp(repo, "decide", "this waits for the next save")
    return Scene(repo, users_state(repo), line(repo), tree_bytes(repo), {})


def sweep(scene: Scene, count: int | None, args: tuple[str, ...], trial) -> None:
    points = spread(calls(fresh(scene.repo), *args), count)
    killed = []

    def one(point: Point) -> None:
        repo = fresh(scene.repo)
        done = inject(repo, point, KILL, *args)
        assert done.returncode in {0, KILLED}, done.stderr
        killed.append(done.returncode == KILLED)
        trial(repo, done)
        shutil.rmtree(repo)

    in_parallel(one, points)
    assert sum(killed) >= 0.8 * len(points) > 3


def killed_save(scene: Scene, count: int | None) -> None:
    def trial(repo: Path, done) -> None:
        new = tip(repo) != scene.acked[0]
        if done.stdout:
            assert new, "acknowledged and lost"
        if new:
            assert line(repo)[1:] == scene.acked
            decided = git_line(repo, "ls-tree", "-r", "--name-only", REF)
            assert ".gitcp/log/decisions/main/meta.json" in decided
        assert tree_bytes(repo) == scene.before
        check(repo, scene.user, scene.acked)
        once = git(repo, "grep", "-h", "this waits", REF, "--", ".gitcp/log")
        assert once.count(b"this waits") == 1

    sweep(scene, count, ("save", "-m", "under test"), trial)


def test_kill_at_sampled_syscalls_of_save(saving):
    killed_save(saving, 6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kill_at_every_syscall_of_save(saving):
    killed_save(saving, None)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kill_at_every_syscall_of_the_first_save(tmp_path):
    repo = make_scene(tmp_path / "scene")
    scene = Scene(repo, users_state(repo), [], tree_bytes(repo), {})

    def trial(repo: Path, done) -> None:
        assert tip(repo) is not None or not done.stdout
        check(repo, scene.user, [])

    sweep(scene, None, ("save",), trial)


def merging(tmp_path: Path) -> Scene:
    """A save that finds more packs than may stand, and merges them."""
    import gitcp

    repo = make_scene(tmp_path / "scene")
    session = gitcp.open(repo).session("main")
    for number in range(20):
        session.save(append=[{"n": number}], note="words " * 100)
    rework(repo)
    return Scene(repo, users_state(repo), line(repo), tree_bytes(repo), {})


def killed_merge(scene: Scene, count: int | None) -> None:
    packs = len(list((scene.repo / ".git" / "objects" / "pack").glob("*.pack")))
    through = fresh(scene.repo)
    saved(through)
    assert len(list((through / ".git" / "objects" / "pack").glob("*.pack"))) < packs

    def trial(repo: Path, done) -> None:
        new = tip(repo) != scene.acked[0]
        assert new or not done.stdout
        check(repo, scene.user, scene.acked)

    sweep(scene, count, ("save",), trial)


def test_kill_at_sampled_syscalls_of_a_merge_of_packs(tmp_path):
    killed_merge(merging(tmp_path), 6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kill_at_every_syscall_of_a_merge_of_packs(tmp_path):
    killed_merge(merging(tmp_path), None)


@pytest.mark.ref_files
def test_lock_of_a_killed_gitcp_is_recovered(saving):
    points = calls(fresh(saving.repo), "save")
    # The rename of the lock is the commit point; killed on entry, the lock stands.
    (move,) = [p for p in points if p.call == "rename" and "main.lock" in p.line]
    assert inject(saving.repo, move, KILL, "save").returncode == KILLED
    assert (saving.repo / ".git" / f"{REF}.lock").exists()
    assert line(saving.repo) == saving.acked
    check(saving.repo, saving.user, saving.acked)


@pytest.mark.ref_files
def test_lock_of_a_killed_gitcp_is_recovered_in_its_way(saving, tmp_path):
    """Not by the sweep at the start, but where the lock is met."""
    from gitcp.git.discover import discover
    from gitcp.git.transaction import transaction

    found = discover(saving.repo)
    with transaction(found) as opened:
        dead = found.store_dir / "tmp" / "dead"
        dead.mkdir()
        (dead / "owner").touch()
        (dead / "ref").write_text("x")
        lock = found.common_dir / f"{REF}.lock"
        lock.hardlink_to(dead / "ref")
        old = found.refs.read(REF)
        assert old is not None
        found.refs.compare_and_swap(
            REF, expect=old, new=old, staged=opened.scratch / "ref"
        )
    assert not lock.exists()


@pytest.mark.ref_files
@pytest.mark.parametrize("whose", ["foreign", "live"])
def test_a_lock_of_another_program_is_never_broken(saving, whose):
    from gitcp import durable

    lock = saving.repo / ".git" / f"{REF}.lock"
    if whose == "foreign":
        lock.touch()
        owner = None
    else:
        other = saving.repo / ".git" / "gitcp" / "tmp" / "other"
        other.mkdir()
        (other / "ref").write_text("x")
        lock.hardlink_to(other / "ref")
        owner = durable.try_lock(other / "owner")
        assert owner is not None
    done = run_gitcp(
        saving.repo, "save", env={"GITCP_LOCK_TIMEOUT": "300ms"}, timeout=5
    )
    assert done.returncode == 11, done.stderr
    assert b"main.lock" in done.stderr
    assert lock.exists()
    assert line(saving.repo) == saving.acked
    lock.unlink()
    if owner is not None:
        import os

        os.close(owner)
    check(saving.repo, saving.user, saving.acked)


def test_what_is_in_use_is_not_swept(saving):
    from gitcp.git.discover import discover
    from gitcp.git.transaction import transaction

    found = discover(saving.repo)
    with transaction(found) as opened:
        opened.add_blob(b"kept")
        (opened.scratch / "ref").write_text("in use")
        saved(saving.repo)
        assert (opened.scratch / "ref").exists()
    nothing_left(saving.repo)


def test_half_a_pack_is_removed(saving):
    points = calls(fresh(saving.repo), "save")
    (move,) = [p for p in points if p.call == "rename" and "idx.tmp" in p.line]
    assert inject(saving.repo, move, KILL, "save").returncode == KILLED
    packs = saving.repo / ".git" / "objects" / "pack"
    assert len(list(packs.glob("*.pack"))) == len(list(packs.glob("*.idx"))) + 1
    check(saving.repo, saving.user, saving.acked)
    done = subprocess.run(
        ["git", "count-objects", "-v"], cwd=saving.repo, capture_output=True, check=True
    )
    assert b"garbage: 0" in done.stdout


def test_an_interrupt_of_gc_puts_the_pack_back_that_was_leaving(saving, monkeypatch):
    from gitcp.git import drop_unreachable as reclaim

    def interrupt(directory, name):
        raise KeyboardInterrupt

    saved(saving.repo)
    monkeypatch.setattr(reclaim, "discard", interrupt)
    assert invoke(saving.repo, "gc").returncode == INTERRUPTED
    nothing_left(saving.repo)
    monkeypatch.undo()
    check(saving.repo, saving.user, saving.acked)


def test_an_interrupt_right_after_a_pack_is_kept_leaves_no_keep(saving, monkeypatch):
    from gitcp import durable

    original = durable.link

    def interrupt(source, target):
        original(source, target)
        if target.suffix == ".keep":
            raise KeyboardInterrupt

    monkeypatch.setattr(durable, "link", interrupt)
    assert invoke(saving.repo, "save").returncode == INTERRUPTED
    monkeypatch.undo()
    nothing_left(saving.repo)
    check(saving.repo, saving.user, saving.acked)
