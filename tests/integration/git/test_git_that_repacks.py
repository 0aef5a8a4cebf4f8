"""What gitcp reads while another git renames its packs.

The moment is too short to hit on purpose, so a script that stands before git says what git
says in it. For libgit2, the test moves the only index aside while libgit2 looks.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pygit2
import pytest

from gitcp.errors import CorruptError, GitFailedError
from gitcp.git.discover import discover
from gitcp.git.libgit import LibgitObjects
from tests.support.gitrepo import git, git_line

_SAYS = "fatal: packfile .git/objects/pack/.tmp-7-pack-ab.pack cannot be accessed"


@pytest.fixture
def fail(tmp_path, monkeypatch):
    """Lets the next calls of some of git's commands fail; returns how many did not."""

    def next_calls(command: str, count: int, said: str = _SAYS) -> Path:
        directory = tmp_path / "before-git"
        directory.mkdir()
        left = directory / "left"
        left.write_text("x" * count)
        program = directory / "git"
        program.write_text(
            f"""#!/bin/sh
case " $* " in *" {command} "*)
  if [ -s '{left}' ]; then
    printf %s "$(cut -c2- '{left}')" >'{left}'
    echo '{said}' >&2
    exit 128
  fi
esac
exec '{shutil.which("git")}' "$@"
"""
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
        return left

    return next_calls


def test_it_is_read_again(repo, fail):
    repository = discover(repo)
    expected = repository.plumbing("rev-list", "--all")
    left = fail("rev-list", 2)
    assert repository.plumbing("rev-list", "--all") == expected
    assert not left.read_text()


def test_what_stays_unreadable_is_an_error(repo, fail):
    repository = discover(repo)
    left = fail("rev-list", 9)
    with pytest.raises(
        GitFailedError, match=r"git rev-list failed: .*cannot be accessed"
    ):
        repository.plumbing("rev-list", "--all")
    assert left.read_text() == "x" * 6


@pytest.mark.parametrize(
    ("command", "said"), [("update-ref", _SAYS), ("rev-list", "fatal: bad object")]
)
def test_nothing_else_is_tried_twice(repo, fail, command, said):
    repository = discover(repo)
    left = fail(command, 2, said)
    with pytest.raises(GitFailedError, match=command):
        repository.plumbing("-c", "core.abbrev=8", command, "--all")
    assert left.read_text() == "x"


class _Meanwhile:
    """The objects as libgit2 reads them; a pack is replaced during the first `times` reads."""

    def __init__(self, odb, pack: Path, times: int) -> None:
        self._odb, self._pack, self.left = odb, pack, times

    def _read(self, name, oid):
        if not self.left:
            return getattr(self._odb, name)(oid)
        self.left -= 1
        away = self._pack.with_name("away")
        self._pack.rename(away)
        try:
            # One that has opened no pack yet, so that the index is really missing to it.
            return getattr(pygit2.Odb(str(self._pack.parents[1])), name)(oid)
        finally:
            old, self._pack = self._pack, self._pack.with_stem(f"pack-{self.left:040}")
            old.with_suffix(".pack").rename(self._pack.with_suffix(".pack"))
            away.rename(self._pack)

    def read(self, oid):
        return self._read("read", oid)

    def read_header(self, oid):
        return self._read("read_header", oid)

    def exists(self, oid):
        return self._read("exists", oid)


_READS = {
    "read": lambda objects, oid: objects.read(oid, "commit"),
    "header": lambda objects, oid: objects.header(oid)[0],
    "exists": lambda objects, oid: objects.exists(oid),
}


@pytest.fixture
def packed(repo):
    """The objects of a repository, its commit, and the index of its only pack."""
    git(repo, "repack", "-a", "-d", "-q")
    (index,) = (repo / ".git/objects/pack").glob("*.idx")
    objects = LibgitObjects(repo / ".git/objects")
    return objects, bytes.fromhex(git_line(repo, "rev-parse", "HEAD")), index


@pytest.mark.sha1
@pytest.mark.parametrize("how", _READS)
@pytest.mark.parametrize("times", [1, 3])
def test_an_object_is_looked_up_again_if_packs_changed(packed, how, times):
    objects, commit, index = packed
    expected = _READS[how](objects, commit)
    objects._odb = odb = _Meanwhile(objects._odb, index, times)
    assert _READS[how](objects, commit) == expected
    assert odb.left == 0


@pytest.mark.sha1
def test_an_object_that_stays_away_is_missing(packed):
    objects, commit, index = packed
    objects._odb = _Meanwhile(objects._odb, index, 10**6)
    with pytest.raises(CorruptError, match="is missing"):
        objects.read(commit, "commit")
    assert not objects.exists(commit)
