"""A gathering repository has all below what it takes, without asking git for a few commits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitcp.git import gathering
from gitcp.git.above import commits_above, stands_on
from gitcp.git.discover import discover
from gitcp.git.gathering import BASES, Gathering
from gitcp.git.objects import IN_MEMORY
from tests.support.gitrepo import git, git_line

REF = "refs/gitcp/s/one/main"


@pytest.fixture
def gathered(repo: Path, tmp_path: Path) -> Gathering:
    made = Gathering(tmp_path / "gathered" / "git", discover(repo).form)
    made.make()
    made.configure([])
    return made


def commit(repo: Path, message: str) -> str:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", message)
    return git_line(repo, "rev-parse", "HEAD")


def is_whole(gathered: Gathering, oid: str) -> bool:
    out = gathered.repository.plumbing("rev-list", "--objects", "--missing=print", oid)
    return b"?" not in out


@pytest.mark.parametrize("few", [64, 0])
def test_what_is_taken_is_whole_and_nothing_more_is_copied(
    repo, gathered, monkeypatch, few
):
    monkeypatch.setattr(gathering, "_FEW", few)
    base = git_line(repo, "rev-parse", "HEAD")
    (repo / "deep" / "er").mkdir(parents=True)
    (repo / "deep" / "er" / "one.txt").write_text("one")
    (repo / "large").write_bytes(os.urandom(IN_MEMORY + 1))
    commit(repo, "first")
    (repo / "deep" / "er" / "one.txt").write_text("two")
    git(repo, "checkout", "-qb", "side")
    commit(repo, "second")
    git(repo, "checkout", "-q", "-B", "other", base)
    (repo / "elsewhere").write_text("three")
    commit(repo, "third")
    git(repo, "merge", "-q", "--no-edit", "side")
    tip = git_line(repo, "rev-parse", "HEAD")
    gathered.take(discover(repo), {REF: tip}, [base])
    assert gathered.refs() == {REF: tip, f"{BASES}{base}": base}
    assert is_whole(gathered, tip)
    git(gathered.git_dir, "fsck", "--full", "--strict")
    before = gathered.size()
    (repo / "deep" / "er" / "one.txt").write_text("four")
    second = commit(repo, "fourth")
    gathered.take(discover(repo), {REF: second}, [base])
    assert is_whole(gathered, second)
    # The large file is not copied again.
    assert gathered.size() - before < IN_MEMORY / 2


def test_what_a_killed_process_left_is_in_no_way(repo, gathered):
    base = git_line(repo, "rev-parse", "HEAD")
    (repo / "a").write_text("one")
    tip = commit(repo, "first")
    incoming = gathered.git_dir / "incoming"
    incoming.mkdir()
    (incoming / "pack.tmp").write_bytes(b"half")
    gathered.take(discover(repo), {REF: tip}, [base])
    assert is_whole(gathered, tip)


def test_a_pack_that_is_merged_meanwhile_is_in_no_way(repo, gathered, monkeypatch):
    """A thread merges packs while commits are copied."""
    base = git_line(repo, "rev-parse", "HEAD")
    gathered.take(discover(repo), {REF: base}, [])
    gone = gathered.git_dir / "objects" / "pack" / "pack-gone.pack"
    there = gathered._packs()
    size = gathered.size()
    monkeypatch.setattr(gathered, "_packs", lambda: [gone, *there])
    assert gathered.size() == size > 0


def test_commits_above_are_those_that_git_lists(repo):
    tips: list[str] = []
    for number in range(6):
        if number > 1:
            git(repo, "checkout", "-q", "-B", f"b{number}", tips[number - 2])
        (repo / f"f{number}").write_text(f"{number}")
        tips.append(commit(repo, f"{number}"))
    git(repo, "merge", "-q", "--no-edit", tips[4])
    tips.append(git_line(repo, "rev-parse", "HEAD"))
    found = discover(repo)
    for at, tip in enumerate(tips):
        for known in ([], tips[:1], tips[1:3], [tips[at - 1], "f" * 40]):
            here = [f"^{oid}" for oid in known if oid != "f" * 40]
            listed = git(repo, "rev-list", "--boundary", tip, *here).decode().split()
            above = commits_above(found, [tip], known)
            assert set(above) == {oid for oid in listed if not oid.startswith("-")}
            assert stands_on(found, above) == {
                oid[1:] for oid in listed if oid.startswith("-")
            }
