"""The ground the other tests stand on."""

import os
import subprocess
from pathlib import Path

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import NEW_REPOSITORIES
from tests.support.gitrepo import (
    Executable,
    GitError,
    Symlink,
    commit_all,
    git_line,
    make_repo,
    tree_bytes,
    write_files,
)


def test_the_repo_has_two_commits_and_is_clean(repo, git):
    assert git("rev-list", "--count", "HEAD") == b"2\n"
    assert git("status", "--porcelain", "--ignored") == b""
    assert git_line(repo, "symbolic-ref", "--short", "HEAD") == "main"


def test_git_sees_no_configuration_but_the_repository_s(repo):
    shown = subprocess.run(
        ["git", "config", "--list", "--show-scope"],
        cwd=repo,
        capture_output=True,
        check=True,
    ).stdout
    assert {line.split(b"\t")[0] for line in shown.splitlines()} == {b"local"}


@pytest.mark.sha1
@pytest.mark.ref_files
def test_libgit2_sees_no_configuration_but_the_repository_s(repo):
    levels = {entry.level for entry in pygit2.Repository(repo).config}
    assert levels == {pygit2.enums.ConfigLevel.LOCAL}


@pytest.mark.sha1
@pytest.mark.ref_files
def test_there_is_no_identity(repo, sealed):
    assert not list(sealed.iterdir())
    done = subprocess.run(
        ["git", "-c", "user.useConfigOnly=true", "commit", "--allow-empty", "-m", "x"],
        cwd=repo,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 128
    with pytest.raises(KeyError):
        pygit2.Repository(repo).config["user.name"]


def test_nothing_foreign_is_left_in_the_environment():
    git_names = {name for name in os.environ if name.startswith("GIT")}
    git_names -= NEW_REPOSITORIES.keys()
    ours = {"GITCP_BACKGROUND", "GITCP_SECRETS_LIBRARY"}
    assert git_names == {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"} | ours


@given(st.binary())
def test_hypothesis_runs_sealed(data):
    assert bytes(bytearray(data)) == data
    assert os.environ["GIT_CONFIG_NOSYSTEM"] == "1"


def test_a_failing_git_says_why(repo, git):
    with pytest.raises(GitError, match="no-such-ref"):
        git("rev-parse", "--verify", "refs/no-such-ref")
    assert git("cat-file", "-e", "HEAD:absent", check=False) == b""


def test_tree_bytes_tells_everything_apart(tmp_path: Path):
    root = make_repo(
        tmp_path,
        {"a": b"x", "b": Executable(b"x"), "c": Symlink(b"a"), "d/e": b"\xff"},
    )
    (root / "empty").mkdir()
    make_repo(root / "nested")
    os.mkfifo(root / "pipe")
    (tmp_path / os.fsdecode(b"\xe9")).write_bytes(b"")
    found = tree_bytes(root)
    assert b".git" not in found
    assert found[b"nested/.git/HEAD"][0] == "file"
    assert {k: v for k, v in found.items() if not k.startswith(b"nested")} == {
        b"a": ("file", 0, b"x"),
        b"b": ("file", 0o111, b"x"),
        b"c": ("link", 0, b"a"),
        b"d": ("dir", 0, b""),
        b"d/e": ("file", 0, b"\xff"),
        b"empty": ("dir", 0, b""),
        b"pipe": ("other", 0, b""),
        b"\xe9": ("file", 0, b""),
    }


def test_written_files_replace_what_was_there(repo):
    write_files(repo, {"latest": b"now a file\n", "README.md": Symlink(b"latest")})
    assert tree_bytes(repo)[b"latest"] == ("file", 0, b"now a file\n")
    assert (repo / "README.md").is_symlink()
    assert commit_all(repo) == git_line(repo, "rev-parse", "main")
