"""Disk before and after pruning, and what a limit costs a save.

python bench/prune.py --gitcp VENV/bin/gitcp
"""

import argparse
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from generate import make
from measure import Case, in_turn, run, table

_SIZE = 100_000


def main() -> None:
    """Runs every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--saves", type=int, default=500)
    given = parser.parse_args()
    gitcp = shutil.which(given.gitcp) or given.gitcp
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch, "project")
        make(top, 300)
        disk(gitcp, top, given.saves)
        limit(gitcp, Path(scratch), given.rounds)


def change(top: Path, chance: random.Random) -> None:
    """Gives three files new content, which does not compress; and has a message."""
    for number in range(3):
        (top / f"changed-{number}").write_bytes(chance.randbytes(_SIZE // 3))


def disk(gitcp: str, top: Path, saves: int) -> None:
    """Saves often, prunes all but ten, and collects."""
    chance = random.Random(5)
    subprocess.run(["git", "gc", "-q"], cwd=top, check=True)
    empty = used(top)
    for number in range(saves):
        change(top, chance)
        line = b'{"n":%d}\n' % number
        command = [gitcp, "-q", "save", "--append", "-"]
        subprocess.run(command, cwd=top, input=line, check=True, capture_output=True)
    print(f"### {saves} saves of {_SIZE / 1000:.0f} KB each, pruned to 10\n")
    print("| | gitcp's part of .git | seconds |\n|---|---|---|")
    print(f"| before | {(used(top) - empty) / 1e6:.2f} MB | |")
    for command in (["prune", "-y"], ["gc"]):
        began = time.perf_counter()
        run([gitcp, *command], top)
        took = time.perf_counter() - began
        name = " ".join(command)
        print(f"| `gitcp {name}` | {(used(top) - empty) / 1e6:.2f} MB | {took:.2f} |")
    kept = 10 * _SIZE / 1e6
    print(f"\nTen checkpoints hold {kept:.2f} MB that does not compress.\n")


def limit(gitcp: str, scratch: Path, rounds: int) -> None:
    """Times saves into a branch at its limit beside one without."""
    chance = random.Random(6)
    cases = []
    for name, setting in (("no limit", "0"), ("maxCheckpoints 50", "50")):
        top = scratch / setting
        make(top, 300)
        run(["git", "config", "gitcp.maxCheckpoints", setting], top)

        def prepare(top: Path = top) -> None:
            change(top, chance)

        def save(top: Path = top) -> None:
            run([gitcp, "save"], top)

        for _ in range(60):
            prepare()
            save()
        cases.append(Case(name, save, prepare))
    table("a save at the limit", in_turn(cases, rounds), "no limit")


def used(top: Path) -> int:
    """Returns the bytes of everything in the git directory but the scan state."""
    return sum(
        path.lstat().st_size
        for path in (top / ".git").rglob("*")
        if path.is_file() and "scan" not in path.parts
    )


if __name__ == "__main__":
    main()
