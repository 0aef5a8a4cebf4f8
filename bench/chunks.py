"""What large files cost that change a little: a database, and a file of 3 GB.

    python bench/chunks.py --gitcp VENV/bin/gitcp [--in DIR] [--megabytes 3072] [--only CASE]

The database has 60,000 rows of a kilobyte, half of it text, and 100 of them, anywhere,
change before each of ten saves. Of the large file, which nothing can compress, 1 % is
overwritten in one place, then as much is put in, then appended. Nothing else is run: what
`.git` grows by is what a user would see.
"""

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from measure import run, usage

ROWS = 60_000
CHANGED = 100
SAVES = 10
PART = 1 << 20
WORDS = (
    "make",
    "the",
    "test",
    "pass",
    "and",
    "look",
    "why",
    "this",
    "file",
    "is",
    "read",
)


def size_of(top: Path) -> int:
    """Returns the bytes below `.git`."""
    return sum(one.stat().st_size for one in (top / ".git").rglob("*") if one.is_file())


def project(top: Path) -> None:
    """Makes an empty repository."""
    run(["git", "init", "-q", str(top)], top.parent)
    (top / "a.txt").write_text("a\n")


def row(chance: random.Random) -> tuple[bytes, str]:
    """Returns what a row holds: some bytes, and some words."""
    return chance.randbytes(480), " ".join(chance.choices(WORDS, k=110))


def database(gitcp: str, top: Path) -> None:
    """Changes rows of a database before each save."""
    project(top)
    chance = random.Random(1)
    connection = sqlite3.connect(top / "data.db")
    connection.execute("CREATE TABLE t(n INTEGER PRIMARY KEY, data BLOB, text TEXT)")
    connection.executemany(
        "INSERT INTO t VALUES(?, ?, ?)", ((n, *row(chance)) for n in range(ROWS))
    )
    connection.commit()
    print(f"database: {(top / 'data.db').stat().st_size / 1e6:.1f} MB")
    run([gitcp, "save", "-q", "-m", "first"], top)
    before = size_of(top)
    grown, took = [], []
    for _ in range(SAVES):
        for n in chance.sample(range(ROWS), CHANGED):
            connection.execute(
                "UPDATE t SET data = ?, text = ? WHERE n = ?", (*row(chance), n)
            )
        connection.commit()
        time.sleep(1.1)
        began = time.perf_counter()
        run([gitcp, "save", "-q", "-m", "more"], top)
        took.append(time.perf_counter() - began)
        after = size_of(top)
        grown.append(after - before)
        before = after
    connection.close()
    print(
        f"{CHANGED} rows changed, {SAVES} saves: {statistics.median(grown) / 1e6:.2f} MB"
        f" (max {max(grown) / 1e6:.2f}), {statistics.median(took):.2f} s"
        f" (max {max(took):.2f}); bar 3 MB, 1.5 s"
    )


def large(gitcp: str, top: Path, megabytes: int) -> None:
    """Changes a hundredth of a large file in three ways."""
    project(top)
    run(["git", "config", "gitcp.maxFileSize", "4g"], top)
    chance = random.Random(2)
    path = top / "large.bin"
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(chance.randbytes(PART))
    share = megabytes // 100

    def saved(what: str, changed: int) -> None:
        before = size_of(top)
        time.sleep(1.1)
        began = time.perf_counter()
        peak = usage([gitcp, "save", "-q", "-m", what], top).peak
        took = time.perf_counter() - began
        grown = size_of(top) - before
        print(
            f"{what}: {grown / 1e6:.1f} MB, {grown / (changed * PART):.2f} times the change;"
            f" {peak:.0f} MB of memory, {took:.1f} s",
            flush=True,
        )

    saved(f"{megabytes} MiB, first save", megabytes)
    with path.open("r+b") as file:
        file.seek(megabytes // 3 * PART + 12_345)
        for _ in range(share):
            file.write(chance.randbytes(PART))
    saved("1 % in place", share)
    other = top / "other"
    with path.open("rb") as old, other.open("wb") as new:
        for number in range(megabytes):
            if number == megabytes // 2:
                new.write(b"x")
                for _ in range(share):
                    new.write(chance.randbytes(PART))
            new.write(old.read(PART))
        while rest := old.read(PART):
            new.write(rest)
    other.replace(path)
    saved("1 % put in", share)
    with path.open("ab") as file:
        for _ in range(share):
            file.write(chance.randbytes(PART))
    saved("1 % appended", share)
    began = time.perf_counter()
    path.unlink()
    peak = usage([gitcp, "restore", "-q", "-y", "1"], top).peak
    print(f"restored: {time.perf_counter() - began:.1f} s, {peak:.0f} MB of memory")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--megabytes", type=int, default=3072)
    parser.add_argument("--in", dest="place", default=None)
    parser.add_argument("--only", choices=["database", "large"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.place) as place:
        for name, case in (
            ("database", lambda top: database(given.gitcp, top)),
            ("large", lambda top: large(given.gitcp, top, given.megabytes)),
        ):
            if given.only in {None, name}:
                top = Path(place, name)
                top.mkdir()
                case(top)


if __name__ == "__main__":
    main()
