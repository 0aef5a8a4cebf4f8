"""A pipeline that may be killed at any moment: every record once, or reported.

    python docs/examples/million.py PROJECT DATABASE [--records N] [--every N]

Records go in batches to a service outside of the project: here a SQLite database, which
answers in any order. Each batch is a step. Its idempotency key goes into the database
with its rows, in one transaction: so a batch that was interrupted between the service and
the record is found out about instead of guessed at. What cannot be found out is
reported, and the program ends with 23.
"""

import argparse
import random
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gitcp


def batches(records: int, every: int) -> Iterator[range]:
    """Yields the same records in the same order each time."""
    for start in range(0, records, every):
        yield range(start, min(start + every, records))


class Service:
    """The world outside: takes a batch, answers with a result for each id."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, timeout=60)
        self._database.execute("pragma journal_mode=wal")
        self._database.execute("create table if not exists done (id integer, key text)")
        self._database.execute("create table if not exists keys (key text unique)")

    def process(self, ids: range, key: str) -> list[dict[str, int]]:
        """Processes a batch; a key that it has seen is not processed again."""
        with self._database as database:
            database.execute("begin immediate")
            if not self.has(key):
                database.execute("insert into keys values (?)", (key,))
                database.executemany(
                    "insert into done values (?, ?)", ((one, key) for one in ids)
                )
            database.execute("commit")
        answers = [{"id": one, "square": one * one} for one in ids]
        random.shuffle(answers)
        return answers

    def has(self, key: str) -> bool:
        """Whether a key was processed."""
        asked = self._database.execute("select 1 from keys where key = ?", (key,))
        return asked.fetchone() is not None


def main() -> int:
    """Runs the pipeline from where it stood; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("database")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=10_000)
    wanted = parser.parse_args()
    session = gitcp.open(wanted.project).session("million")
    service = Service(wanted.database)

    def find_out(call: gitcp.Call) -> str:
        """Says what became of an interrupted batch: the service knows its key."""
        return "again" if service.has(call.intent.key) else "failed"

    session.on_unknown(find_out)

    def process(first: int, last: int, idempotency_key: str) -> dict[str, Any]:
        ids = range(first, last)
        answers = service.process(ids, idempotency_key)
        # By their ids: the order of the answers means nothing.
        squares = {answer["id"]: answer["square"] for answer in answers}
        missing = sorted(set(ids) - squares.keys())
        if missing:
            raise ValueError(f"no answer for {len(missing)} records from {missing[0]}")
        out = wanted.project / "squares" / f"{first:09}.csv"
        out.parent.mkdir(exist_ok=True)
        out.write_text("".join(f"{one},{squares[one]}\n" for one in ids))
        return {"first": first, "records": len(ids)}

    done = 0
    try:
        work = batches(wanted.records, wanted.every)
        with session.batch(work, every=10, seconds=30) as batch:
            for ids in batch:
                key = f"{ids.start}"
                done = session.step("batch", process, ids.start, ids.stop, key=key)[
                    "records"
                ]
                print(ids.stop, done, flush=True)
    except gitcp.StepUnknownError as error:
        print(error.message, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
