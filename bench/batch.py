"""What `session.batch` costs on Dask: the same chunks with it and without it, in turn.

    python bench/batch.py [--records N] [--workers N] [--chunk N] [--rounds N]

Prints the seconds of each round, and the ratio of the medians.
"""

import argparse
import hashlib
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import as_completed
from pathlib import Path

from distributed import Client, LocalCluster

import gitcp


def work(number: int) -> str:
    return hashlib.sha256(b"%d" % number * 4000).hexdigest()


def chunk_of(first: int, last: int) -> list[str]:
    return [work(number) for number in range(first, last)]


def without(client: Client, records: int, chunk: int) -> float:
    start = time.perf_counter()
    executor = client.get_executor(pure=False)
    out = [
        executor.submit(chunk_of, first, min(first + chunk, records))
        for first in range(0, records, chunk)
    ]
    done = sum(len(future.result()) for future in as_completed(out))
    assert done == records
    return time.perf_counter() - start


def with_gitcp(
    client: Client, repo: Path, name: str, records: int, chunk: int
) -> float:
    start = time.perf_counter()
    session = gitcp.open(repo).session(name)
    executor = client.get_executor()
    with session.batch(range(records), every=records // 10, executor=executor) as batch:
        done = sum(1 for _ in batch.map(work, chunksize=chunk))
    assert done == records
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--chunk", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalCluster(
            n_workers=given.workers, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        subprocess.run(["git", "init", "-q", directory], check=True)
        without(client, 10 * given.chunk, given.chunk)
        plain, batches = [], []
        for turn in range(given.rounds):
            plain.append(without(client, given.records, given.chunk))
            batches.append(
                with_gitcp(
                    client, Path(directory), f"{turn}", given.records, given.chunk
                )
            )
            print(f"without {plain[-1]:.2f} s, with {batches[-1]:.2f} s", flush=True)
    ratio = statistics.median(batches) / statistics.median(plain)
    print(f"{ratio:.3f} x")


if __name__ == "__main__":
    main()
