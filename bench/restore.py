"""Restores and forks of thousands of files, each beside git's own way to do the same.

    python bench/restore.py --gitcp VENV/bin/gitcp TREE

TREE is a committed git project to experiment on: it is written to. `prepare.py` makes one.
Without one, a project of `--files` files is generated. `--deleted` of them go, by whole
directories as `rm -rf` takes them. Everything is written to the disk before a case begins, so
that none pays for what another one has left; git does not wait for the disk at its end, and
gitcp does. Ten files are restored beside the four commands that record a tree, followed by a
checkout: gitcp, too, records what it replaces.
"""

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path

from generate import make
from measure import Case, Edits, Pipeline, in_turn, run, table


def main() -> None:
    """Runs every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--files", type=int, default=78_648)
    parser.add_argument("--deleted", type=int, default=22_485)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="part of a title")
    given = parser.parse_args()
    beside = given.tree.absolute().parent if given.tree else None
    # New work trees go to the disk that holds the old one.
    with tempfile.TemporaryDirectory(dir=beside) as scratch:
        top = given.tree
        if top is None:
            top = Path(scratch, "project")
            make(top, given.files)
        bench = _Bench(given, top.absolute(), Path(scratch))
        for title, cases in bench.parts():
            if given.only is None or given.only in title:
                load = os.getloadavg()[0]
                table(f"{title} (load {load:.1f})", in_turn(cases, given.rounds), "git")


class _Bench:
    def __init__(self, given: argparse.Namespace, top: Path, scratch: Path) -> None:
        self._gitcp = given.gitcp
        self._top = top
        self._scratch = scratch
        self._names = 0
        self._edit = Edits(top, 10)
        self._pipeline = Pipeline(top, scratch / "private.git")
        self._doomed = self._choose(given.deleted)
        self._save()
        self._whole = self._save()
        self._pipeline()

    def _choose(self, count: int) -> list[Path]:
        """Returns whole directories, and files of the next one, with so many files."""
        paths = [Path(name) for name in self._git("ls-files", "-z").split("\0")[:-1]]
        going = paths[:count]
        stays = {above for path in paths[count:] for above in path.parents}
        tops: dict[Path, None] = {}
        for path in going:
            lines = [path, *path.parents]
            tops[[one for one in lines if one not in stays][-1]] = None
        return [self._top / one for one in tops]

    def parts(self) -> list[tuple[str, list[Case]]]:
        """Returns titles and cases; the one of git is the unit."""
        back = lambda: self._cp("restore", "-y", self._whole)  # noqa: E731
        checkout = lambda: self._git("checkout", "--", ".")  # noqa: E731
        return [
            (
                "restore of deleted files",
                [
                    Case("git", checkout, self._wreck),
                    Case("gitcp restore -y", back, self._wreck),
                ],
            ),
            (
                "undo of a restore that deleted them",
                [
                    Case("git", checkout, self._wreck),
                    Case("gitcp undo -y", self._undo, self._restored_wreck),
                ],
            ),
            (
                "undo that deletes them again",
                [
                    Case("git", self._git_remove, self._git_removed),
                    Case("gitcp undo -y", self._undo, self._restored),
                ],
            ),
            (
                "restore --to",
                [
                    Case("git", self._export, self._settle),
                    Case("gitcp restore --to", self._restore_to, self._settle),
                ],
            ),
            (
                "fork into a new work tree",
                [
                    Case("git", self._add_worktree, self._settle),
                    Case("gitcp fork --worktree", self._fork, self._settle),
                ],
            ),
            (
                # A restore records what is there before it replaces it.
                "restore of 10 changed files",
                [
                    Case("git checkout", checkout, self._edit_some),
                    Case("git", self._save_and_check_out, self._edit_some),
                    Case("gitcp restore -y", back, self._edit_some),
                ],
            ),
        ]

    # --- before a case ----------------------------------------------------------------

    def _settle(self) -> None:
        for place in self._scratch.glob("new*"):
            shutil.rmtree(place)
        self._git("worktree", "prune")
        run(["sync", "-f", self._top], self._top)

    def _wreck(self) -> None:
        for path in self._doomed:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self._settle()

    def _restored_wreck(self) -> None:
        """Goes to a checkpoint without the files, by a restore."""
        self._cp("restore", "-y", self._whole)
        self._wreck()
        wreck = self._save()
        self._cp("restore", "-y", self._whole)
        self._cp("restore", "-y", wreck)
        self._settle()

    def _restored(self) -> None:
        self._wreck()
        self._cp("restore", "-y", self._whole)
        self._settle()

    def _git_removed(self) -> None:
        self._git("checkout", "--", ".")
        self._settle()

    def _edit_some(self) -> None:
        self._git("checkout", "--", ".")
        self._edit()
        self._settle()

    # --- cases ------------------------------------------------------------------------

    def _save_and_check_out(self) -> None:
        self._pipeline()
        self._git("checkout", "--", ".")

    def _undo(self) -> None:
        self._cp("undo", "-y")

    def _git_remove(self) -> None:
        # `rm --cached` afterwards would not be part of the same: a clean index stays.
        self._git("rm", "-r", "-q", "--", *(str(one) for one in self._doomed))
        self._git("reset", "-q")

    def _export(self) -> None:
        place = self._place()
        place.mkdir()
        self._git("checkout-index", "-a", f"--prefix={place}/")

    def _restore_to(self) -> None:
        self._cp("restore", "-y", self._whole, "--to", str(self._place()))

    def _add_worktree(self) -> None:
        self._git("worktree", "add", "-q", "--detach", str(self._place()))

    def _fork(self) -> None:
        place = self._place()
        self._cp("fork", "-y", self._whole, place.name, "--worktree", str(place))

    # --- running ----------------------------------------------------------------------

    def _place(self) -> Path:
        self._names += 1
        return self._scratch / f"new{self._names}-{os.getpid()}"

    def _save(self) -> str:
        """Saves, and returns the number of the checkpoint that is there."""
        said = run([self._gitcp, "save", "--json"], self._top)
        return str(json.loads(said)["checkpoint"]["number"])

    def _cp(self, *args: str) -> None:
        run([self._gitcp, *args], self._top)

    def _git(self, *args: str) -> str:
        return run(["git", *args], self._top)


if __name__ == "__main__":
    main()
