"""What git has begun to rely on keeps git's grace, also in packs that gitcp merged."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from gitcp.errors import BusyError
from gitcp.git import consolidate, grace
from gitcp.git.discover import discover
from gitcp.git.drop_unreachable import drop_unreachable, store_locked
from gitcp.git.registry import KEPT, Registry
from gitcp.git.transaction import Transaction
from tests.support.gitrepo import git, git_line, make_repo
from tests.support.inprocess import invoke, ok

BIG = random.Random(7).randbytes(5000)
REF = "refs/gitcp/s/main/main"
DAY = 24 * 60 * 60


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkpoint with a large file, which the next ones do not have."""
    repo = make_repo(tmp_path / "project", {"a": b"1\n"})
    git(tmp_path, "clone", "--quiet", "--shared", repo, tmp_path / "clone")
    (repo / "big").write_bytes(BIG)
    ok(repo, "save", "-m", "one")
    return repo


def pruned(repo: Path) -> None:
    (repo / "big").unlink(missing_ok=True)
    ok(repo, "save", "-m", "two")
    ok(repo, "save", "--allow-empty")
    ok(repo, "prune", "--yes", "--keep-last", "1")


def is_there(repo: Path, oid: str) -> bool:
    return bool(git(repo, "cat-file", "-t", oid, check=False))


def blob(repo: Path) -> str:
    return git_line(repo, "rev-parse", f"{REF}:big")


def age(repo: Path, days: int) -> None:
    """Makes every pack older, as days that pass would."""
    for path in (repo / ".git/objects/pack").iterdir():
        at = path.stat().st_mtime_ns - days * DAY * grace.SECOND
        os.utime(path, ns=(at, at))


def test_what_nothing_has_used_goes_at_once(project):
    oid = blob(project)
    pruned(project)
    done = ok(project, "gc")
    assert done["dropped"] > 0
    assert done["waiting"] == 0
    assert not is_there(project, oid)


def test_a_clone_that_borrows_stays_whole(project):
    clone = project.parent / "clone"
    (clone / "big").write_bytes(BIG)
    git(clone, "add", "big")
    git(clone, "commit", "--quiet", "-m", "mine")
    pruned(project)
    assert ok(project, "gc")["waiting"] > 0
    assert ok(project, "gc")["dropped"] == 0
    git(clone, "fsck", "--full")
    # What waits is not a branch that has lost its ref.
    assert ok(project, "gc")["lost"] == []


def test_an_index_of_another_name_and_a_written_object_stay(project):
    index = {"GIT_INDEX_FILE": str(project / ".git" / "my-index")}
    git(project, "add", "--all", env=index)
    oid = git_line(project, "hash-object", "-w", "big")
    pruned(project)
    ok(project, "gc")
    assert is_there(project, oid)
    git(project, "write-tree", env=index)


def test_the_grace_ends_when_git_says(project):
    oid = git_line(project, "hash-object", "-w", "big")
    pruned(project)
    ok(project, "gc")
    age(project, 13)
    ok(project, "gc")
    assert is_there(project, oid)
    age(project, 2)
    assert ok(project, "gc")["dropped"] > 0
    assert not is_there(project, oid)


def test_the_grace_is_what_git_is_set_to(project):
    oid = git_line(project, "hash-object", "-w", "big")
    git(project, "config", "gc.pruneExpire", "now")
    pruned(project)
    ok(project, "gc")
    assert not is_there(project, oid)


def test_merging_packs_does_not_forget_what_git_has_used(project):
    oid = git_line(project, "hash-object", "-w", "big")
    pruned(project)
    repository = discover(project)
    assert consolidate.consolidate(repository, force=True) > 1
    age(project, 3)
    # The time that git set is in the merged pack: ten more days, and two.
    ok(project, "gc")
    assert is_there(project, oid)
    for days, there in ((10, True), (2, False)):
        age(project, days)
        ok(project, "gc")
        assert is_there(project, oid) == there


def test_what_is_used_again_while_it_waits_is_kept_for_good(project):
    oid = git_line(project, "hash-object", "-w", "big")
    pruned(project)
    ok(project, "gc")
    (project / "big").write_bytes(BIG)
    git(project, "add", "big")
    git(project, "commit", "--quiet", "-m", "big")
    age(project, 30)
    ok(project, "gc")
    assert is_there(project, oid)
    git(project, "fsck", "--full")


class KilledError(BaseException):
    """Ends a command without its ends, as a kill does."""


def between(
    project: Path, monkeypatch: pytest.MonkeyPatch, oid: str, *, killed: bool
) -> None:
    """Lets git use an object's pack just before it is moved away, and collect just after."""
    rename = Path.rename
    packs = (project / ".git/objects/pack").glob("*.idx")
    (name,) = [path.stem for path in packs if bytes.fromhex(oid) in path.read_bytes()]

    def watched(path: Path, target: Path) -> Path:
        leaving = path.name == f"{name}.pack"
        if leaving:
            # As git does with an object that it wants to write and finds.
            os.utime(path)
        done = rename(path, target)
        if leaving:
            git(project, "gc", "--quiet")
            if killed:
                raise KilledError
        return done

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", watched)
        if killed:
            patch.setattr(Transaction, "end", lambda _: None)
            with pytest.raises(KilledError):
                drop(project)
        else:
            with pytest.raises(BusyError, match="git used one of"):
                drop(project)


def drop(project: Path) -> None:
    repository = discover(project)
    with store_locked(repository, timeout=1):
        drop_unreachable(repository)


@pytest.mark.parametrize("killed", [False, True])
def test_what_git_uses_while_its_pack_is_aside_outlives_gits_own_gc(
    project, monkeypatch, killed
):
    oid = blob(project)
    pruned(project)
    between(project, monkeypatch, oid, killed=killed)
    if not killed:
        assert is_there(project, oid)
    # The one after that would take for garbage what has no index.
    ok(project, "gc")
    assert is_there(project, oid)
    ok(project, "gc")
    assert is_there(project, oid)
    git(project, "fsck", "--full")


def test_packs_that_wait_do_not_pile_up(project):
    for number in range(4):
        (project / "more").write_bytes(random.Random(number).randbytes(2000))
        ok(project, "save")
        git(project, "hash-object", "-w", "more")
        pruned(project)
        ok(project, "gc")
    assert len(Registry(discover(project), KEPT).names()) == 1


def test_a_purge_does_not_wait_and_names_who_may_have_a_copy(project):
    oid = git_line(project, "hash-object", "-w", "big")
    done = ok(project, "purge", "--yes", "big")
    assert not is_there(project, oid)
    assert any("clone that borrows" in line for line in done["left"])


def test_a_loose_commit_whose_parent_is_missing_stops_no_gc(project):
    """What it reaches, as far as it is there, stays; the rest goes."""
    tree = git_line(project, "rev-parse", f"{REF}^{{tree}}")
    found = git(project, "cat-file", "commit", "HEAD").replace(
        b"\nauthor", b"\nparent " + b"1" * len(tree) + b"\nauthor", 1
    )
    text = re.sub(rb"^tree \w+", b"tree " + tree.encode(), found)
    git(project, "hash-object", "-w", "-t", "commit", "--stdin", input=text)
    git(project, "update-ref", "-d", REF)
    ok(project, "gc", "--drop-lost", "--yes")
    assert git(project, "ls-tree", "-r", tree)


def test_a_purge_reaches_what_waits(project):
    secret = "a value that must not be seen, 8f1b2c"
    (project / "env").write_text(f"{secret}\n")
    ok(project, "save", "-m", "with it")
    oid = git_line(project, "hash-object", "-w", "env")
    assert invoke(
        project, "purge", "--yes", "--value-from-stdin", input=secret.encode()
    ).returncode in {0, 3}
    assert not is_there(project, oid)
    assert is_there(project, blob(project))
