"""After a change of the user's index only the names that came are judged again."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcp.git import process
from gitcp.worktree.tracked_names import _difference
from tests.conftest import GitRunner
from tests.support.gitrepo import commit_all, git_line, make_repo, write_files
from tests.support.snapshots import capture, captured

NAMES = st.frozensets(
    st.text("ab/-", min_size=1, max_size=4).map(str.encode), max_size=8
)


def listed(names: frozenset[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in sorted(names))


@given(NAMES, NAMES, NAMES)
def test_the_difference_is_that_of_the_sets(both, one, other):
    before, now = both | one, both | other
    assert _difference(listed(before), listed(now)) == (before - now, now - before)


@pytest.fixture
def asked(monkeypatch) -> list[tuple[str, ...]]:
    """What git is asked from now on."""
    noted: list[tuple[str, ...]] = []
    start = process.start

    def noting(args, **how):
        noted.append((*map(str, args), how.get("env", {}).get("GIT_INDEX_FILE", "")))
        return start(args, **how)

    monkeypatch.setattr(process, "start", noting)
    return noted


def judged(asked: list[tuple[str, ...]]) -> list[str]:
    """In which indexes git looked for ignored names: the user's, or one of our own."""
    found = ["all" if not args[-1] else "some" for args in asked if "--ignored" in args]
    asked.clear()
    return found


def test_known_names_are_not_judged_again(repo: Path, git: GitRunner, asked):
    write_files(repo, {"b.log": b"1"})
    git("add", "-f", "b.log")
    capture(repo)
    assert judged(asked) == ["all"]
    write_files(repo, {"README.md": b"other", "b.log": b"2"})
    git("add", "README.md", "b.log")
    assert captured(repo, capture(repo))[b"b.log"]
    git("commit", "-q", "-m", "more")
    capture(repo)
    assert judged(asked) == []
    # Only what came is judged, and what went is gone.
    write_files(repo, {"c.log": b"", "new": b""})
    git("add", "-f", "c.log", "new")
    git("rm", "-q", "--cached", "b.log")
    paths = captured(repo, capture(repo)).keys()
    assert {b"c.log", b"new"} <= paths
    assert b"b.log" not in paths
    assert judged(asked) == ["some"]
    git("rm", "-q", "--cached", "c.log")
    assert b"c.log" not in captured(repo, capture(repo))
    assert judged(asked) == []


def test_an_ignored_file_stays_known_once_a_conflict_in_it_is_resolved(
    repo: Path, git: GitRunner
):
    # The index lists it three times meanwhile.
    write_files(repo, {"b.log": b"1"})
    git("add", "-f", "b.log")
    git("commit", "-q", "-m", "one")
    git("checkout", "-q", "-b", "side")
    for branch, content in [("side", b"2"), ("main", b"3")]:
        git("checkout", "-q", branch)
        write_files(repo, {"b.log": content})
        git("commit", "-q", "-a", "-m", branch)
    git("merge", "-q", "side", check=False)
    assert b"b.log" in captured(repo, capture(repo))
    git("merge", "--abort")
    assert b"b.log" in captured(repo, capture(repo))


@pytest.mark.parametrize("damage", [b"", b"README.md\0", None])
def test_names_that_are_not_those_of_the_state_do_not_count(
    repo: Path, git: GitRunner, asked, damage
):
    write_files(repo, {"b.log": b"1", "c.log": b"1"})
    git("add", "-f", "b.log")
    capture(repo)
    kept = repo / ".git/gitcp/scan/names"
    if damage is None:
        kept.unlink()
    else:
        kept.write_bytes(damage)
    git("add", "-f", "c.log")
    assert {b"b.log", b"c.log"} <= captured(repo, capture(repo)).keys()
    assert judged(asked) == ["all", "all"]


def test_a_file_that_became_a_submodule_under_its_name_is_one(
    repo: Path, git: GitRunner, tmp_path: Path
):
    write_files(repo, {"b.log": b"1"})
    git("add", "-f", "b.log")
    capture(repo)
    (repo / "b.log").unlink()
    other = make_repo(repo / "b.log")
    write_files(other, {"f": b""})
    commit_all(other, "inner")
    inner = git_line(other, "rev-parse", "HEAD")
    git("update-index", "--add", "--cacheinfo", f"160000,{inner},b.log")
    learnt = capture(repo)
    fresh = capture(repo, fresh=True, remember=False)
    assert learnt.skipped == fresh.skipped != ()
    assert learnt.tree == fresh.tree
