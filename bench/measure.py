"""What the benchmarks share: cases run in turn, and a table of medians."""

import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SETTLE = 0.05


class Usage(NamedTuple):
    """Wall time in seconds, and the largest resident set, in MB, of any process."""

    seconds: float
    peak: float


class Case(NamedTuple):
    """`run` is timed, `prepare` before it is not."""

    name: str
    run: Callable[[], object]
    prepare: Callable[[], object] = lambda: None


def run(
    args: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
) -> str:
    """Runs a command and returns its output; a failure ends the benchmark."""
    done = subprocess.run(
        args,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{args} failed with {done.returncode}: {done.stderr}")
    return done.stdout


def usage(args: Sequence[str | Path], cwd: Path) -> Usage:
    """Runs a command and returns its time and memory, with those of its children."""
    began = time.perf_counter()
    process = subprocess.Popen(args, cwd=cwd, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        sys.exit(f"{args} failed with {status}")
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return Usage(seconds, used.ru_maxrss / unit)


class Taken(NamedTuple):
    """Wall time, and the processor time of all processes, in seconds."""

    wall: float
    cpu: float


def in_turn(cases: Sequence[Case], rounds: int) -> dict[str, list[Taken]]:
    """Runs A B A B …, so that a busy minute hits every case alike."""
    times: dict[str, list[Taken]] = {case.name: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            case.prepare()
            before = _cpu()
            began = time.perf_counter()
            case.run()
            wall = time.perf_counter() - began
            times[case.name].append(Taken(wall, _cpu() - before))
    return times


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(title: str, times: Mapping[str, Sequence[Taken]], unit: str) -> None:
    """Prints the medians, in seconds and as multiples of the case `unit`."""

    def medians(values: Sequence[Taken]) -> Taken:
        return Taken(*map(statistics.median, zip(*values, strict=True)))

    base = medians(times[unit])
    print(f"\n### {title}\n")
    print(f"| case | median | min - max | against {unit} | processor time |")
    print("|---|---|---|---|---|")
    for name, values in times.items():
        median = medians(values)
        walls = [value.wall for value in values]
        print(
            f"| {name} | {median.wall:.3f} s | {min(walls):.3f} - {max(walls):.3f} s"
            f" | {median.wall / base.wall:.2f} x"
            f" | {median.cpu:.3f} s, {median.cpu / base.cpu:.2f} x |",
            flush=True,
        )


class Edits:
    """The same files of a tree, changed again each time."""

    def __init__(self, top: Path, count: int) -> None:
        names = run(["git", "ls-files", "-z", "*.c", "*.h", "*.txt"], top).split("\0")
        names = [name for name in names if (top / name).is_file()]
        self.paths = [top / name for name in names[:: len(names) // count][:count]]
        self._content = [path.read_bytes() for path in self.paths]

    def __call__(self) -> None:
        """Changes them, and waits until no clock can hide it."""
        for path, content in zip(self.paths, self._content, strict=True):
            path.write_bytes(content + b"// %x\n" % random.getrandbits(64))
        time.sleep(SETTLE)

    def undo(self) -> None:
        """Puts the content back that was there at the start."""
        for path, content in zip(self.paths, self._content, strict=True):
            path.write_bytes(content)
        time.sleep(SETTLE)


class Pipeline:
    """What git alone needs to record a tree: four commands on a private index.

    The private directory is as the design describes it: raw bytes, untracked cache.
    """

    def __init__(self, top: Path, directory: Path) -> None:
        common = Path(
            run(
                ["git", "rev-parse", "--path-format=absolute", "--git-common-dir"], top
            ).strip()
        )
        self._top = top
        for name in ("objects", "refs", "info"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        (directory / "HEAD").write_text("ref: refs/heads/none\n")
        (directory / "config").write_text(
            "[core]\nrepositoryformatversion=0\nbare=false\nautocrlf=false\n"
            "untrackedCache=true\n"
        )
        (directory / "info" / "attributes").write_text(
            "* -text -filter -ident -eol -working-tree-encoding\n"
        )
        (directory / "info" / "exclude").write_text(".rewind*\n")
        self._environment = {
            "GIT_DIR": str(directory),
            "GIT_WORK_TREE": str(top),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(common / "objects"),
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
            "GIT_AUTHOR_NAME": "bench",
            "GIT_AUTHOR_EMAIL": "bench@localhost",
            "GIT_COMMITTER_NAME": "bench",
            "GIT_COMMITTER_EMAIL": "bench@localhost",
        }

    def __call__(self) -> None:
        """Records the tree."""
        tree = self.tree()
        commit = self._git("commit-tree", "-m", "saved", tree)
        self._git("update-ref", "refs/bench/tip", commit)

    def tree(self) -> str:
        """Records the files only, and returns the tree's id."""
        self._git("add", "-A")
        return self._git("write-tree")

    def _git(self, *args: str) -> str:
        return run(["git", *args], self._top, self._environment).strip()
