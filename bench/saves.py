"""Save and restore in a large project, against git's own commands and two packages.

    python bench/saves.py --gitcp VENV/bin/gitcp TREE

TREE is a committed git project to experiment on: it is written to. `prepare.py` makes
one of an unpacked source package. Without one, a project of 78,000 files is generated.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from generate import make
from measure import SETTLE, Case, Edits, Pipeline, in_turn, run, table

_REFS = "refs/gitcp"
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
    parser.add_argument("--before", help="the command of an older gitcp, beside it")
    parser.add_argument("--stepback", help="the python of a venv with stepback")
    parser.add_argument("--rewind", help="the command of rewind-ai")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", help="part of a title")
    parser.add_argument(
        "--watched",
        action="store_true",
        help="500,000 files, with Watchman: only that case; give it a HOME of its own",
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        top = given.tree
        if top is None:
            top = Path(scratch, "project")
            make(top, 500_000 if given.watched else 78_000, short=given.watched)
        bench = _Bench(given, top.absolute(), Path(scratch))
        for title, cases, unit in bench.watched() if given.watched else bench.parts():
            if given.only is None or given.only in title:
                bench.warm(title)
                table(title, in_turn(cases, given.rounds), unit)


class _Bench:
    def __init__(self, given: argparse.Namespace, top: Path, scratch: Path) -> None:
        self._given = given
        self._top = top
        self._edit = Edits(top, 10)
        self._edit_many = Edits(top, 2_000)
        self._scratch = scratch
        self._pipeline = Pipeline(top, scratch / "private.git")

    def parts(self) -> list[tuple[str, list[Case], str]]:
        """Returns title, cases and the one the others are compared with."""
        pipeline = Case("git, four commands", self._pipeline, self._edit)
        save = Case("gitcp save", lambda: self._gitcp("save"), self._edit)
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
            ("save, nothing changed", [status, *self._saves()], status.name),
            ("first save", self._first(), "git add, write-tree"),
        ]
        for title, prepare in (
            ("save, 2,000 files changed", self._edit_many),
            ("save, 10 files, after git add", self._added),
            ("save, 10 files, after git stash", self._stashed),
            ("save, 10 files, after a commit", self._committed),
        ):
            cases = [pipeline._replace(prepare=prepare), *self._saves(prepare)]
            parts.append((title, cases, pipeline.name))
        if others:
            everyone = [pipeline, save, *others]
            parts.append(("save, beside other packages", everyone, pipeline.name))
        return parts

    def watched(self) -> list[tuple[str, list[Case], str]]:
        """Returns the case of a large tree with a watcher; git works without one."""
        run(["watchman", "watch", self._top], self._top)
        run(["git", "config", "core.fsmonitor", "query-watchman"], self._top)
        for _ in range(2):
            self._gitcp("save")
        print(run([self._given.gitcp, "doctor"], self._top))
        pipeline = Case("git, four commands", self._pipeline, self._edit)
        cases = [pipeline, *self._saves(self._edit)]
        if not self._given.before:
            whole = Case("gitcp save, no watcher", self._unwatched, self._edit)
            cases.append(whole)
        return [("save, 10 of 500,000 files, with a watcher", cases, pipeline.name)]

    def _unwatched(self) -> None:
        environment = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": "false",
        }
        run([self._given.gitcp, "save"], self._top, environment)

    def _saves(self, prepare: Callable[[], object] = lambda: None) -> list[Case]:
        cases = [Case("gitcp save", lambda: self._gitcp("save"), prepare)]
        if self._given.before:
            old = self._given.before
            save = Case("gitcp save, before", lambda: run([old, "save"], self._top))
            cases.append(save._replace(prepare=prepare))
        return cases

    def _first(self) -> list[Case]:
        """Returns saves that nothing was known before, each into an empty repository."""
        private = self._scratch / "first.git"
        pipeline = Pipeline(self._top, private)

        def forget() -> None:
            shutil.rmtree(self._top / ".git" / "gitcp", ignore_errors=True)
            refs = run(
                ["git", "for-each-ref", "--format=delete %(refname)", _REFS], self._top
            )
            subprocess.run(
                ["git", "update-ref", "--stdin"],
                input=refs,
                cwd=self._top,
                text=True,
                check=True,
            )
            (private / "index").unlink(missing_ok=True)
            time.sleep(SETTLE)

        add = Case("git add, write-tree", pipeline.tree, forget)
        return [add, *self._saves(forget)]

    def _added(self) -> None:
        self._edit()
        self._git("add", "--", *map(str, self._edit.paths))
        time.sleep(SETTLE)

    def _stashed(self) -> None:
        self._edit()
        self._git("stash", "--quiet")
        self._edit()

    def _committed(self) -> None:
        self._added()
        self._git("commit", "--quiet", "-m", "ten files")
        self._edit()

    def _git(self, *args: str) -> None:
        who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        run(["git", *who, *args], self._top)

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
