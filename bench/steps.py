"""What a durable step costs: records, latency, disk; beside SQLite with the same syncs.

    python bench/steps.py [--steps 300] [--directory /var/tmp]

All cases take turns in one run, in repositories of their own.
"""

import argparse
import asyncio
import os
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gitcp


def repository(base: Path, name: str) -> Path:
    path = base / name
    subprocess.run(["git", "init", "-q", path], check=True)
    (path / "a.txt").write_text("a\n")
    return path


# What is still to be put into git before the directory goes.
settle: list[Callable[[], None]] = []


def opened(path: Path) -> gitcp.Session:
    session = gitcp.open(path).session("bench")
    settle.append(session.flush)
    return session


def steps(path: Path, effect: str) -> Callable[[int], None]:
    run = opened(path)

    def one(number: int) -> None:
        run.step(f"s{number}", lambda: {"number": number}, effect=effect)

    return one


def local(path: Path) -> Callable[[int], None]:
    run = opened(path)

    def one(number: int) -> None:
        def work() -> None:
            (path / "out.txt").write_text(f"{number}\n")

        run.step(f"s{number}", work, effect="local")

    return one


def replayed(path: Path, count: int) -> Callable[[int], None]:
    first = steps(path, "none")
    for number in range(count):
        first(number)
    return steps(path, "none")


def side_by_side(path: Path) -> Callable[[int], None]:
    """Sixteen coroutines at once: their records share commits."""
    run = opened(path)

    async def work(number: int) -> int:
        return number

    async def sixteen(number: int) -> None:
        names = (f"s{number}-{one}" for one in range(16))
        await asyncio.gather(
            *(run.step(name, work, 1, effect="none") for name in names)
        )

    return lambda number: asyncio.run(sixteen(number))


def sqlite(path: Path) -> Callable[[int], None]:
    """Two durable transactions for each step, as an engine with a database has them."""
    database = sqlite3.connect(path / "steps.db", isolation_level=None)
    database.execute("pragma journal_mode=wal")
    database.execute("pragma synchronous=full")
    database.execute("create table log (n integer primary key, kind, body)")

    def one(number: int) -> None:
        for kind in ("intent", "result"):
            database.execute(
                "insert into log (kind, body) values (?, ?)", (kind, str(number) * 100)
            )

    return one


def syncs(path: Path) -> Callable[[int], None]:
    """What one append and sync costs here, twice."""
    file = os.open(path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def one(number: int) -> None:
        for _ in range(2):
            os.write(file, b"x" * 300)
            os.fsync(file)

    return one


def disk(path: Path) -> int:
    return sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())


def rounds(count: int, cases: dict[str, Callable[[int], None]]) -> Iterator[str]:
    times: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(count):
        for name, case in cases.items():
            start = time.perf_counter()
            case(number)
            times[name].append(time.perf_counter() - start)
    for name, seconds in times.items():
        share = 16 if name == "16 at once, each" else 1
        found = [one * 1000 / share for one in seconds]
        late = statistics.median(found[-count // 5 :])
        yield (
            f"| {name} | {statistics.median(found):.2f} |"
            f" {statistics.quantiles(found, n=20)[-1]:.2f} | {late:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--directory", default=None)
    wanted = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="steps.", dir=wanted.directory))
    places = {
        name: repository(base, str(number))
        for number, name in enumerate(
            ("sync", "sqlite", "none", "local", "replay", "sixteen")
        )
    }
    try:
        cases = {
            "append and sync, twice": syncs(places["sync"]),
            "SQLite, two transactions": sqlite(places["sqlite"]),
            "a step": steps(places["none"], "irreversible"),
            "a step on files": local(places["local"]),
            "16 at once, each": side_by_side(places["sixteen"]),
            "a recorded result": replayed(places["replay"], wanted.steps),
        }
        print("| case | median ms | 95 % | last fifth |\n|---|---|---|---|")
        for line in rounds(wanted.steps, cases):
            print(line)
        git = places["none"] / ".git"
        print(f"disk: {disk(git) / wanted.steps:,.0f} bytes a step", end="")
        subprocess.run(["git", "gc", "-q"], cwd=places["none"], check=True)
        print(f", {disk(git) / wanted.steps:,.0f} after git gc")
        start = time.perf_counter()
        gitcp.open(places["none"]).session("bench").steps()
        print(f"reading {wanted.steps} steps: {time.perf_counter() - start:.3f} s")
    finally:
        for flush in settle:
            flush()
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
