"""Save and restore in a large project, against git's own commands and two packages.

    python bench/saves.py --gitcp VENV/bin/gitcp TREE

TREE is a committed git project to experiment on: it is written to. `prepare.py` makes
one of an unpacked source package. Without one, a project of 78,000 files is generated.
"""

import argparse
import os
import tempfile
from pathlib import Path

from generate import make
from measure import SETTLE, Case, Edits, Pipeline, in_turn, run, table

_STEPBACK = """
from pathlib import Path
from stepback.engine import Engine
Engine(Path(".")).checkpoint()
"""


def main() -> None:
    """Runs every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--stepback", help="the python of a venv with stepback")
    parser.add_argument("--rewind", help="the command of rewind-ai")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", help="part of a title")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        top = given.tree
        if top is None:
            top = Path(scratch, "project")
            make(top, 78_000)
        bench = _Bench(given, top.absolute(), Path(scratch))
        for title, cases, unit in bench.parts():
            if given.only is None or given.only in title:
                bench.warm(title)
                table(title, in_turn(cases, given.rounds), unit)


class _Bench:
    def __init__(self, given: argparse.Namespace, top: Path, scratch: Path) -> None:
        self._given = given
        self._top = top
        self._edit = Edits(top, 10)
        self._pipeline = Pipeline(top, scratch / "private.git")

    def parts(self) -> list[tuple[str, list[Case], str]]:
        """Returns title, cases and the one the others are compared with."""
        pipeline = Case("git, four commands", self._pipeline, self._edit)
        save = Case("gitcp save", lambda: self._gitcp("save"), self._edit)
        nothing = Case("gitcp save", lambda: self._gitcp("save"))
        restore = Case(
            "gitcp restore -y", lambda: self._gitcp("restore", "-y", "last"), self._edit
        )
        status = Case("git status", lambda: run(["git", "status"], self._top))
        others = []
        if self._given.stepback:
            python = self._given.stepback
            others.append(
                Case(
                    "stepback, its checkpoint()",
                    lambda: run([python, "-c", _STEPBACK], self._top),
                    self._edit,
                )
            )
        if self._given.rewind:
            rewind = self._given.rewind
            others.append(
                Case(
                    "rewind snap", lambda: run([rewind, "snap"], self._top), self._edit
                )
            )
        parts = [
            ("save, 10 files changed", [pipeline, save], pipeline.name),
            ("save after every mtime changed", [pipeline, save], pipeline.name),
            ("restore, 10 files changed", [pipeline, restore], pipeline.name),
            ("save, nothing changed", [status, nothing], status.name),
        ]
        if others:
            everyone = [pipeline, save, *others]
            parts.append(("save, beside other packages", everyone, pipeline.name))
        return parts

    def warm(self, title: str) -> None:
        """Brings everybody's index up to date."""
        if "mtime" in title:
            for directory, _, names in os.walk(self._top):
                if ".git" not in Path(directory).relative_to(self._top).parts:
                    for name in names:
                        os.utime(Path(directory, name), follow_symlinks=False)
            # Once more than the clock of the index can tell apart.
            run(["sleep", "1.1"], self._top)
        if "packages" in title and self._given.rewind:
            run([self._given.rewind, "init"], self._top)
        run(["sleep", str(SETTLE)], self._top)
        for _ in range(2):
            self._pipeline()
            self._gitcp("save")
            run(["git", "status"], self._top)

    def _gitcp(self, *args: str) -> None:
        run([self._given.gitcp, *args], self._top)


if __name__ == "__main__":
    main()
