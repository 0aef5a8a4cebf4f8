"""What an append to the Claude Agent SDK's session store costs as the session grows.

    python bench/session_store.py [--appends 2000] [--directory DIR]

Batches of three records of about 1 kB, one after the other, each durable before the next.
Windows of 100 appends are compared in one run; in between, `--bulk` records come in at
once, so that the transcript is long as well.
"""

import argparse
import asyncio
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from gitcp.adapters.claude_sdk import GitcpSessionStore

KEY: Any = {"project_key": "-bench", "session_id": "s"}
WINDOW = 100


def batch(number: int) -> list[Any]:
    return [
        {
            "type": "assistant",
            "uuid": f"{number:08d}-0000-4000-8000-{part:012d}",
            "timestamp": "2026-11-21T10:00:00.000Z",
            "message": {"role": "assistant", "content": f"{number} " + "word " * 180},
        }
        for part in range(3)
    ]


def size(directory: Path) -> int:
    said = subprocess.run(
        ["du", "-sb", directory], capture_output=True, check=True, text=True
    )
    return int(said.stdout.split()[0])


async def window(store: GitcpSessionStore, start: int, count: int) -> list[float]:
    took = []
    for number in range(start, start + count):
        begun = time.perf_counter()
        await store.append(KEY, batch(number))
        took.append(time.perf_counter() - begun)
    return took


async def main(appends: int, bulk: int, directory: Path) -> None:
    store = GitcpSessionStore(directory)
    print("| appends | median | 95th percentile | repository |")
    print("|---|---|---|---|")
    done = 0
    while done < appends:
        took = await window(store, done, WINDOW)
        done += WINDOW
        if done == WINDOW or done % (appends // 4) == 0:
            ordered = sorted(took)
            print(
                f"| {done - WINDOW + 1} to {done} |"
                f" {statistics.median(took) * 1000:.1f} ms |"
                f" {ordered[int(len(ordered) * 0.95)] * 1000:.1f} ms |"
                f" {size(directory) / 1e6:.1f} MB |",
                flush=True,
            )
    await store.append(KEY, [one for n in range(bulk // 3) for one in batch(10**6 + n)])
    took = await window(store, done, WINDOW)
    print(
        f"| the same after {bulk:,} records more | {statistics.median(took) * 1000:.1f} ms"
        f" | {sorted(took)[95] * 1000:.1f} ms | {size(directory) / 1e6:.1f} MB |"
    )
    begun = time.perf_counter()
    again = GitcpSessionStore(directory)
    loaded = await again.load(KEY)
    took_load = time.perf_counter() - begun
    begun = time.perf_counter()
    await again.append(KEY, batch(10**7))
    first = time.perf_counter() - begun
    assert loaded is not None
    print(
        f"\nload of {len(loaded):,} records: {took_load:.2f} s;"
        f" first append of a store just opened: {first * 1000:.0f} ms"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--appends", type=int, default=2000)
    parser.add_argument("--bulk", type=int, default=30_000)
    parser.add_argument("--directory", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(
            main(given.appends, given.bulk, given.directory or Path(scratch, "store"))
        )
