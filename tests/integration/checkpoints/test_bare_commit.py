"""The last way out: `restore COMMIT --to DIR` needs nothing but the objects.

Where git opens no such repository, those that libgit2 reads are left: SHA-1.
"""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import pytest

from tests.support.gitrepo import git, git_line, write_files
from tests.support.inprocess import invoke, ok

REF = "refs/gitcp/s/main/main"


def no_refs(repo: Path) -> None:
    git(repo, "update-ref", "-d", REF)


def a_damaged_tip(repo: Path) -> None:
    (repo / ".git" / REF).write_bytes(b"\0" * 41)


def no_head(repo: Path) -> None:
    (repo / ".git/HEAD").unlink()


def a_damaged_configuration(repo: Path) -> None:
    (repo / ".git/config").write_bytes(b"[core\n\0")


def damaged_caches(repo: Path) -> None:
    shutil.rmtree(repo / ".git/gitcp/scan")
    (repo / ".git/gitcp/scan").write_bytes(b"a file")
    (repo / ".git/gitcp/packs").unlink(missing_ok=True)
    (repo / ".git/gitcp/packs").mkdir()


def a_damaged_journal(repo: Path) -> None:
    (repo / ".git/gitcp/restore.json").write_bytes(b"junk")


@pytest.mark.sha1
@pytest.mark.ref_files
@pytest.mark.parametrize(
    "damage",
    [
        no_refs,
        a_damaged_tip,
        no_head,
        a_damaged_configuration,
        damaged_caches,
        a_damaged_journal,
    ],
)
def test_a_commit_id_is_enough(repo, tmp_path, damage):
    write_files(repo, {"d/a": b"1", "b": b"1"})
    ok(repo, "save")
    commit = git_line(repo, "rev-parse", REF)
    write_files(repo, {"d/a": b"2"})
    ok(repo, "save")
    damage(repo)
    with (repo / ".git/gitcp/worktree.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = invoke(repo / "d", "restore", commit, "--to", str(tmp_path / "out"))
        assert done.returncode == 0, done.stderr
        named = invoke(
            repo / "d", "restore", commit, "a", "--to", str(tmp_path / "one")
        )
        assert named.returncode == 0, named.stderr
    assert (tmp_path / "out/d/a").read_bytes() == b"1"
    assert (tmp_path / "out/b").read_bytes() == b"1"
    assert [path.name for path in (tmp_path / "one").rglob("*")] == ["d", "a"]


@pytest.mark.sha1
@pytest.mark.ref_files
def test_without_the_key_only_trust_brings_what_tools_run(repo, tmp_path):
    """Whose checkpoint it is cannot be told then."""
    write_files(repo, {"Makefile": b"all:\n", "a": b"1"})
    ok(repo, "save")
    commit = git_line(repo, "rev-parse", REF)
    (repo / ".git/gitcp/key").unlink()
    done = invoke(repo, "restore", commit, "--to", str(tmp_path / "out"))
    assert done.returncode == 3
    assert b"Makefile" in done.stderr
    assert not (tmp_path / "out/Makefile").exists()
    (repo / ".git/HEAD").unlink()
    done = invoke(repo, "restore", commit, "--trust", "--to", str(tmp_path / "all"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "all/Makefile").exists()
