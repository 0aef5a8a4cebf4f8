"""Records worked on by Ray, where any process may be killed and started again.

    python docs/examples/ray_batch.py PROJECT LOG [--records N] [--workers N]
        [--address ADDRESS]

Each record is charged once: a step, whose effect is a line in LOG. Results go to
`squares.csv` in the project, each record under its number. Without an address it starts
Ray on this machine. A record of which it is not known whether it was charged is
reported, and the program ends with 23.
"""

import argparse
import functools
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import ray

import gitcp


class RayExecutor(Executor):
    """Runs each call as a task of Ray; gitcp hands it out again if its worker dies."""

    def __init__(self) -> None:
        self._task: Any = ray.remote(max_retries=0)(_call)

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Hands a call to Ray; what it may not do is cancel."""
        future: Future[Any] = self._task.remote(fn, args, kwargs).future()
        # Ray runs a call even if its future is cancelled, so nothing may cancel it.
        future.set_running_or_notify_cancel()
        return future


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


def charge(log: Path, number: int) -> int:
    """Reaches outside of the project: what may happen once only."""
    with log.open("a") as file:
        file.write(f"{number}\n")
    return number * number


def work(session: gitcp.Session, log: Path, number: int) -> int:
    """Runs in a worker; the session is opened again there."""
    return session.step("charge", charge, log, number)


def main() -> int:
    """Runs the batch from where it stood; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--address")
    given = parser.parse_args()
    session = gitcp.open(given.project).session("ray")
    function = functools.partial(work, session, given.log)
    out = given.project / "squares.csv"
    here = {"num_cpus": given.workers, "include_dashboard": False}
    try:
        with (
            ray.init(given.address or "local", **({} if given.address else here)),
            session.batch(
                range(given.records), every=200, seconds=10, executor=RayExecutor()
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
