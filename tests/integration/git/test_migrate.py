"""`git refs migrate` moves the refs of a repository that gitcp has its data in."""

from __future__ import annotations

import os
import shutil
import threading
import time

import pytest

import gitcp
from gitcp.errors import BusyError
from gitcp.git.discover import discover
from gitcp.git.ref_storage import RefsMovedError
from gitcp.git.refs import FileRefs
from gitcp.git.transaction import transaction
from tests.support.gitrepo import (
    commit_all,
    git,
    git_line,
    make_repo,
    run_gitcp,
    tree_bytes,
    write_files,
)
from tests.support.inprocess import fails, invoke, ok
from tests.support.needs import needs_migrate

REF = "refs/gitcp/s/main/main"


@pytest.fixture
def top(tmp_path):
    top = make_repo(tmp_path / "r", {"f": b"0"})
    ok(top, "save", "-m", "one")
    return top


def migrated(top, *without: str) -> None:
    """Does to files what a migration there and back does; leaves out some refs."""
    refs = top / ".git" / "refs"
    other = top / ".git" / "ref_migration.test"
    shutil.copytree(refs, other)
    for name in without:
        (other.parent / other.name / name.removeprefix("refs/")).unlink()
    shutil.rmtree(refs)
    other.rename(refs)


def test_a_ref_that_a_migration_left_behind_is_moved_again(top, monkeypatch):
    """The new value is written while git has read the old ones already."""
    repository = discover(top)
    head = git_line(top, "rev-parse", "@")
    sync = FileRefs._sync

    def and_migrate(refs, path):
        sync(refs, path)
        monkeypatch.undo()
        migrated(top, "refs/gitcp/s/main/new")

    monkeypatch.setattr(FileRefs, "_sync", and_migrate)
    with transaction(repository) as txn:
        txn.move_ref("refs/gitcp/s/main/new", expect=None, new=head)
    assert git_line(top, "rev-parse", "refs/gitcp/s/main/new") == head
    assert repository.refs.read("refs/gitcp/s/main/new") == head


def test_a_ref_that_a_migration_took_along_is_not_moved_twice(top, monkeypatch):
    repository = discover(top)
    before = repository.refs.read(REF)
    sync = FileRefs._sync

    def and_migrate(refs, path):
        sync(refs, path)
        monkeypatch.undo()
        migrated(top)

    monkeypatch.setattr(FileRefs, "_sync", and_migrate)
    write_files(top, {"f": b"1"})
    ok(top, "save", "-m", "two")
    tip = git_line(top, "rev-parse", REF)
    assert git_line(top, "rev-parse", f"{REF}^") == before
    assert ok(top, "show", "last")["checkpoint"]["commit"] == tip


def test_what_was_read_while_refs_were_moved_is_not_believed(top):
    refs = discover(top).refs
    migrated(top)
    for look in (
        lambda: refs.read("refs/gitcp/s/main/other"),
        lambda: refs.list("refs/gitcp/"),
        lambda: refs.symbolic("REBASE_HEAD"),
    ):
        with pytest.raises(RefsMovedError, match="has moved the refs"):
            look()


def test_a_change_waits_until_a_migration_has_ended(top):
    repository = discover(top)
    head = git_line(top, "rev-parse", "@")
    other = top / ".git" / "ref_migration.x"
    other.mkdir()
    ended = threading.Event()

    def end() -> None:
        time.sleep(0.2)
        ended.set()
        other.rmdir()

    thread = threading.Thread(target=end)
    thread.start()
    with transaction(repository) as txn:
        txn.move_ref("refs/gitcp/s/main/new", expect=None, new=head)
    assert ended.is_set()
    thread.join()


def test_a_change_is_refused_while_a_migration_goes_on_and_not_after_a_dry_run(top):
    repository = discover(top).with_lock_timeout(0.1)
    head = git_line(top, "rev-parse", "@")
    other = top / ".git" / "ref_migration.x"
    (other / "reftable").mkdir(parents=True)
    with (
        transaction(repository) as txn,
        pytest.raises(BusyError, match="is moving the refs"),
    ):
        txn.move_ref("refs/gitcp/s/main/new", expect=None, new=head)
    assert not list((top / ".git" / "refs").rglob("*.lock"))
    for path in (other / "reftable", other):
        os.utime(path, (1, 1))
    with transaction(repository) as txn:
        txn.move_ref("refs/gitcp/s/main/new", expect=None, new=head)
    assert git_line(top, "rev-parse", "refs/gitcp/s/main/new") == head


def test_a_migration_that_was_broken_off_is_named(top):
    other = top / ".git" / "ref_migration.x"
    other.mkdir()
    (top / ".git" / "HEAD").rename(other / "HEAD")
    shutil.rmtree(top / ".git" / "refs")
    os.utime(other, (1, 1))
    said = fails(top, 17, "save")
    assert "`git refs migrate` was broken off" in said
    assert ".git/ref_migration.x" in said


@pytest.mark.ref_files
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_everything_works_after_each_migration(tmp_path, form):
    needs_migrate()
    top = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", f"--object-format={form}", top)
    write_files(top, {"f": b"0"})
    commit_all(top)
    store = gitcp.open(top).session("held")
    numbers = []
    for round_, storage in enumerate(["reftable", "files", "reftable"]):
        write_files(top, {"f": b"%d" % round_, "g": b"x" * round_})
        saved = ok(top, "save", "-m", storage, "--decision", storage)["checkpoint"]
        numbers.append((saved["number"], saved["id"], tree_bytes(top)))
        store.save(append=[{"n": round_}])
        git(top, "refs", "migrate", f"--ref-format={storage}")
        assert store.save(append=[{"again": round_}]).number
        for number, ident, files in numbers:
            assert ok(top, "show", str(number))["checkpoint"]["id"] == ident
            ok(top, "restore", "-y", str(number))
            assert tree_bytes(top) == files
        ok(top, "undo", "-y")
        ok(top, "fork", "-y", "1", f"fork-{round_}")
        ok(top, "switch", "main/main")
        assert run_gitcp(top, "run", "--step", storage, "--", "true").returncode == 0
        assert ok(top, "verify")["problems"] == []
    ok(top, "prune", "--keep-last", "1", "--yes")
    ok(top, "gc")
    assert ok(top, "verify")["problems"] == []
    assert invoke(top, "doctor").returncode == 0
    git(top, "fsck", "--strict", "--no-dangling")
