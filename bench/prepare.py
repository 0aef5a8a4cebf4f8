"""Makes the project that the benchmarks are run on.

    python bench/prepare.py UNPACKED TREE

UNPACKED is a source tree, such as that of the Debian package `linux-source-6.1`. That
one ignores all of its own files (`/*` in its `.gitignore`); the copy does not.
"""

import argparse
import shutil
from pathlib import Path

from generate import commit, make


def main() -> None:
    """Copies or generates, and commits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", type=Path)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--files", type=int, default=78_000)
    given = parser.parse_args()
    if given.source is None:
        make(given.tree, given.files)
        return
    shutil.copytree(
        given.source, given.tree, symlinks=True, ignore=shutil.ignore_patterns(".git")
    )
    rules = given.tree / ".gitignore"
    if rules.exists():
        kept = [
            line
            for line in rules.read_text().splitlines(keepends=True)
            if line.strip() not in {"/*", "!/debian/"}
        ]
        rules.write_text("".join(kept))
    commit(given.tree)


if __name__ == "__main__":
    main()
