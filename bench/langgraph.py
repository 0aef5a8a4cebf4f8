"""LangGraph's savers beside `GitcpSaver`: times, and bytes on disk.

    pip install '.[test]' langgraph-checkpoint-postgres 'psycopg[binary]'
    python bench/langgraph.py --n 100,1000

Every step is one `put_writes` of a new message and one `put` of the whole list; the savers
take turns at each step. Postgres is started by the benchmark, in a directory of its own
and as another user where this one is root; where there is none it is left out.
"""

import sys

# This file has the name of the package that it measures.
sys.path.pop(0)

import argparse
import contextlib
import glob
import logging
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from gitcp.adapters.langgraph import GitcpSaver

LATEST: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
ROUNDS = 9


class Bench(NamedTuple):
    """A saver; `reopen` gives one that has nothing in memory, `disk` its bytes."""

    name: str
    saver: Any
    reopen: Callable[[], Any] | None
    disk: Callable[[], str]


def blocks(directory: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in directory.rglob("*"))


@contextlib.contextmanager
def postgres(directory: Path) -> Iterator[str | None]:
    """Runs a server on a socket in `directory`; None if there is none to run."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    programs = Path(found[-1]) if found else None
    if programs is None:
        path = shutil.which("initdb")
        programs = Path(path).resolve().parent if path else None
    if programs is None:
        yield None
        return
    user = "postgres" if os.geteuid() == 0 else None
    directory.mkdir()
    os.chmod(directory.parent, 0o755)
    if user:
        shutil.chown(directory, user)
    data = directory / "data"

    def run(program: str, *args: str | Path) -> None:
        subprocess.run(
            [programs / program, *args],
            check=True,
            user=user,
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    run("initdb", "-D", data, "-U", "postgres", "-A", "trust")
    options = f"-c listen_addresses='' -k {directory}"
    run("pg_ctl", "-D", data, "-w", "-l", directory / "log", "-o", options, "start")
    try:
        yield f"host={directory} user=postgres dbname=postgres"
    finally:
        run("pg_ctl", "-D", data, "-w", "-m", "fast", "stop")


def sqlite_bench(directory: Path) -> Bench:
    directory.mkdir()
    path = directory / "threads.db"

    def opened() -> SqliteSaver:
        return SqliteSaver(sqlite3.connect(path, check_same_thread=False))

    saver = opened()

    def disk() -> str:
        saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return f"{blocks(directory):,}"

    return Bench("SQLite", saver, opened, disk)


def gitcp_bench(directory: Path) -> Bench:
    saver = GitcpSaver(directory)

    def disk() -> str:
        saver.flush()
        before = blocks(directory)
        saver.compact()
        return f"{blocks(directory):,} (before: {before:,})"

    return Bench("gitcp", saver, lambda: GitcpSaver(directory), disk)


def postgres_bench(address: str, stack: contextlib.ExitStack) -> Bench:
    from langgraph.checkpoint.postgres import PostgresSaver

    saver = stack.enter_context(PostgresSaver.from_conn_string(address))
    saver.setup()

    def disk() -> str:
        names = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        with saver._cursor() as cursor:
            sizes = [
                cursor.execute(
                    "SELECT pg_total_relation_size(%s::regclass) AS n", (name,)
                ).fetchone()["n"]
                for name in names
            ]
        return f"{sum(sizes):,}"

    def reopen() -> Any:
        return stack.enter_context(PostgresSaver.from_conn_string(address))

    return Bench("Postgres", saver, reopen, disk)


def timed(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000


def message(rng: random.Random, words: list[str], number: int, *, plain: bool) -> Any:
    text = (
        " ".join(rng.choices(words, k=250))[:1000]
        if plain
        else rng.randbytes(500).hex()
    )
    return HumanMessage(content=text, id=f"m{number}")


def fill(benches: list[Bench], count: int, *, plain: bool) -> dict[str, list[float]]:
    """Makes `count` steps and returns the milliseconds of each call."""
    rng = random.Random(1)
    words = [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=3 + n % 8))
        for n in range(900)
    ]
    times: dict[str, list[float]] = {}
    messages: list[Any] = []
    configs = {bench.name: LATEST for bench in benches}
    version = None
    for step in range(count):
        new = message(rng, words, step, plain=plain)
        messages = [*messages, new]
        version = benches[-1].saver.get_next_version(version, None)
        checkpoint: Any = {
            "v": 4,
            "id": str(uuid6(clock_seq=step)),
            "ts": "2026-11-21T12:00:00+00:00",
            "channel_values": {"messages": messages},
            "channel_versions": {"messages": version},
            "versions_seen": {"agent": {"messages": version}},
            "updated_channels": ["messages"],
        }
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        for bench in benches:
            saver, config = bench.saver, configs[bench.name]
            if step:
                began = time.perf_counter()
                saver.put_writes(config, [("messages", [new])], f"task-{step}", "")
                took = (time.perf_counter() - began) * 1000
                times.setdefault(f"{bench.name} writes", []).append(took)
            own = {**checkpoint, "channel_values": dict(checkpoint["channel_values"])}
            began = time.perf_counter()
            configs[bench.name] = saver.put(
                config, own, metadata, {"messages": version}
            )
            took = (time.perf_counter() - began) * 1000
            times.setdefault(f"{bench.name} put", []).append(took)
    for bench in benches:
        found = bench.saver.get_tuple(LATEST)
        assert found.checkpoint["channel_values"]["messages"] == messages, bench.name
    return times


def table(benches: list[Bench], times: dict[str, list[float]], count: int) -> None:
    print(f"\nN = {count:,}\n")
    print(
        "| saver | put (5 % - 95 %) | ratio | put_writes | get latest | ratio |"
        " get, reopened | list(limit=10) | bytes on disk |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    gets: dict[str, list[float]] = {bench.name: [] for bench in benches}
    lists: dict[str, list[float]] = {bench.name: [] for bench in benches}
    fresh: dict[str, list[float]] = {bench.name: [] for bench in benches}
    for _ in range(ROUNDS):
        for bench in benches:
            saver = bench.saver
            gets[bench.name].append(timed(lambda s=saver: s.get_tuple(LATEST)))
    for _ in range(3):
        for bench in benches:
            saver = bench.saver
            lists[bench.name].append(
                timed(lambda s=saver: list(s.list(LATEST, limit=10)))
            )
            if bench.reopen is not None:
                other = bench.reopen()
                fresh[bench.name].append(timed(lambda s=other: s.get_tuple(LATEST)))
    middle = statistics.median
    put0, get0 = middle(times["SQLite put"]), middle(gets["SQLite"])
    for bench in benches:
        name = bench.name
        puts = sorted(times[f"{name} put"])
        low, high = puts[len(puts) // 20], puts[len(puts) * 19 // 20]
        reopened = f"{middle(fresh[name]):.1f}" if fresh[name] else ""
        print(
            f"| {name} | {middle(puts):.2f} ms ({low:.2f} - {high:.2f})"
            f" | {middle(puts) / put0:.2f} x | {middle(times[f'{name} writes']):.2f}"
            f" | {middle(gets[name]):.2f} ms | {middle(gets[name]) / get0:.2f} x"
            f" | {reopened} | {middle(lists[name]):.1f} | {bench.disk()} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", default="100,1000")
    parser.add_argument("--random", action="store_true", help="text that barely packs")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    for count in map(int, options.n.split(",")):
        with (
            contextlib.ExitStack() as stack,
            tempfile.TemporaryDirectory(prefix="gitcp-bench-") as base,
            postgres(Path(base) / "postgres") as address,
        ):
            benches = [
                Bench("InMemory", InMemorySaver(), None, lambda: ""),
                sqlite_bench(Path(base) / "sqlite"),
            ]
            if address is not None:
                benches.append(postgres_bench(address, stack))
            benches.append(gitcp_bench(Path(base) / "gitcp"))
            times = fill(benches, count, plain=not options.random)
            table(benches, times, count)
            benches[-1].saver.close()
            stack.close()


if __name__ == "__main__":
    main()
