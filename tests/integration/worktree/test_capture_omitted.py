"""Things that come and go where a sparse checkout leaves files out, or git tracks them.

Each state of the disk gives one tree, whether or not an earlier scan knew another.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitcp.worktree.scan import Rules
from tests.conftest import GitRunner
from tests.integration.worktree.test_capture import check
from tests.support.gitrepo import commit_all, git_line, make_repo, write_files
from tests.support.snapshots import captured, skipped

EVERYTHING = b"*\n!README.md\n"
OMITTED = {"e/g/a": b"1", "e/b": b"2"}


def remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def repository(place: Path) -> None:
    make_repo(place, {"f": b"1"})


KINDS: dict[str, Callable[[Path], object]] = {
    "file": lambda place: place.write_bytes(b"new"),
    "link": lambda place: place.symlink_to("nowhere"),
    "pipe": os.mkfifo,
    "directory": Path.mkdir,
    "repository": repository,
}


def omit(repo: Path, git: GitRunner) -> None:
    write_files(repo, OMITTED)
    commit_all(repo)
    git("sparse-checkout", "set", "--no-cone", "/README.md")


def places(repo: Path) -> Iterator[Path]:
    for name in ("e", "e/g", "e/g/a"):
        yield repo / name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rules", [b"", EVERYTHING])
def test_what_comes_in_place_of_omitted_files_is_seen_at_once(
    repo: Path, git: GitRunner, rules: bytes, kind: str
):
    omit(repo, git)
    (repo / ".git/info/exclude").write_bytes(rules)
    first = captured(repo, check(repo))
    assert set(map(os.fsencode, OMITTED)) <= first.keys()
    for place in places(repo):
        place.parent.mkdir(parents=True, exist_ok=True)
        assert captured(repo, check(repo)) == first
        KINDS[kind](place)
        found = captured(repo, check(repo))
        if kind not in {"directory", "repository"}:
            assert not {path for path in found if path.startswith(b"e/g/a/")}
            assert found.get(b"e/g/a") != first[b"e/g/a"]
        remove(place)
        assert captured(repo, check(repo)) == first


def test_an_omitted_ignore_file_counts_until_something_is_in_its_place(
    repo: Path, git: GitRunner
):
    write_files(repo, {"e/.gitignore": b"*.tmp\n"})
    omit(repo, git)
    write_files(repo, {"e/x.tmp": b"1"})
    assert b"e/x.tmp" not in captured(repo, check(repo))
    (repo / "e/.gitignore").mkdir()
    assert b"e/x.tmp" in captured(repo, check(repo))
    (repo / "e/.gitignore").rmdir()
    assert b"e/x.tmp" not in captured(repo, check(repo))


def test_a_repository_that_came_around_an_omitted_submodule_counts(
    repo: Path, git: GitRunner
):
    make_repo(repo / "e/sub", {"f": b"1"})
    git("add", "e/sub")
    omit(repo, git)
    shutil.rmtree(repo / "e")
    submodule = captured(repo, check(repo))[b"e/sub"]
    assert submodule[0] == 0o160000
    git("init", "-q", "e")
    found = captured(repo, check(repo))
    # What this repository tracks in it stays; the submodule is the other one's.
    assert {b"e/g/a", b"e/b"} <= found.keys()
    assert b"e/sub" not in found
    shutil.rmtree(repo / "e/.git")
    assert captured(repo, check(repo))[b"e/sub"] == submodule


def test_an_ignored_directory_in_place_of_an_omitted_submodule(
    repo: Path, git: GitRunner
):
    inner = make_repo(repo / "e/sub", {"f": b"1"})
    git("add", "e/sub")
    omit(repo, git)
    shutil.rmtree(inner)
    write_files(repo, {"e/x": b"1"})
    (repo / ".git/info/exclude").write_bytes(EVERYTHING)
    assert b"e/sub" in captured(repo, check(repo))
    inner.mkdir()
    check(repo)
    remove(inner)
    assert b"e/sub" in captured(repo, check(repo))


def test_a_file_written_in_a_repository_that_came_where_it_was_omitted_is_captured(
    repo: Path, git: GitRunner
):
    omit(repo, git)
    check(repo)
    git("init", "-q", "e")
    write_files(repo, {"e/g/a": b"written"})
    written = git_line(repo, "hash-object", "e/g/a")
    assert captured(repo, check(repo))[b"e/g/a"] == (0o100644, written)


def test_an_omitted_ignored_file_is_captured_once_its_way_is_free(
    repo: Path, git: GitRunner
):
    omit(repo, git)
    check(repo)
    (repo / "e").symlink_to("nowhere")
    (repo / ".git/info/exclude").write_bytes(EVERYTHING)
    assert b"e/g/a" not in captured(repo, check(repo))
    (repo / "e").unlink()
    write_files(repo, {"e/g/a": b"written"})
    written = git_line(repo, "hash-object", "e/g/a")
    assert captured(repo, check(repo))[b"e/g/a"] == (0o100644, written)


def test_an_ignored_link_where_a_captured_one_was_stays_out(repo: Path, git: GitRunner):
    """The last tree has a directory there, for a tracked file in it."""
    (repo / "p").symlink_to("nowhere")
    assert b"p" in captured(repo, check(repo))
    (repo / ".git/info/exclude").write_bytes(b"/p\n")
    (repo / "p").unlink()
    write_files(repo, {"p/tracked": b"1"})
    git("add", "-f", "p/tracked")
    assert b"p/tracked" in captured(repo, check(repo))
    shutil.rmtree(repo / "p")
    (repo / "p").symlink_to("nowhere")
    assert b"p" not in captured(repo, check(repo))


def test_a_pipe_in_place_of_an_ignored_tracked_file_is_listed_while_it_is_there(
    repo: Path, git: GitRunner
):
    write_files(repo, {"e/f": b"1"})
    (repo / ".git/info/exclude").write_bytes(b"/e\n")
    git("add", "-f", "e/f")
    (repo / "e/f").unlink()
    os.mkfifo(repo / "e/f")
    assert skipped(check(repo)) == {b"e/f": "special-file"}
    (repo / "e/f").unlink()
    assert skipped(check(repo)) == {}
    os.mkfifo(repo / "e/f")
    assert skipped(check(repo)) == {b"e/f": "special-file"}
    (repo / "e/f").unlink()
    repository(repo / "e/f")
    assert skipped(check(repo)) == {b"e/f": "nested-repository"}
    shutil.rmtree(repo / "e/f")
    os.mkfifo(repo / "e/f")
    assert skipped(check(repo)) == {b"e/f": "special-file"}
    git("rm", "-q", "-f", "--cached", "e/f")
    assert skipped(check(repo)) == {}


def test_an_ignored_link_where_git_no_longer_tracks_an_omitted_file_stays_out(
    repo: Path, git: GitRunner
):
    omit(repo, git)
    (repo / ".git/info/exclude").write_bytes(b"/e/g\n")
    assert b"e/g/a" in captured(repo, check(repo))
    git("update-index", "--force-remove", "e/g/a")
    (repo / "e/g").mkdir(parents=True)
    (repo / "e/g/a").symlink_to("nowhere")
    assert b"e/g/a" not in captured(repo, check(repo))


def test_an_ignored_pipe_is_not_listed_though_a_setting_names_it(repo: Path):
    rules = Rules(100 << 20, include=("/build/o",))
    (repo / ".git/info/exclude").write_bytes(b"/build/\n")
    write_files(repo, {"build/o": b"1"})
    assert b"build/o" in captured(repo, check(repo, rules))
    (repo / "build/o").unlink()
    os.mkfifo(repo / "build/o")
    snapshot = check(repo, rules)
    assert b"build/o" not in captured(repo, snapshot)
    assert skipped(snapshot) == {}


def test_an_excluded_file_that_is_tracked_in_a_repository_inside_stays_out(
    repo: Path, git: GitRunner
):
    write_files(repo, {"d/b": b"1", "d/c": b"2"})
    git("add", "d")
    git("init", "-q", "d")
    assert {b"d/b", b"d/c"} <= captured(repo, check(repo)).keys()
    found = captured(repo, check(repo, Rules(100 << 20, exclude=("b",))))
    assert b"d/b" not in found
    assert b"d/c" in found
    write_files(repo, {"d/b": b"edited"})
    found = captured(repo, check(repo, Rules(100 << 20, exclude=("b",))))
    assert b"d/b" not in found
