"""Two versions of gitcp on the same work, in pairs: what a change costs.

    python bench/versions.py --before OLD/bin/gitcp --after NEW/bin/gitcp

Each has a copy of its own of one generated project.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from generate import make
from measure import SETTLE, Case, Edits, in_turn, run

REMOVED = 2_000


def main() -> None:
    """Runs every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True, help="the older command")
    parser.add_argument("--after", required=True, help="the newer command")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", help="part of a title")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        first = Path(scratch, "before")
        make(first, given.files)
        second = Path(scratch, "after")
        subprocess.run(["cp", "-a", first, second], check=True)
        sides = [_Side(given.before, first), _Side(given.after, second)]
        print("| case | before | after | wall, median of pairs | processor time |")
        print("|---|---|---|---|---|", flush=True)
        for title in _CASES:
            if given.only is None or given.only in title:
                _compare(title, sides, given.pairs)


class _Side:
    """One version and its project."""

    def __init__(self, command: str, top: Path) -> None:
        self._command = command
        self.top = top
        self.edit = Edits(top, 10)
        names = sorted(top.glob("part*/unit*/*.c"))[:REMOVED]
        self._removed = [(path, path.read_bytes()) for path in names]

    def remove(self) -> None:
        for path, _ in self._removed:
            path.unlink()
        time.sleep(SETTLE)

    def put_back(self) -> None:
        """What the last round left is saved, so that each starts from the same."""
        for path, content in self._removed:
            path.write_bytes(content)
        self.edit.undo()
        time.sleep(1.1)
        self.gitcp("save", "--allow-empty")

    def gitcp(self, *args: str) -> None:
        run([self._command, *args], self.top)


class _Doing(NamedTuple):
    prepare: Callable[[_Side], None]
    args: tuple[str, ...]


_CASES = {
    "save, nothing changed": _Doing(lambda side: None, ("save",)),
    "save, 10 files changed": _Doing(lambda side: side.edit(), ("save",)),
    "restore, 10 files changed": _Doing(
        lambda side: side.edit(), ("restore", "-y", "last")
    ),
    "restore, 2,000 files deleted": _Doing(
        lambda side: (side.put_back(), side.remove())[0], ("restore", "-y", "last")
    ),
    "log": _Doing(lambda side: None, ("log",)),
    "start-up": _Doing(lambda side: None, ("--version",)),
}


def _compare(title: str, sides: list[_Side], pairs: int) -> None:
    doing = _CASES[title]
    names = ["before", "after"]
    for side in sides:
        side.put_back()
        doing.prepare(side)
        side.gitcp(*doing.args)

    def case(name: str, side: _Side) -> Case:
        return Case(name, lambda: side.gitcp(*doing.args), lambda: doing.prepare(side))

    taken = in_turn([case(*one) for one in zip(names, sides, strict=True)], pairs)
    walls, cpus = (
        [
            getattr(after, field) / getattr(before, field)
            for before, after in zip(taken["before"], taken["after"], strict=True)
        ]
        for field in ("wall", "cpu")
    )
    medians = [statistics.median(one.wall for one in taken[name]) for name in names]
    print(
        f"| {title} | {medians[0]:.3f} s | {medians[1]:.3f} s"
        f" | {statistics.median(walls):.2f} x | {statistics.median(cpus):.2f} x |",
        flush=True,
    )


if __name__ == "__main__":
    main()
