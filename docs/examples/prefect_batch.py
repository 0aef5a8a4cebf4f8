"""A flow of Prefect whose task is a batch; Prefect retries, gitcp knows what is done.

    python docs/examples/prefect_batch.py PROJECT LOG [--records N] [--workers N]

Each record is charged once: a step, whose effect is a line in LOG. Results go to
`squares.csv` in the project, each record under its number. Where the task fails, or its
program is killed and started again, the batch goes on from where it stood. If it is not
known whether a record was charged, the task fails without being retried.
"""

import argparse
import functools
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from prefect import flow, task

import gitcp


def charge(log: Path, number: int) -> int:
    """Reaches outside of the project: what may happen once only."""
    with log.open("a") as file:
        file.write(f"{number}\n")
    return number * number


def work(session: gitcp.Session, log: Path, number: int) -> int:
    """Runs in a worker; the session is opened again there."""
    return session.step("charge", charge, log, number)


def is_worth_a_retry(_task: Any, _run: Any, state: Any) -> bool:
    """A retry does not find out what became of an effect; the user has to."""
    return not isinstance(state.result(raise_on_failure=False), gitcp.StepUnknownError)


@task(retries=2, retry_condition_fn=is_worth_a_retry)
def charge_all(project: Path, log: Path, records: int, workers: int) -> int:
    """Returns how many records this run worked on."""
    session = gitcp.open(project).session("prefect")
    count = 0
    with (
        session.batch(
            range(records),
            every=200,
            seconds=10,
            executor=lambda: ProcessPoolExecutor(workers),
        ) as batch,
        (project / "squares.csv").open("a") as file,
    ):
        function = functools.partial(work, session, log)
        for number, square in batch.map(function, chunksize=10):
            # What was not saved when a kill came is written once more, the same.
            file.write(f"{number},{square}\n")
            file.flush()
            count += 1
    return count


@flow
def charges(project: Path, log: Path, records: int, workers: int) -> int:
    """Returns how many records this run worked on."""
    return charge_all(project, log, records, workers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args()
    print(charges(given.project, given.log, given.records, given.workers))
