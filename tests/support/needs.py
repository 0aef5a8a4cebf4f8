"""What a test needs of the git on this machine; it is skipped where that is missing."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from gitcp.git.versions import git_version

FIRST_WITH_REFTABLE = (2, 45)
FIRST_WITH_MIGRATE = (2, 46)
# Some releases of 2.35 and older ones do, too.
FIRST_WITH_OWNERS = (2, 36)


@functools.cache
def knows_reftable() -> bool:
    return git_version(Path("/"))[0] >= FIRST_WITH_REFTABLE


def needs_reftable() -> None:
    """Skips the test where git keeps refs in files only."""
    if not knows_reftable():
        pytest.skip("git is older than 2.45, and keeps refs in files only")


def knows_migrate() -> bool:
    return git_version(Path("/"))[0] >= FIRST_WITH_MIGRATE


def needs_migrate() -> None:
    """Skips the test where git cannot move refs to another storage."""
    if not knows_migrate():
        pytest.skip("git is older than 2.46, and does not migrate refs")


def knows_owners() -> bool:
    return git_version(Path("/"))[0] >= FIRST_WITH_OWNERS


def needs_owners() -> None:
    """Skips the test where git does not ask whose a repository is."""
    if not knows_owners():
        pytest.skip("git is older than 2.36, and may not ask who owns a repository")
