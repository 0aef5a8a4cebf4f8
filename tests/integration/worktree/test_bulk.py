"""Files written in bulk: the same result, durable before any of them has its name."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gitcp.errors import CorruptError, StorageError
from gitcp.format.tree import Entry
from gitcp.git.discover import discover
from gitcp.worktree import apply as applying
from gitcp.worktree import bulk, disks, leftovers, one_step, proof, renames, replace
from gitcp.worktree import plan as plans
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, Left
from gitcp.worktree.read import Written
from tests.support import damage
from tests.support.gitrepo import (
    Executable,
    git,
    git_line,
    tree_bytes,
    write_files,
)
from tests.support.inprocess import fails, invoke, ok
from tests.support.snapshots import capture, side

FILES = {f"d{n % 7}/e{n % 3}/f{n}": b"%d\n" % n * n for n in range(40)}
WORKERS = pytest.mark.parametrize("workers", [1, 2, 4])


@pytest.fixture
def lowered(monkeypatch):
    """What few files are written in bulk, by two workers and in several batches."""
    monkeypatch.setattr(bulk, "AT_LEAST", 5)
    monkeypatch.setattr(bulk, "WORKERS", 2)
    monkeypatch.setattr(bulk, "AT_ONCE", 15)


@pytest.fixture
def wrecked(repo, lowered):
    """A plan that brings forty files back, of which twenty are gone and ten are edited."""
    write_files(repo, {**FILES, "tool": Executable(b"#!/bin/sh\n")})
    one = capture(repo)
    whole = tree_bytes(repo)
    shutil.rmtree(repo / "d1")
    shutil.rmtree(repo / "d2")
    (repo / "tool").unlink()
    write_files(repo, {f"d3/e0/f{n}": b"edited" for n in (3, 24)})
    (repo / "d4/e1/f4").chmod(0o755)
    two = capture(repo)
    objects = discover(repo).objects
    for snapshot in (one, two):
        objects.pin(snapshot.state.root)
    return repo, plans.make(side(two), side(one), objects.tree), whole


def without_mode(repo: Path) -> dict[bytes, bytes]:
    """What files hold; a mode is changed alone, before anything is written."""
    return {
        path: content
        for path, (kind, _, content) in tree_bytes(repo).items()
        if kind != "dir"
    }


def restored(repo: Path, plan: FilePlan, written: Written | None = None) -> list[Left]:
    objects = discover(repo).objects
    with Root(repo) as root:
        return applying.apply(
            root,
            plan,
            objects.stream,
            token="t",
            streams=objects.streams,
            written=written,
        )


@WORKERS
def test_it_writes_what_one_by_one_would(wrecked, monkeypatch, workers):
    repo, plan, whole = wrecked
    monkeypatch.setattr(bulk, "WORKERS", workers)
    gone = tree_bytes(repo)
    assert restored(repo, plan) == []
    assert tree_bytes(repo) == whole
    # Repeatable, and the way back is a plan like any other.
    assert restored(repo, plan) == []
    assert restored(repo, plan.reversed()) == []
    assert tree_bytes(repo) == gone


def test_no_file_has_its_name_before_all_is_synced_nor_is_done_before(
    wrecked, monkeypatch
):
    repo, plan, _ = wrecked
    order: list[str] = []
    sync, give = disks.sync_whole, one_step.give_name

    def synced(fd: int) -> None:
        waiting = {path.name for path in repo.rglob(".gitcp-tmp-*")}
        order.append(f"sync {len(waiting)}")
        sync(fd)

    def named(*args):
        order.append("name")
        return give(*args)

    monkeypatch.setattr(disks, "sync_whole", synced)
    monkeypatch.setattr(one_step, "give_name", named)
    assert restored(repo, plan) == []
    # Fifteen files with the names, in batches, and the names themselves at the end.
    files = sum(step.action == plans.WRITE for step in plan.steps)
    assert order[0] == "sync 15"
    assert order[1:16] == ["name"] * 15 or files < 15
    assert order.count("name") == files
    assert order[-1] == "sync 0"


def test_no_file_is_synced_alone(wrecked, monkeypatch):
    repo, plan, whole = wrecked

    def refuse(fd: int) -> None:
        raise AssertionError(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "fsync", refuse)
    assert restored(repo, plan) == []
    assert tree_bytes(repo) == whole


def test_each_is_synced_where_the_file_system_says_nothing_of_errors(
    wrecked, monkeypatch
):
    repo, plan, whole = wrecked
    monkeypatch.setattr(disks, "_is_synced_as_a_whole", lambda _: False)
    monkeypatch.setattr(disks, "sync_whole", None)
    seen: list[str] = []
    fsync = os.fsync

    def synced(fd: int) -> None:
        seen.append(os.readlink(f"/proc/self/fd/{fd}"))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", synced)
    assert restored(repo, plan) == []
    assert tree_bytes(repo) == whole
    files = sum(step.action == plans.WRITE for step in plan.steps)
    assert sum(".gitcp-tmp-" in name for name in seen) == files
    assert str(repo / "d1") in seen


@pytest.mark.parametrize("nth", [1, -1])
def test_an_error_of_the_sync_fails_the_restore(repo, lowered, monkeypatch, nth):
    """Before the first file has its name, and after the last one."""
    write_files(repo, FILES)
    ok(repo, "save")
    whole = tree_bytes(repo)
    shutil.rmtree(repo / "d1")
    sync = disks.sync_whole
    calls: list[int] = []

    def counted(fd: int) -> None:
        calls.append(fd)
        sync(fd)

    with monkeypatch.context() as patch:
        patch.setattr(disks, "sync_whole", counted)
        ok(repo, "restore", "-y", "1")
    count = len(calls)
    assert count >= 2
    shutil.rmtree(repo / "d1")
    known = len(ok(repo, "log")["checkpoints"])
    calls.clear()

    def failing(fd: int) -> None:
        calls.append(fd)
        if len(calls) == (nth if nth > 0 else count):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(fd)

    with monkeypatch.context() as patch:
        patch.setattr(disks, "sync_whole", failing)
        done = invoke(repo, "restore", "-y", "1")
    assert done.returncode == 20
    assert b"input/output error" in done.stderr
    assert b"`gitcp restore --continue` finishes it" in done.stderr
    # The state before it was saved, and no checkpoint says that it was restored.
    assert len(ok(repo, "log")["checkpoints"]) == known + 1
    assert not list(repo.rglob(".gitcp-tmp-*"))
    ok(repo, "restore", "--continue")
    assert tree_bytes(repo) == whole


def _unreadable() -> Iterator[bytes]:
    yield b"half of it"
    raise CorruptError("damaged", hint="none")


@WORKERS
def test_a_damaged_object_leaves_no_temporary_file(wrecked, monkeypatch, workers):
    repo, plan, _ = wrecked
    monkeypatch.setattr(bulk, "WORKERS", workers)
    objects = discover(repo).objects
    writes = [step for step in plan.steps if step.action == plans.WRITE]
    damaged = writes[-2].after
    assert damaged is not None
    streams = objects.streams

    def broken(oids):
        with closing(streams(oids)) as contents:
            for number, content in enumerate(contents):
                yield _unreadable() if number == 3 else content

    before = without_mode(repo)
    with Root(repo) as root, pytest.raises(CorruptError):
        applying.apply(root, plan, objects.stream, token="t", streams=broken)
    assert not list(repo.rglob(".gitcp-tmp-*"))
    after = without_mode(repo)
    assert {path: after[path] for path in before} == before
    with Root(repo) as root:
        left = applying.apply(
            root, plan, objects.stream, token="t", streams=broken, tolerant=True
        )
    assert all("cannot be read" in item.reason for item in left)
    assert left


def test_what_changes_before_a_file_gets_its_name_is_left(wrecked, monkeypatch):
    repo, plan, _ = wrecked
    sync = disks.sync_whole

    def meanwhile(fd: int) -> None:
        sync(fd)
        write_files(repo, {"d1/e1/f1": b"mine", "d3/e0/f3": b"mine too"})

    monkeypatch.setattr(disks, "sync_whole", meanwhile)
    monkeypatch.setattr(bulk, "AT_ONCE", 100)
    left = {item.path for item in restored(repo, plan)}
    assert left == {b"d1/e1/f1", b"d3/e0/f3"}
    assert (repo / "d1/e1/f1").read_bytes() == b"mine"
    assert (repo / "d3/e0/f3").read_bytes() == b"mine too"
    assert not list(repo.rglob(".gitcp-tmp-*"))


def test_a_disk_that_is_full_leaves_the_old_names(wrecked, monkeypatch):
    repo, plan, whole = wrecked
    before = without_mode(repo)

    def full(*_: object) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(renames, "_attempt", full)
        with pytest.raises(StorageError):
            restored(repo, plan)
    after = without_mode(repo)
    assert {path: after[path] for path in before} == before
    assert not list(repo.rglob(".gitcp-tmp*"))
    assert restored(repo, plan) == []
    assert tree_bytes(repo) == whole


def test_a_large_file_is_replaced_alone(wrecked, monkeypatch):
    """Of such files the disk need not hold two versions at once for long."""
    repo, plan, whole = wrecked
    monkeypatch.setattr(bulk, "ALONE", 3)
    written: Written = {}
    assert restored(repo, plan, written) == []
    assert tree_bytes(repo) == whole
    assert b"d3/e0/f24" not in written


def test_what_was_written_is_not_read_to_be_compared(repo, lowered, monkeypatch):
    write_files(repo, FILES)
    ok(repo, "save")
    whole = tree_bytes(repo)
    for name in ("d1", "d2"):
        shutil.rmtree(repo / name)
    opened: list[bytes] = []
    original = Root.open
    quiet = disks.sync_whole

    def noting(self, path):
        opened.append(path)
        return original(self, path)

    def slowly(fd: int) -> None:
        # A step of the clock passes between the last write and the first name.
        quiet(fd)
        _wait_for_a_tick(repo)

    def later(*args):
        # As it does between git's last write and the proof.
        for _ in range(2):
            _wait_for_a_tick(repo)
        return stats(*args)

    stats = proof.stats
    monkeypatch.setattr(proof, "stats", later)
    monkeypatch.setattr(Root, "open", noting)
    monkeypatch.setattr(disks, "sync_whole", slowly)
    ok(repo, "restore", "-y", "1")
    assert tree_bytes(repo) == whole
    assert not [path for path in opened if path.startswith((b"d1", b"d2"))]
    # The next save knows them, and sees what is edited.
    (repo / "d1/e1/f1").write_bytes(b"edited")
    saved = ok(repo, "save")["checkpoint"]
    assert saved["files"]["modified"] == 1


def _wait_for_a_tick(repo: Path) -> None:
    """Waits until a stamp of the disk is later than all so far by more than a step."""
    probe = repo.parent / "probe"
    probe.write_bytes(b"0")
    first = probe.stat().st_mtime_ns
    while probe.stat().st_mtime_ns <= first + replace._FINE_NS:
        probe.write_bytes(b"0")


@pytest.mark.parametrize("meanwhile", ["edit", "replace"])
def test_what_is_edited_after_it_was_written_is_seen(
    repo, lowered, monkeypatch, meanwhile
):
    write_files(repo, FILES)
    ok(repo, "save")
    shutil.rmtree(repo / "d1")
    file = repo / "d1/e1/f1"
    real = applying.apply
    quiet = disks.sync_whole

    def slowly(fd: int) -> None:
        quiet(fd)
        _wait_for_a_tick(repo)

    def then_edited(*args, **options):
        left = real(*args, **options)
        size = file.stat().st_size
        if meanwhile == "replace":
            file.unlink()
        file.write_bytes(b"x" * size)
        _wait_for_a_tick(repo)
        return left

    monkeypatch.setattr(disks, "sync_whole", slowly)
    monkeypatch.setattr(applying, "apply", then_edited)
    done = invoke(repo, "restore", "-y", "1")
    assert done.returncode == 3
    assert b"d1/e1/f1: differs from the checkpoint" in done.stderr


HELD = b"".join(b"%04d" % n for n in range(1000))


@pytest.mark.parametrize(
    ("content", "goes"),
    [
        (HELD, True),
        (HELD[:1500], True),
        (b"", True),
        (HELD[:1024] + bytes(1024) + HELD[2048:], True),
        (bytes(4000), True),
        (HELD[:1024] + bytes(600), True),
        (HELD[:1024] + bytes(300) + HELD[1324:], False),
        (HELD + b"\0", False),
        (b"x" + HELD[1:], False),
    ],
)
def test_what_a_power_cut_left_of_a_file_goes_and_no_other(repo, content, goes):
    """Sectors that were not written are zeros; an edit of the user's is not like that."""
    write_files(repo, {"f": HELD})
    one = capture(repo)
    (repo / "f").unlink()
    two = capture(repo)
    objects = discover(repo).objects
    for snapshot in (one, two):
        objects.pin(snapshot.state.root)
    plan = plans.make(side(two), side(one), objects.tree)
    name = os.fsdecode(replace.temporary_name("t", b"f"))
    (repo / name).write_bytes(content)
    with Root(repo) as root:
        left = leftovers.settle(root, plan, objects.stream, "t")
    assert not (repo / name).exists()
    # A new one is written again: it may not be on the disk.
    assert (repo / "f").exists() is not goes
    assert bool(left) is not goes
    assert isinstance(plan.steps[0].after, Entry)


@pytest.mark.parametrize("content", [None, b"other bytes"])
@pytest.mark.parametrize(
    "command",
    [
        ("restore", "1", "--to", "../there"),
        ("fork", "1", "new", "--worktree", "../there"),
        ("restore", "-y", "1"),
    ],
    ids=["to", "worktree", "here"],
)
def test_of_a_damaged_checkpoint_nothing_is_written(repo, lowered, command, content):
    """A blob that cannot be read, and one that git reads without a complaint."""
    write_files(repo, FILES)
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "all")
    ok(repo, "save")
    oid = git_line(repo, "rev-parse", "HEAD:d6/e1/f34")
    damage.explode(repo)
    if content is None:
        damage.empty(repo, oid)
    else:
        damage.replace_blob(repo, oid, content)
    for name in FILES:
        (repo / name).unlink()
    before = tree_bytes(repo)
    said = fails(repo, 15, *command)
    assert "d6/e1/f34" in said
    there = repo.parent / "there"
    assert not there.exists() or not list(there.iterdir())
    assert tree_bytes(repo) == before
    assert [row["name"] for row in ok(repo, "branches")["branches"]] == ["main"]
    assert len(git(repo, "worktree", "list").splitlines()) == 1


def test_a_fork_into_a_work_tree_is_written_in_bulk(repo, lowered):
    write_files(repo, FILES)
    ok(repo, "save")
    ok(repo, "fork", "1", "new", "--worktree", "../there")
    there = tree_bytes(repo.parent / "there")
    assert {
        path: node for path, node in there.items() if path != b".git"
    } == tree_bytes(repo)
    assert not ok(repo.parent / "there", "status")["changed"]
