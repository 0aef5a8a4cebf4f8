"""A batch to be killed: python -m tests.support.charging PROJECT RECORDS [SCHEDULER].

Each record is charged in a step, whose effect is a line in `charged` beside the project;
its result goes to `results` there. Workers that it starts itself leave their process ids
in `workers`. With `ask` in the environment's `UNKNOWN`, a step that was interrupted is
answered by what `charged` says.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import gitcp


def append(to: Path, line: str) -> None:
    """One write, which a kill does not tear."""
    file = os.open(to, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def announce(to: Path) -> None:
    append(to, f"{os.getpid()}\n")


def charge(log: Path, number: int) -> int:
    append(log, f"{number}\n")
    return number * number


def work(session: gitcp.Session, log: Path, number: int) -> int:
    session.step("charge", charge, log, number)
    return number * number


def was_charged(log: Path, call: Any) -> str:
    """The scope of a step in a batch is `record N`."""
    number = call.slot.scope.removeprefix("record ")
    return "done" if number in log.read_text().split() else "again"


def main(project: Path, records: int, scheduler: str | None = None) -> int:
    session = gitcp.open(project).session("charging")
    log, results = project.parent / "charged", project.parent / "results"
    if os.environ.get("UNKNOWN") == "ask":
        session.on_unknown(partial(was_charged, log))
    with ExitStack() as stack:
        executor: Any = partial(
            ProcessPoolExecutor,
            4,
            initializer=announce,
            initargs=(project.parent / "workers",),
        )
        if scheduler is not None:
            from distributed import Client

            executor = stack.enter_context(Client(scheduler)).get_executor()
        batch = stack.enter_context(
            session.batch(range(records), every=200, seconds=1, executor=executor)
        )
        try:
            for number, square in batch.map(partial(work, session, log), chunksize=10):
                append(results, f"{number} {square}\n")
        except gitcp.StepUnknownError:
            print(*sorted(batch.unknown), flush=True)
            return 23
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
