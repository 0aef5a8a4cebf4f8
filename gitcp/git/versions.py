"""Versions of git and libgit2."""

import re
from pathlib import Path

from gitcp.git import process

# Up to here git does not sync what it writes last into a table of refs (0093).
TABLES_UNSYNCED = (2, 55)
OLDEST_GIT = (2, 32)


def git_version(directory: Path) -> tuple[tuple[int, int], str]:
    """Returns git's version as numbers and as it says it.

    Raises:
        GitFailedError: git is not installed.
    """
    said = process.run(["version"], cwd=directory).decode("utf-8", "replace").strip()
    match = re.search(r"(\d+)\.(\d+)", said)
    numbers = (int(match[1]), int(match[2])) if match else (0, 0)
    return numbers, said.removeprefix("git version ")


def libgit2_version() -> str:
    """Returns the versions of pygit2 and of libgit2."""
    # Only `doctor` and reports of bugs want it, and both take long to load.
    from importlib.metadata import version  # noqa: PLC0415

    import pygit2  # noqa: PLC0415

    return f"pygit2 {version('pygit2')}, libgit2 {pygit2.LIBGIT2_VERSION}"
