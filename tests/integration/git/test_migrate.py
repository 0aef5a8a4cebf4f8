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
from gitcp.git.reachable import Reachable
from gitcp.git.ref_storage import RefsMovedError, RefStorage
from gitcp.git.refs import FileRefs
from gitcp.git.transaction import transaction
from gitcp.store.store import Store
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


@pytest.mark.ref_files
def test_what_was_read_while_refs_were_moved_is_not_believed(top):
    """They are asked for once more, in the storage where they are now."""
    repository = discover(top)
    before = repository.refs.list("refs/gitcp/")
    for look, found in (
        (lambda refs: refs.read("refs/gitcp/s/main/other"), None),
        (lambda refs: refs.list("refs/gitcp/"), before),
        (lambda refs: refs.symbolic("REBASE_HEAD"), None),
        (lambda refs: refs.any("refs/remotes/"), False),
    ):
        refs = repository.refs
        migrated(top)
        assert look(refs) == found
        assert repository.refs is not refs


def test_a_question_follows_refs_only_so_often(top, monkeypatch):
    repository = discover(top)
    asked = []

    def moved(storage):
        asked.append(storage)
        raise RefsMovedError("moved again")

    monkeypatch.setattr(RefStorage, "check", moved)
    with pytest.raises(BusyError, match="keeps moving the refs"):
        repository.refs.list("refs/gitcp/")
    assert 1 < len(asked) < 100


@pytest.mark.ref_files
@pytest.mark.parametrize(
    "command", [("log", "--all"), ("sessions",), ("verify",), ("restore", "1", "--yes")]
)
def test_a_command_reads_on_where_the_refs_were_moved_to(top, monkeypatch, command):
    write_files(top, {"f": b"1"})
    expected = ok(top, "show", "last")["checkpoint"]["id"]
    walk = FileRefs._walk
    moves: list[str] = []

    def and_migrate(refs, prefix):
        if not moves:
            moves.append(prefix)
            migrated(top)
        return walk(refs, prefix)

    monkeypatch.setattr(FileRefs, "_walk", and_migrate)
    done = invoke(top, *command)
    assert done.returncode == 0, done.stderr
    assert moves
    assert ok(top, "show", "1")["checkpoint"]["id"] == expected


def test_gc_removes_nothing_where_refs_moved_while_git_looked(top, monkeypatch):
    ok(top, "prune", "--keep-last", "1", "-y")
    walk = Reachable._walk

    def and_migrate(reachable, *given):
        monkeypatch.undo()
        migrated(top)
        return walk(reachable, *given)

    monkeypatch.setattr(Reachable, "_walk", and_migrate)
    assert "has moved the refs" in fails(top, 11, "gc")
    assert ok(top, "verify")["problems"] == []


@pytest.mark.ref_files
@pytest.mark.parametrize("storage", ["reftable", "files"])
@pytest.mark.parametrize(
    "command", [("log", "--all"), ("show", "last"), ("save", "-m", "two")]
)
def test_a_command_that_git_migrates_refs_under_goes_on(
    top, monkeypatch, command, storage
):
    needs_migrate()
    if storage == "files":
        git(top, "refs", "migrate", "--ref-format=reftable")

    refs = Store.refs
    moved: list[Store] = []

    def and_migrate(store):
        if not moved:
            moved.append(store)
            git(top, "refs", "migrate", f"--ref-format={storage}")
        return refs(store)

    monkeypatch.setattr(Store, "refs", and_migrate)
    write_files(top, {"f": b"1"})
    done = invoke(top, *command)
    assert done.returncode == 0, done.stderr
    assert ok(top, "verify")["problems"] == []


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
    assert "`git refs migrate` was interrupted" in said
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
