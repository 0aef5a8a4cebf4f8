"""Peak memory: one file of 2 GB, and a first save of very many untracked files.

    python bench/memory.py --gitcp VENV/bin/gitcp [TREE]

The files are copied from TREE; without one they are generated.
"""

import argparse
import random
import shutil
import tempfile
from pathlib import Path

from generate import make
from measure import run, usage


def main() -> None:
    """Runs both cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--megabytes", type=int, default=2048)
    parser.add_argument("--only", choices=["large", "many"])
    parser.add_argument("--scratch", help="where there is room")
    given = parser.parse_args()
    print("| case | peak | bar | time |\n|---|---|---|---|")
    if given.only != "many":
        with tempfile.TemporaryDirectory(dir=given.scratch) as scratch:
            large(given.gitcp, Path(scratch, "project"), given.megabytes)
    if given.only != "large":
        with tempfile.TemporaryDirectory(dir=given.scratch) as scratch:
            many(given.gitcp, Path(scratch, "project"), given.tree)


def large(gitcp: str, top: Path, megabytes: int) -> None:
    """Saves one large file."""
    make(top, 10)
    run(["git", "config", "gitcp.maxFileSize", "3g"], top)
    chance = random.Random(3)
    block = chance.randbytes(1 << 20)
    with (top / "large.bin").open("wb") as file:
        for number in range(megabytes):
            file.write(number.to_bytes(8, "big") + block[8:])
    _report(gitcp, top, f"a file of {megabytes / 1024:.1f} GB", "200 MB")
    listed = run(
        ["git", "ls-tree", "--name-only", "refs/gitcp/s/main/main:.gitcp/chunks"], top
    )
    assert listed.strip().endswith(f"-{megabytes << 20}"), listed


def many(gitcp: str, top: Path, tree: Path | None) -> None:
    """Saves files of which git knows none."""
    if tree is None:
        make(top, 78_000)
        shutil.rmtree(top / ".git")
    else:
        shutil.copytree(tree, top, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    run(["git", "init", "-q"], top)
    _report(gitcp, top, "a first save of many untracked files", "300 MB")
    saved = run(["git", "ls-tree", "-r", "--name-only", "refs/gitcp/s/main/main"], top)
    print(f"\n{len(saved.splitlines()):,} files are in that checkpoint.")


def _report(gitcp: str, top: Path, name: str, bar: str) -> None:
    used = usage([gitcp, "save"], top)
    print(f"| {name} | {used.peak:.0f} MB | {bar} | {used.seconds:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
