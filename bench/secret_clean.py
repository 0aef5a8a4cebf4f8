"""What the scanner reports in sources that hold no secret: `python -m bench.secret_clean DIR…`.

Every text file below the directories counts once, however many copies there are; with
`--binary`, all other files instead. Prints each report with its value, for a person to
tell alarms that are false from test keys, and how many megabytes were looked at. `--most`
takes a random sample of so many megabytes, the same one for the same `--seed`; `--each`
does the same in each directory, so that no large package outweighs the others.
"""

import argparse
import hashlib
import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gitcp.secrets import library
from gitcp.secrets.scanner import Fingerprints, Scanner

_MEGABYTE = 1_000_000
_SHOWN = 90
# git calls a file binary that has a null byte in so many bytes at its beginning.
_NUL_PROBE = 8_000
# What git keeps, and lists of names that belong to the machine and to no package.
_SKIPPED = frozenset({".git", "package-lists"})


class Looked(NamedTuple):
    """What one file gave: its size in bytes, seconds of processor time, what was reported."""

    path: str
    size: int
    seconds: float
    reports: list[str]


def paths(tops: list[Path], seed: int) -> list[str]:
    """Returns the files below some directories, in a random order, always the same."""
    found = []
    for top in tops:
        for folder, folders, names in os.walk(top):
            folders[:] = [one for one in folders if one not in _SKIPPED]
            found += [os.path.join(folder, name) for name in names]
    found.sort()
    random.Random(seed).shuffle(found)
    return [one for one in found if os.path.isfile(one) and not os.path.islink(one)]


def chosen(
    tops: list[Path], *, binary: bool, most: float, each: float, seed: int
) -> Iterator[tuple[str, int]]:
    """Yields the path and size of distinct files of one sort, up to some megabytes.

    `most` is for all directories together, `each` for one of them.
    """
    seen: set[bytes] = set()
    limit = min(most, each) * _MEGABYTE
    parts = [tops] if each >= most else [[top] for top in tops]
    left = most * _MEGABYTE
    for part in parts:
        for path, size in _distinct(
            part, binary=binary, limit=limit, seed=seed, seen=seen
        ):
            if left <= 0:
                return
            left -= size
            yield path, size


def _distinct(
    tops: list[Path], *, binary: bool, limit: float, seed: int, seen: set[bytes]
) -> Iterator[tuple[str, int]]:
    """Yields the files that were not seen before, up to so many bytes."""
    left = limit
    for path in paths(tops, seed):
        data = Path(path).read_bytes()
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if left <= 0:
            return
        if data and digest not in seen and (b"\0" in data[:_NUL_PROBE]) == binary:
            seen.add(digest)
            left -= len(data)
            yield path, len(data)


def look(task: tuple[str, int, bool]) -> Looked:
    """Scans one file."""
    path, size, with_library = task
    extra = library.library() if with_library else None
    scan = Scanner(Fingerprints(bytes(32)), extra=extra)
    data = Path(path).read_bytes()
    began = time.process_time()
    hits = scan.scan([data], os.path.basename(path).encode())
    seconds = time.process_time() - began
    reports = [f"{hit.line}\t{hit.rule}\t{hit.value[:_SHOWN]!r}" for hit in hits]
    return Looked(path, size, seconds, reports)


def main() -> None:
    """Prints each report, then totals, then the slowest of the larger files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("top", type=Path, nargs="+")
    parser.add_argument("--binary", action="store_true")
    parser.add_argument("--library", action="store_true", help="with gitcp[secrets]")
    parser.add_argument("--most", type=float, default=1e9, help="megabytes")
    parser.add_argument("--each", type=float, default=1e9, help="MB of each directory")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    files = chosen(
        options.top,
        binary=options.binary,
        most=options.most,
        each=options.each,
        seed=options.seed,
    )
    tasks = [(path, size, options.library) for path, size in files]
    rows: list[Looked] = []
    with multiprocessing.Pool(options.jobs) as pool:
        for row in pool.imap_unordered(look, tasks, chunksize=8):
            rows.append(row)
            for report in row.reports:
                print(f"{row.path}\t{report}", flush=True)
    size, took = sum(row.size for row in rows), sum(row.seconds for row in rows)
    reported = sum(len(row.reports) for row in rows)
    print(
        f"{reported} reported in {len(rows)} files, {size / _MEGABYTE:.1f} MB,"
        f" {took:.0f} s of processor time, {took / size * _MEGABYTE:.2f} s/MB"
    )
    slow = [row for row in rows if row.size >= _MEGABYTE / 10]
    slow.sort(key=lambda row: row.size / row.seconds)
    for row in slow[:5]:
        print(f"  {row.seconds / row.size * _MEGABYTE:.2f} s/MB: {row.path}")


if __name__ == "__main__":
    main()
