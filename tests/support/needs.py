"""What a test needs of the git on this machine; it is skipped where that is missing."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from gitcp.git.versions import git_version

FIRST_WITH_REFTABLE = (2, 45)
FIRST_WITH_MIGRATE = (2, 46)


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
