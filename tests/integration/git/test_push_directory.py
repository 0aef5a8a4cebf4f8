"""A push from where there are many refs: git does not read them, and sends the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clones import clone, save
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import ok

pytestmark = pytest.mark.ref_files
MAIN = "refs/gitcp/s/main/main"
MANY = 1_000


def many_refs(repo: Path, number: int = MANY) -> None:
    head = git_line(repo, "rev-parse", "HEAD")
    lines = [f"create refs/gitcp/s/other{one}/main {head}\n" for one in range(number)]
    git(repo, "update-ref", "--stdin", input="".join(lines).encode())
    git(repo, "pack-refs", "--all")


def directory(repo: Path) -> Path:
    return repo / ".git/gitcp/push"


def push(repo: Path, hub: Path, remote: str = "origin") -> None:
    ok(repo, "push", remote, "main")
    assert git_line(hub, "rev-parse", MAIN) == git_line(repo, "rev-parse", MAIN)


@pytest.fixture
def other(hub: Path) -> Path:
    """A clone with a thousand sessions more, and a checkpoint to push."""
    other = clone(hub, "other")
    many_refs(other)
    save(other, a_py=b"one")
    return other


def test_among_many_refs_git_pushes_from_where_there_are_none(hub, other):
    push(other, hub)
    assert sorted(path.name for path in directory(other).iterdir()) == [
        "HEAD",
        "config",
        "refs",
    ]
    assert not list((directory(other) / "refs").iterdir())
    save(other, a_py=b"two")
    push(other, hub)


def test_among_few_refs_git_pushes_as_before(ann, hub):
    many_refs(ann, 100)
    save(ann, a_py=b"one")
    push(ann, hub)
    assert not directory(ann).exists()


def test_what_was_changed_there_is_written_again(hub, other):
    push(other, hub)
    (directory(other) / "HEAD").write_text("")
    (directory(other) / "config").unlink()
    save(other, a_py=b"two")
    push(other, hub)
    assert (directory(other) / "config").exists()


def test_addresses_and_settings_are_those_of_the_repository(hub, other):
    # Both paths are relative: to the work tree, and to the file that includes the other.
    (other / ".git/more").write_text('[remote "far"]\n\turl = ../hub.git\n')
    git(other, "config", "include.path", "more")
    assert hub == other.parent / "hub.git"
    push(other, hub, "far")
    assert directory(other).exists()


def test_a_linked_work_tree_pushes_from_there_too(hub, other):
    linked = other.parent / "linked"
    git(other, "worktree", "add", "-q", "--detach", str(linked))
    save(linked, a_py=b"two")
    ok(linked, "push", "origin", "linked")
    there = "refs/gitcp/s/linked/main"
    assert git_line(hub, "rev-parse", there) == git_line(other, "rev-parse", there)
    assert directory(other).exists()


def promised(repo: Path) -> None:
    git(repo, "config", "remote.other.promisor", "true")


def by_place(repo: Path) -> None:
    git(repo, "config", f"includeIf.gitdir:{repo}/.git.path", "more")


def by_tree(repo: Path) -> None:
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(repo, "config", "core.repositoryFormatVersion", "1")


def tracked(repo: Path) -> None:
    git(repo, "config", "--add", "remote.origin.fetch", "+refs/gitcp/*:refs/there/*")


def named_in_a_file(repo: Path) -> None:
    (repo / ".git/remotes").mkdir(exist_ok=True)
    (repo / ".git/remotes/old").write_text("URL: ../hub.git\n")


def shallow(repo: Path) -> None:
    (repo / ".git/shallow").write_text(f"{git_line(repo, 'rev-parse', 'HEAD')}\n")


@pytest.mark.parametrize(
    "change", [promised, by_place, by_tree, tracked, named_in_a_file, shallow]
)
def test_where_git_would_go_by_something_else_it_pushes_as_usual(
    hub: Path, other: Path, change: Callable[[Path], None]
) -> None:
    change(other)
    push(other, hub)
    assert not directory(other).exists()


def test_ids_of_sha256_are_pushed_from_there(tmp_path):
    hub, repo = tmp_path / "hub.git", tmp_path / "repo"
    git(tmp_path, "init", "-q", "--bare", "--object-format=sha256", str(hub))
    git(tmp_path, "init", "-q", "--object-format=sha256", str(repo))
    git(repo, "commit", "-q", "--allow-empty", "-m", "first")
    git(repo, "remote", "add", "origin", str(hub))
    many_refs(repo)
    save(repo, a_py=b"one")
    push(repo, hub)
    assert directory(repo).exists()
