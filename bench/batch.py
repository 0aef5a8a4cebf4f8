"""What `session.batch` costs on Dask: the same chunks with it and without it, in turn.

    python bench/batch.py [--records N] [--workers N] [--chunk N] [--rounds N] [--kilobytes N]

A record is the SHA-256 of so many kilobytes: about a microsecond each. Without gitcp, chunks
return their results as a list, and as one pickled value, which Dask carries faster. Prints the
seconds of each round, the processor seconds of the program in it, and the ratio of the medians
to the faster of the two.
"""

import argparse
import hashlib
import pickle
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import as_completed
from functools import partial
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster

import gitcp


def work(kilobytes: int, number: int) -> str:
    return hashlib.sha256(b"%d" % number * (200 * kilobytes)).hexdigest()


def chunk_of(kilobytes: int, first: int, last: int) -> list[str]:
    return [work(kilobytes, number) for number in range(first, last)]


def pickled_chunk_of(kilobytes: int, first: int, last: int) -> bytes:
    return pickle.dumps(chunk_of(kilobytes, first, last))


def without(
    client: Client,
    chunks: Callable[[int, int], Any],
    read: Callable[[Any], list[str]],
    records: int,
    chunk: int,
) -> None:
    executor = client.get_executor(pure=False)
    out = [
        executor.submit(chunks, first, min(first + chunk, records))
        for first in range(0, records, chunk)
    ]
    done = sum(1 for future in as_completed(out) for _ in read(future.result()))
    assert done == records


def with_gitcp(
    client: Client,
    repo: Path,
    name: str,
    kilobytes: int,
    records: int,
    chunk: int,
) -> None:
    session = gitcp.open(repo).session(name)
    executor = client.get_executor()
    with session.batch(range(records), every=records // 10, executor=executor) as batch:
        done = sum(1 for _ in batch.map(partial(work, kilobytes), chunksize=chunk))
    assert done == records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--chunk", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kilobytes", type=int, default=20)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalCluster(
            n_workers=given.workers, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        subprocess.run(["git", "init", "-q", directory], check=True)
        each = given.kilobytes
        lists = partial(without, client, partial(chunk_of, each), list)
        pickled_ones = partial(pickled_chunk_of, each)
        pickles = partial(without, client, pickled_ones, pickle.loads)
        lists(10 * given.chunk, given.chunk)
        seconds: dict[str, list[float]] = {"lists": [], "pickled": [], "gitcp": []}
        for turn in range(given.rounds):
            batches = partial(with_gitcp, client, Path(directory), f"{turn}", each)
            ways = {"lists": lists, "pickled": pickles, "gitcp": batches}
            for name, way in ways.items():
                start, processor = time.perf_counter(), time.process_time()
                way(given.records, given.chunk)
                seconds[name].append(time.perf_counter() - start)
                print(
                    f"{name}: {seconds[name][-1]:.2f} s,"
                    f" {time.process_time() - processor:.2f} s in the program",
                    flush=True,
                )
    lists_, pickled, gitcps = map(statistics.median, seconds.values())
    print(f"{gitcps / min(lists_, pickled):.3f} x")


if __name__ == "__main__":
    main()
