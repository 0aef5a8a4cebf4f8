#!/usr/bin/env python3
"""Runs the slow tests, each in a pytest of its own, as often as asked, and keeps the results.

`.ci/slow.py DIR --passes 3` can be interrupted, and continues when called again: a result
counts as long as gitcp, its hooks and the test's file are what they were. DIR gets a log of
each test, and `results.tsv`: the version, the test, its seed, seconds, outcome.
"""

import argparse
import csv
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# Seconds for one test; each part is meant to stay below half an hour.
LIMIT = 1800
PYTEST = (
    sys.executable,
    *["-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-m", "slow"],
)
GREEN = ("passed", "skipped")


class Result(NamedTuple):
    """A line of `results.tsv`; `version` is a hash of what was tested."""

    version: str
    test: str
    seed: str
    seconds: str
    outcome: str


def git(*args: str) -> str:
    """Returns what git prints.

    Raises:
        subprocess.CalledProcessError: git failed.
    """
    command = ["git", "-C", str(ROOT), *args]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def versions(tests: Iterable[str]) -> dict[str, str]:
    """Returns for each test what identifies the code that it is run on."""
    code = git("rev-parse", "HEAD:gitcp", "HEAD:hooks")
    files = {
        path: blob
        for _, _, blob, path in (
            line.replace("\t", " ").split(" ", 3)
            for line in git("ls-tree", "-r", "HEAD", "tests").splitlines()
        )
    }
    return {
        test: hashlib.sha256(
            f"{code}{files[test.split('::')[0]]}".encode()
        ).hexdigest()[:12]
        for test in tests
    }


def collected(only: list[str]) -> list[str]:
    """Returns the ids of the slow tests, in the order in which pytest has them."""
    done = subprocess.run(
        [*PYTEST, "--collect-only", "-q", *(only or ["tests"])],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if "::" in line]


def run(test: str, version: str, seed: int, log: Path) -> Result:
    """Runs one test; its processes end with it."""
    started = time.monotonic()
    with log.open("wb") as out:
        child = subprocess.Popen(
            [*PYTEST, "-q", "--tb=short", test],
            cwd=ROOT, env={**os.environ, "SEED": str(seed)}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            status = child.wait(LIMIT)
        except subprocess.TimeoutExpired:
            outcome = "out of time"
            # pytest unmounts what its fixtures mounted, if it has time to.
            os.killpg(child.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(60)
        else:
            last = log.read_text("utf-8", "replace").rstrip().rpartition("\n")[2]
            passed = "passed" if " passed" in last else "skipped"
            outcome = "failed" if status else passed
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return Result(
        version, test, str(seed), f"{time.monotonic() - started:.0f}", outcome
    )


def still_to_run(
    tests: dict[str, str], results: Iterable[Result], passes: int
) -> Iterator[tuple[str, int]]:
    """Yields each test and the number of the pass; a whole pass before the next."""
    green = Counter(
        one.test
        for one in results
        if one.outcome in GREEN and tests.get(one.test) == one.version
    )
    for number in range(1, passes + 1):
        yield from ((test, number) for test in tests if green[test] < number)


def report(tests: dict[str, str], results: list[Result]) -> None:
    """Prints for each file what its tests took, and what was not green."""
    seconds: Counter[str] = Counter()
    outcomes: dict[str, Counter[str]] = {}
    for one in results:
        if tests.get(one.test) != one.version:
            continue
        name = one.test.split("::")[0]
        seconds[name] += int(one.seconds)
        outcomes.setdefault(name, Counter())[one.outcome] += 1
    for name, took in seconds.most_common():
        found = ", ".join(f"{count} {what}" for what, count in outcomes[name].items())
        print(f"{took:7,} s  {name}: {found}")
    times = Counter(
        sum(one.outcome in GREEN for one in results if one[:2] == (version, test))
        for test, version in tests.items()
    )
    for count, number in sorted(times.items()):
        print(f"{number} of {len(tests)} tests: green {count} times")


def main() -> int:
    """Returns 1 if a test failed in this call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("tests", nargs="*", help="files or tests; by default all")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time")
    parser.add_argument("--minutes", type=float, help="start no test after these")
    given = parser.parse_intermixed_args()
    if git("status", "--porcelain", "--", "gitcp", "hooks", "tests"):
        sys.exit("gitcp, hooks or tests differ from HEAD: commit them first")
    # A shell starts what runs in the background with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    ends = time.monotonic() + 60 * given.minutes if given.minutes else float("inf")
    given.directory.mkdir(parents=True, exist_ok=True)
    table = given.directory / "results.tsv"
    table.touch()
    with table.open(newline="") as lines:
        results = [Result(*row) for row in csv.reader(lines, delimiter="\t")]
    tests = versions(collected(given.tests))
    failed = 0

    def one(job: tuple[str, int]) -> None:
        nonlocal failed
        test, number = job
        if time.monotonic() > ends:
            return
        name = "".join(each if each.isalnum() else "_" for each in test)[-150:]
        found = run(test, tests[test], number, given.directory / f"{name}.{number}.log")
        results.append(found)
        failed += found.outcome not in GREEN
        with table.open("a", newline="") as lines:
            csv.writer(lines, delimiter="\t").writerow(found)
        print(f"{found.seconds:>5} s  {found.outcome}  {test}", flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        try:
            list(pool.map(one, list(still_to_run(tests, results, given.passes))))
        except KeyboardInterrupt:
            print("interrupted: waiting for the tests that run", flush=True)
            pool.shutdown(cancel_futures=True)
    report(tests, results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
