"""The deepest path that the format allows goes through every command that walks trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcp.format.safety import DEPTH_LIMIT
from tests.support.gitrepo import git, make_repo, write_files
from tests.support.inprocess import ok

DEEPEST = "/".join(["d"] * (DEPTH_LIMIT - 1) + ["f"])


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A repository with two checkpoints: one with the deepest path, and one without."""
    top = make_repo(tmp_path / "here", {"g": b"1"})
    write_files(top, {DEEPEST: b"1"})
    ok(top, "save", "-s", "work")
    (top / DEEPEST).unlink()
    ok(top, "save", "-s", "work")
    assert ok(top, "verify")["problems"] == []
    return top


def test_it_is_restored_and_undone(here):
    ok(here, "restore", "-y", "#1")
    assert (here / DEEPEST).read_bytes() == b"1"
    ok(here, "undo", "-y")
    assert not (here / DEEPEST).exists()
    [change] = ok(here, "diff", "#1", "#2")["changes"]
    assert change["path"] == DEEPEST


def test_it_is_pushed_and_pulled(here, tmp_path):
    git(tmp_path, "init", "-q", "--bare", "remote")
    git(here, "remote", "add", "origin", tmp_path / "remote")
    ok(here, "push")
    there = make_repo(tmp_path / "there")
    git(there, "remote", "add", "origin", tmp_path / "remote")
    ok(there, "pull")
    ok(there, "restore", "-y", "--trust", "work/main:1")
    assert (there / DEEPEST).read_bytes() == b"1"


@pytest.mark.sha1
def test_it_goes_to_a_repository_with_another_hash(here, tmp_path):
    ok(here, "export", "work:last", "-o", str(tmp_path / "file"))
    git(tmp_path, "init", "-q", "--object-format=sha256", "there")
    ok(tmp_path / "there", "import", str(tmp_path / "file"))
    assert ok(tmp_path / "there", "verify")["problems"] == []


def test_it_is_purged(here):
    done = ok(here, "purge", "-y", DEEPEST)
    assert len(done["checkpoints"]) == 1
    assert ok(here, "verify")["problems"] == []
    assert ok(here, "diff", "#1", "#2")["changes"] == []
