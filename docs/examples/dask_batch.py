"""Records worked on by Dask, where any process may be killed and started again.

    python docs/examples/dask_batch.py PROJECT LOG [--records N] [--workers N]
        [--scheduler ADDRESS]

Each record is charged once: a step, whose effect is a line in LOG. Results go to
`squares.csv` in the project, each record under its number. Without an address it starts
a cluster on this machine. A record of which it is not known whether it was charged is
reported, and the program ends with 23.
"""

import argparse
import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

from distributed import Client, LocalCluster

import gitcp


def charge(log: Path, number: int) -> int:
    """Reaches outside of the project: what may happen once only."""
    with log.open("a") as file:
        file.write(f"{number}\n")
    return number * number


def work(session: gitcp.Session, log: Path, number: int) -> int:
    """Runs in a worker; the session is opened again there."""
    return session.step("charge", charge, log, number)


@contextlib.contextmanager
def connected(scheduler: str | None, workers: int) -> Iterator[Client]:
    """Yields a client of the scheduler, or of a cluster of this program's own."""
    with contextlib.ExitStack() as stack:
        cluster = scheduler or stack.enter_context(
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0"
            )
        )
        yield stack.enter_context(Client(cluster))


def main() -> int:
    """Runs the batch from where it stood; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--scheduler")
    given = parser.parse_args()
    session = gitcp.open(given.project).session("dask")
    function = functools.partial(work, session, given.log)
    out = given.project / "squares.csv"
    try:
        with (
            connected(given.scheduler, given.workers) as client,
            session.batch(
                range(given.records),
                every=200,
                seconds=10,
                executor=client.get_executor(),
            ) as batch,
            out.open("a") as file,
        ):
            for number, square in batch.map(function, chunksize=10):
                # What was not saved when a kill came is written once more, the same.
                file.write(f"{number},{square}\n")
                file.flush()
                print(number, flush=True)
    except gitcp.StepUnknownError as error:
        print(error.message, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
