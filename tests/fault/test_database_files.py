"""SQLite databases with a log that holds something: one consistent file in a checkpoint."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from gitcp.worktree import databases, replace, sqlite_backup
from gitcp.worktree.clock import Clock
from tests.fault.harness import fsck
from tests.support.gitrepo import git, make_repo, write_files
from tests.support.inprocess import invoke, ok

_OPENED = """
import sqlite3, sys
opened = sqlite3.connect(sys.argv[1])
opened.execute("SELECT count(*) FROM t").fetchone()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"other": b"0\n"})


def put(repo: Path, *rows: bytes, name: str = "a.db") -> None:
    """Adds rows in one transaction; then the process is killed, and its log stays."""
    child = os.fork()
    if not child:
        opened = sqlite3.connect(repo / name)
        opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("PRAGMA wal_autocheckpoint = 0")
        opened.execute("CREATE TABLE IF NOT EXISTS t(row BLOB)")
        opened.executemany("INSERT INTO t VALUES(?)", [(row,) for row in rows])
        opened.commit()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def close(repo: Path) -> None:
    """Opens the database and closes it again, which leaves no log behind."""
    with closing(sqlite3.connect(repo / "a.db")) as opened:
        opened.execute("SELECT count(*) FROM t").fetchone()


def rows_in(raw: bytes, tmp_path: Path) -> list[bytes]:
    path = tmp_path / "looked-at.db"
    path.write_bytes(raw)
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [row for (row,) in opened.execute("SELECT row FROM t")]


def held(repo: Path, selector: str | int, name: str = "a.db") -> bytes:
    return invoke(repo, "cat", str(selector), name).stdout


def files(repo: Path, selector: str | int = "last") -> list[str]:
    return [one["path"] for one in ok(repo, "files", str(selector))["files"]]


def seen(repo: Path) -> dict[str, tuple[bytes, int, int]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in repo.glob("a.db*")
    }


def skipped(repo: Path, selector: str = "last") -> list[tuple[str, str]]:
    listed = ok(repo, "show", selector)["skipped"]
    return [(one["path"], one["reason"]) for one in listed]


@contextmanager
def opened_elsewhere(path: Path) -> Iterator[None]:
    words = [sys.executable, "-c", _OPENED, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == b"open\n"
        yield
        process.stdin.close()


def test_a_database_is_saved_with_its_log_and_none_of_its_files_is_touched(
    repo, tmp_path
):
    put(repo, b"one", b"two")
    before = seen(repo)
    assert set(before) == {"a.db", "a.db-wal", "a.db-shm"}
    for _ in range(2):
        ok(repo, "save")
        assert seen(repo) == before
    assert files(repo) == ["a.db", "other"]
    assert rows_in(held(repo, "last"), tmp_path) == [b"one", b"two"]
    assert skipped(repo) == [("a.db", "sqlite-backup")]
    assert ok(repo, "status")["skipped"] == 0
    text = invoke(repo, "show").stdout
    assert b"Databases, with the content of their logs\n  a.db (sqlite-backup)" in text
    assert list((repo / ".git" / "gitcp" / "scan").glob("sqlite-*")) == []


def test_a_log_that_git_ignores_and_that_alone_grew_is_saved(repo, tmp_path):
    write_files(repo, {".gitignore": b"*-wal\n*-shm\n"})
    put(repo, b"one")
    ok(repo, "save")
    main = (repo / "a.db").read_bytes()
    put(repo, b"two")
    assert (repo / "a.db").read_bytes() == main
    assert ok(repo, "save")["created"]
    assert rows_in(held(repo, "last"), tmp_path) == [b"one", b"two"]
    # As it was closed in between, and the log begun again.
    close(repo)
    ok(repo, "save")
    assert skipped(repo) == []
    put(repo, b"three")
    ok(repo, "save")
    assert rows_in(held(repo, "last"), tmp_path) == [b"one", b"two", b"three"]


def test_what_did_not_change_is_not_copied_again(repo, monkeypatch):
    put(repo, b"one")
    ok(repo, "save")
    # The stamps may have been too young to be relied on.
    while not ok_is_known(repo):
        ok(repo, "save", "--allow-empty")
    monkeypatch.setattr(sqlite_backup, "backup_of", None)
    assert not ok(repo, "save")["created"]


def ok_is_known(repo: Path) -> bool:
    from gitcp.worktree import state

    return state.load(repo / ".git" / "gitcp" / "scan").databases[b"a.db"] is not None


@pytest.mark.parametrize("ignored", [False, True])
def test_a_restore_leaves_no_log_behind_and_undo_brings_it_back(
    repo, tmp_path, ignored
):
    if ignored:
        write_files(repo, {".gitignore": b"*-wal\n*-shm\n"})
    put(repo, b"one")
    ok(repo, "save")
    put(repo, b"two")
    ok(repo, "save")
    before = {name: raw for name, (raw, _, _) in seen(repo).items()}
    ok(repo, "restore", "1", "-y")
    assert set(seen(repo)) == {"a.db"}
    assert rows_in((repo / "a.db").read_bytes(), tmp_path) == [b"one"]
    # What was there is held as it was.
    assert {name: held(repo, "3", name) for name in before} == before
    ok(repo, "undo", "-y")
    assert {name: raw for name, (raw, _, _) in seen(repo).items()} == before
    ok(repo, "save")
    assert [name for name in files(repo) if name.startswith("a.db")] == ["a.db"]
    assert rows_in(held(repo, "last"), tmp_path) == [b"one", b"two"]
    assert ok(repo, "verify")["problems"] == []
    fsck(repo)


def test_a_database_that_is_named_alone_comes_without_its_log(repo, tmp_path):
    write_files(repo, {".gitignore": b"*-wal\n*-shm\n"})
    put(repo, b"one")
    ok(repo, "save")
    put(repo, b"two")
    ok(repo, "restore", "1", "a.db", "-y")
    assert set(seen(repo)) == {"a.db"}
    assert rows_in((repo / "a.db").read_bytes(), tmp_path) == [b"one"]


def test_a_database_that_another_process_has_open_is_left_unless_forced(repo, tmp_path):
    put(repo, b"one")
    ok(repo, "save")
    put(repo, b"two")
    write_files(repo, {"other": b"1\n"})
    with opened_elsewhere(repo / "a.db"):
        ok(repo, "save")
        before = seen(repo)
        done = invoke(repo, "restore", "1", "-y")
        assert done.returncode == 0
        assert b"another process has this database open" in done.stderr
        assert (repo / "other").read_bytes() == b"0\n"
        assert seen(repo) == before
        invoke(repo, "restore", "1", "-y", "--force")
        assert set(seen(repo)) == {"a.db"}
        assert rows_in((repo / "a.db").read_bytes(), tmp_path) == [b"one"]


def test_a_large_database_is_saved_in_chunks(repo, tmp_path):
    git(repo, "config", "gitcp.chunkAbove", "64k")
    rows = [random.Random(n).randbytes(3_000) for n in range(60)]
    put(repo, *rows)
    ok(repo, "save")
    assert rows_in(held(repo, "last"), tmp_path) == rows
    ok(repo, "restore", "last", "-y")
    assert set(seen(repo)) == {"a.db"}
    assert rows_in((repo / "a.db").read_bytes(), tmp_path) == rows


def test_where_it_never_stands_still_sqlite_reads_it_and_writes_nothing(
    repo, tmp_path, monkeypatch
):
    put(repo, b"one", b"two")
    monkeypatch.setattr(sqlite_backup, "_TRIES", 0)
    with opened_elsewhere(repo / "a.db"):
        before = seen(repo)
        ok(repo, "save")
        assert seen(repo) == before
    assert skipped(repo) == [("a.db", "sqlite-backup")]
    assert rows_in(held(repo, "last"), tmp_path) == [b"one", b"two"]


def other_magic(repo: Path) -> None:
    raw = (repo / "a.db").read_bytes()
    (repo / "a.db").write_bytes(b"not a database " + raw[15:])


def damaged(repo: Path) -> None:
    raw = bytearray((repo / "a.db").read_bytes())
    # No page has this size.
    raw[16:18] = b"\x00\x03"
    (repo / "a.db").write_bytes(raw)
    (repo / "a.db-wal").write_bytes(b"x" * 100)


def hot_journal(repo: Path) -> None:
    (repo / "a.db-journal").write_bytes(b"x" * 512)


@pytest.mark.parametrize("change", [other_magic, damaged, hot_journal])
def test_what_is_no_such_database_is_saved_as_the_files_that_it_is(repo, change):
    put(repo, b"one")
    change(repo)
    before = seen(repo)
    ok(repo, "save")
    assert seen(repo) == before
    assert skipped(repo) == []
    assert {name: held(repo, "last", name) for name in before} == {
        name: raw for name, (raw, _, _) in before.items()
    }


def test_a_log_of_another_database_is_taken_as_sqlite_takes_it(repo, tmp_path):
    put(repo, b"one")
    close(repo)
    put(repo, b"theirs", name="b.db")
    (repo / "b.db-wal").replace(repo / "a.db-wal")
    ok(repo, "save")
    for suffix in ("", "-wal"):
        raw = (repo / f"a.db{suffix}").read_bytes()
        (tmp_path / f"copy.db{suffix}").write_bytes(raw)
    with closing(sqlite3.connect(tmp_path / "copy.db")) as opened:
        expected = [row for (row,) in opened.execute("SELECT row FROM t")]
    assert rows_in(held(repo, "last"), tmp_path) == expected


def test_a_log_that_makes_a_database_larger_than_its_files_is_not_followed(
    repo, monkeypatch
):
    put(repo, b"one")
    monkeypatch.setattr(sqlite_backup, "_size", lambda _: 100)
    ok(repo, "save")
    assert skipped(repo) == []
    assert files(repo) == ["a.db", "a.db-shm", "a.db-wal", "other"]


def test_only_another_process_counts_as_one_that_has_it_open(repo):
    from gitcp.worktree.files import Root

    put(repo, b"one")
    with Root(repo) as root:
        assert not databases.is_open(root, b"a.db")
        assert not databases.is_open(root, b"missing")
        with opened_elsewhere(repo / "a.db"):
            assert databases.is_open(root, b"a.db")
        assert not databases.is_open(root, b"a.db")


@pytest.mark.parametrize("whole", [True, False], ids=["directory", "files"])
def test_a_log_is_saved_after_a_restore_of_many_files_brought_its_database(
    repo, tmp_path, monkeypatch, whole
):
    # Stamps that are old enough to be relied on, as after a longer restore.
    monkeypatch.setattr(Clock, "shows_changes", lambda *_: True)
    monkeypatch.setattr(replace, "step_of", lambda _: -1)
    write_files(repo, {".gitignore": b"*-wal\n*-shm\n"})
    write_files(repo, {f"d/f{n}": b"%d\n" % n for n in range(300)})
    put(repo, b"one", name="d/a.db")
    with closing(sqlite3.connect(repo / "d" / "a.db")) as opened:
        opened.execute("SELECT count(*) FROM t").fetchone()
    ok(repo, "save")
    for path in (repo / "d").iterdir():
        path.unlink()
    if whole:
        (repo / "d").rmdir()
    else:
        write_files(repo, {"d/other": b"0\n"})
    ok(repo, "save")
    ok(repo, "restore", "1", "-y")
    put(repo, b"two", name="d/a.db")
    ok(repo, "save")
    assert rows_in(held(repo, "last", "d/a.db"), tmp_path) == [b"one", b"two"]


def interrupt(repo: Path, row: bytes) -> None:
    """Begins a transaction that changes the file, and is killed: its journal stays."""
    child = os.fork()
    if not child:
        opened = sqlite3.connect(repo / "a.db", isolation_level=None)
        opened.execute("PRAGMA cache_size = 1")
        opened.execute("BEGIN")
        opened.execute("UPDATE t SET row = ? || row", (row * 200,))
        opened.execute("INSERT INTO t SELECT row FROM t")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (repo / "a.db-journal").stat().st_size > 0


def fill(repo: Path, row: bytes) -> list[bytes]:
    """Replaces the rows of a database without a log."""
    rows = [b"%s%d" % (row * 100, n) for n in range(100)]
    with closing(sqlite3.connect(repo / "a.db", isolation_level=None)) as opened:
        opened.execute("CREATE TABLE IF NOT EXISTS t(row BLOB)")
        opened.execute("BEGIN")
        opened.execute("DELETE FROM t")
        opened.executemany("INSERT INTO t VALUES(?)", [(one,) for one in rows])
        opened.execute("COMMIT")
    return rows


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("named", [(), ("a.db",)])
def test_a_journal_goes_with_its_database_and_comes_back_with_it(
    repo, tmp_path, ignored, named
):
    if ignored:
        write_files(repo, {".gitignore": b"*-journal\n"})
    first = fill(repo, b"first")
    ok(repo, "save")
    second = fill(repo, b"second")
    interrupt(repo, b"never")
    before = {name: raw for name, (raw, _, _) in seen(repo).items()}
    ok(repo, "restore", "1", *named, "-y")
    # SQLite would write the journal of the other state into it.
    assert set(seen(repo)) == {"a.db"}
    assert rows_in((repo / "a.db").read_bytes(), tmp_path) == first
    ok(repo, "undo", "-y")
    assert {name: raw for name, (raw, _, _) in seen(repo).items()} == before
    with closing(sqlite3.connect(repo / "a.db")) as opened:
        assert [row for (row,) in opened.execute("SELECT row FROM t")] == second


def test_a_journal_that_git_ignores_is_saved_while_it_counts(repo, tmp_path):
    write_files(repo, {".gitignore": b"*-journal\n"})
    rows = fill(repo, b"row")
    ok(repo, "save")
    interrupt(repo, b"never")
    ok(repo, "save")
    assert files(repo) == [".gitignore", "a.db", "a.db-journal", "other"]
    out = tmp_path / "out"
    ok(repo, "restore", "last", "--to", out)
    with closing(sqlite3.connect(out / "a.db")) as opened:
        assert [row for (row,) in opened.execute("SELECT row FROM t")] == rows
    # SQLite takes the transaction back, and removes the journal.
    with closing(sqlite3.connect(repo / "a.db")) as opened:
        assert [row for (row,) in opened.execute("SELECT row FROM t")] == rows
    ok(repo, "save")
    assert files(repo) == [".gitignore", "a.db", "other"]
    # One of a transaction that has ended: its first bytes are zero.
    (repo / "a.db-journal").write_bytes(bytes(512))
    assert not ok(repo, "save")["created"]


def test_a_database_is_left_while_a_transaction_changes_it(repo, tmp_path):
    rows = fill(repo, b"row")
    ok(repo, "save")
    fill(repo, b"later")
    ok(repo, "save")
    words = _OPENED.replace("opened.execute", 'opened.execute("BEGIN"); opened.execute')
    before = seen(repo)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    argv = [sys.executable, "-c", words, repo / "a.db"]
    with subprocess.Popen(argv, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == b"open\n"
        done = invoke(repo, "restore", "1", "-y")
        assert b"another process has this database open" in done.stderr
        assert seen(repo) == before
        process.stdin.close()
    ok(repo, "restore", "1", "-y")
    assert rows_in((repo / "a.db").read_bytes(), tmp_path) == rows


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_log_that_outlived_its_database_is_not_read_into_a_restored_one(
    repo, tmp_path, saved, emptied, forgotten
):
    write_files(repo, {".gitignore": b"*-wal\n*-shm\n"})
    put(repo, b"one")
    close(repo)
    ok(repo, "save")
    put(repo, b"two")
    ok(repo, "save")
    (repo / "a.db").unlink()
    if emptied:
        (repo / "a.db").touch()
    if saved:
        ok(repo, "save")
    if forgotten:
        shutil.rmtree(repo / ".git" / "gitcp" / "scan")
    before = {name: raw for name, (raw, _, _) in seen(repo).items()}
    assert before.keys() >= {"a.db-wal", "a.db-shm"}
    ok(repo, "restore", "1", "-y")
    assert set(seen(repo)) == {"a.db"}
    assert rows_in((repo / "a.db").read_bytes(), tmp_path) == [b"one"]
    ok(repo, "undo", "-y")
    assert {name: raw for name, (raw, _, _) in seen(repo).items()} == before


def test_a_journal_that_outlived_its_database_is_not_read_into_a_restored_one(
    repo, tmp_path
):
    """The scan state is lost after the deletion, so only the checkpoint knows the database."""
    write_files(repo, {".gitignore": b"*-journal\n", "d/other": b"0\n"})
    path = repo / "d" / "a.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE t(row BLOB)")
        made.executemany("INSERT INTO t VALUES(?)", [(bytes(3000),)] * 50)
        made.commit()
    ok(repo, "save")
    stale = b"a journal of another time"
    write_files(repo, {"d/a.db-journal": stale})
    path.unlink()
    shutil.rmtree(repo / ".git" / "gitcp" / "scan")
    ok(repo, "restore", "1", "d/a.db", "-y")
    assert sorted(one.name for one in path.parent.iterdir()) == ["a.db", "other"]
    ok(repo, "undo", "-y")
    assert not path.exists()
    assert path.with_name("a.db-journal").read_bytes() == stale
