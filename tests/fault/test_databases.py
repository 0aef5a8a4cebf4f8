"""A SQLite database that is written all the time: what is saved of it is consistent."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.gitrepo import make_repo
from tests.support.inprocess import invoke, ok

SAVES = int(os.environ.get("SAVES", "200"))
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
ACCOUNTS = 400
TOTAL = ACCOUNTS * 1_000
# Moves money between accounts, and notes each move: all of it or nothing is there.
_WRITER = """
import random, sqlite3, sys
path, seed, pages, accounts = sys.argv[1:]
accounts = int(accounts)
chance = random.Random(int(seed))
opened = sqlite3.connect(path, isolation_level=None)
opened.execute("PRAGMA journal_mode = WAL")
opened.execute(f"PRAGMA wal_autocheckpoint = {pages}")
opened.execute("CREATE TABLE account(n INTEGER PRIMARY KEY, held INTEGER, text BLOB)")
opened.execute("CREATE TABLE move(n INTEGER PRIMARY KEY, amount INTEGER)")
opened.execute("BEGIN")
for n in range(accounts):
    opened.execute("INSERT INTO account VALUES(?, 1000, ?)", (n, chance.randbytes(2000)))
opened.execute("INSERT INTO move(amount) VALUES(0)")
opened.execute("COMMIT")
print("writing", flush=True)
while True:
    opened.execute("BEGIN")
    for _ in range(chance.randrange(1, 20)):
        one, two = chance.sample(range(accounts), 2)
        amount = chance.randrange(100)
        opened.execute("UPDATE account SET held = held - ?, text = ? WHERE n = ?",
                       (amount, chance.randbytes(2000), one))
        opened.execute("UPDATE account SET held = held + ? WHERE n = ?", (amount, two))
    opened.execute("INSERT INTO move(amount) VALUES(?)", (amount,))
    opened.execute("COMMIT" if chance.random() < 0.9 else "ROLLBACK")
"""


@contextmanager
def written(path: Path, pages: int) -> Iterator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-c", _WRITER, str(path), str(SEED), str(pages)]
    words.append(str(ACCOUNTS))
    with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == b"writing\n"
            yield writer
            assert writer.poll() is None
        finally:
            writer.kill()


def moves(path: Path) -> int:
    """How many moves a database has; it has to be sound, and no money lost."""
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (total,) = opened.execute("SELECT sum(held) FROM account").fetchone()
        assert total == TOTAL, SEED
        return opened.execute("SELECT count(*) FROM move").fetchone()[0]


def rounds(tmp_path: Path, pages: int, count: int) -> int:
    """Saves a database that is written, and restores each save; how many were one file.

    One that never stands still is listed as such, and nothing is promised of it: that is a
    matter of how busy the machine is.
    """
    repo = make_repo(tmp_path / "repo", {"a": b"1\n"})
    consistent, last = 0, 0
    with written(repo / "data.db", pages):
        for number in range(1, count + 1):
            ok(repo, "save", "--allow-empty")
            place = tmp_path / str(number)
            done = invoke(repo, "restore", "last", "--to", place)
            assert done.returncode == 0, done.stderr
            (listed,) = ok(repo, "show")["skipped"]
            assert listed["path"] == "data.db"
            if listed["reason"] == "changed-while-reading":
                continue
            assert listed["reason"] == "sqlite-backup"
            assert not list(place.glob("data.db-*"))
            found = moves(place / "data.db")
            assert found >= last
            last = found
            consistent += 1
    return consistent


def test_a_few_saves_of_a_database_that_is_written_are_consistent(tmp_path):
    assert rounds(tmp_path, 100, 3) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("pages", [10, 100, 1000])
def test_many_saves_of_a_database_that_is_written_are_consistent(tmp_path, pages):
    assert rounds(tmp_path, pages, SAVES) >= SAVES * 0.9


@pytest.mark.slow
def test_a_database_whose_writer_was_killed_comes_back_in_place(tmp_path):
    repo = make_repo(tmp_path / "repo", {"a": b"1\n"})
    saved = {}
    for number in range(1, 11):
        (repo / "data.db").unlink(missing_ok=True)
        (repo / "data.db-wal").unlink(missing_ok=True)
        (repo / "data.db-shm").unlink(missing_ok=True)
        with written(repo / "data.db", 100):
            checkpoint = ok(repo, "save", "--allow-empty")["checkpoint"]
        saved[number] = checkpoint["number"]
    for number in range(SAVES):
        wanted = saved[number % 10 + 1]
        ok(repo, "restore", str(wanted), "-y")
        assert not list(repo.glob("data.db-*"))
        assert moves(repo / "data.db") > 0
