"""Restores that were interrupted."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from gitcp.worktree import apply
from tests.support.inprocess import invoke


def interrupt(repo: Path, selector: str, *args: str) -> None:
    """Restores, with a Ctrl-C before the first step: the restore stays open."""
    with mock.patch.object(apply, "apply", side_effect=KeyboardInterrupt):
        done = invoke(repo, "restore", "-y", selector, *args)
    assert done.returncode == 130, done
