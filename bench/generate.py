"""A generated project for machines without a large real one."""

import random
from pathlib import Path

from measure import run

_WORDS = """
    int return static struct void const char if else for while unsigned long size
    buffer device driver kernel module probe remove lock free alloc error index
""".split()  # noqa: SIM905


def make(top: Path, files: int) -> None:
    """Makes a committed git project of so many source files, the same each time."""
    chance = random.Random(1)
    top.mkdir(parents=True)
    for number in range(files):
        path = top / f"part{number % 40}" / f"unit{number // 640}" / f"f{number}.c"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            " ".join(chance.choices(_WORDS, k=9))
            for _ in range(max(1, int(chance.expovariate(1 / 250))))
        ]
        path.write_text("\n".join(lines) + "\n")
    commit(top)


def commit(top: Path) -> None:
    """Makes a git repository of a directory, with one commit."""
    run(["git", "init", "-q"], top)
    run(["git", "add", "-A"], top)
    who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    # A gc in the background would be in the way of the one below.
    who += ["-c", "gc.auto=0", "-c", "maintenance.auto=false"]
    run(["git", *who, "commit", "-q", "-m", "the project"], top)
    run(["git", "gc", "-q"], top)
