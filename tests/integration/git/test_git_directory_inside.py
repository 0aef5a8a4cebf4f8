"""A git directory in the work tree under another name is not part of the project."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fault.harness import needs_root
from tests.support.gitrepo import commit_all, git, git_line, make_repo, write_files
from tests.support.inprocess import invoke, ok


def separate(top: Path) -> Path:
    (top / "deep").mkdir(parents=True)
    git(top.parent, "init", "-q", "--separate-git-dir", top / "deep/meta", top)
    return top / "deep/meta"


def linked(top: Path) -> Path:
    make_repo(top)
    (top / ".git").rename(top / "store")
    (top / ".git").symlink_to("store")
    return top / "store"


@pytest.fixture(params=[separate, linked])
def odd(request, tmp_path: Path) -> tuple[Path, Path]:
    """A project, and its git directory somewhere inside."""
    top = tmp_path / "odd"
    place = request.param(top)
    write_files(top, {"a": b"1", "deep/b": b"1"})
    commit_all(top, "one")
    return top, place


def names(top: Path, selector: str = "last") -> list[str]:
    return [entry["path"] for entry in ok(top, "files", selector)["files"]]


def test_it_is_not_captured(odd):
    top, place = odd
    ok(top, "save")
    assert names(top) == ["a", "deep/b"]
    # Git itself takes such a directory for files.
    git(top, "add", "-A")
    ok(top, "save", "--allow-empty")
    assert names(top) == ["a", "deep/b"]
    assert place.is_dir()


def forge(top: Path, place: Path) -> str:
    """A checkpoint as an older gitcp made it, or a stranger sends it."""
    inside = os.fsencode(place.relative_to(top))
    tip = git_line(top, "rev-parse", "refs/gitcp/s/main/main")
    index = {"GIT_INDEX_FILE": str(top.parent / "index")}
    git(top, "read-tree", tip, env=index)
    blob = git(top, "hash-object", "-w", "--stdin", input=b"#!/bin/sh\ntouch /tmp/x\n")
    for name in (b"hooks/post-commit", b"refs/heads/main", b"HEAD", b"new/dir/f"):
        git(
            top,
            "update-index",
            "--add",
            "--cacheinfo",
            b"100755," + blob.strip() + b"," + inside + b"/" + name,
            env=index,
        )
    tree = git(top, "write-tree", env=index).decode().strip()
    raw = git(top, "cat-file", "commit", tip)
    head, _, rest = raw.partition(b"\n")
    made = b"tree " + tree.encode() + b"\n" + rest
    assert head.startswith(b"tree ")
    new = git(top, "hash-object", "-t", "commit", "-w", "--stdin", input=made)
    git(top, "update-ref", "refs/gitcp/s/main/main", new.decode().strip())
    return new.decode().strip()


def test_it_is_not_restored_over(odd):
    top, place = odd
    ok(top, "save")
    write_files(top, {"a": b"2"})
    commit_all(top, "two")
    head = git_line(top, "rev-parse", "HEAD")
    forge(top, place)
    done = invoke(top, "restore", "--json", "--yes", "last")
    assert done.returncode in {0, 3}, done.stderr
    assert (top / "a").read_bytes() == b"1"
    assert b"git directory" in done.stdout
    assert git_line(top, "rev-parse", "HEAD") == head
    assert not (place / "hooks/post-commit").exists()
    assert not (place / "new").exists()
    ok(top, "undo", "--yes")
    assert (top / "a").read_bytes() == b"2"
    assert git_line(top, "rev-parse", "HEAD") == head


@needs_root
def test_it_is_known_by_more_than_its_path(repo: Path):
    """A second mount of it has another path and the same identity."""
    (repo / "again").mkdir()
    mounted = subprocess.run(
        ["mount", "--bind", repo / ".git", repo / "again"],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("cannot mount")
    try:
        ok(repo, "save")
        assert not [name for name in names(repo) if name.startswith("again")]
    finally:
        subprocess.run(["umount", "-l", repo / "again"], check=True)
