"""Transactions side by side, as two savers at work have them open."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcp.errors import BranchMovedError
from gitcp.git import transaction as transactions
from gitcp.git.discover import discover
from gitcp.git.ended import settle_refs
from gitcp.git.objects import BLOB
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction
from tests.support.gitrepo import commit_all, git, git_line, write_files


def packs(repo: Path) -> list[str]:
    found = (repo / ".git" / "objects" / "pack").iterdir()
    return sorted(path.suffix for path in found)


def stored(opened: Transaction) -> bytes:
    oid = opened.add_object(BLOB, b"the same in both\n")
    opened.store()
    return oid


def test_two_that_hold_the_same_objects_do_not_get_in_each_others_way(repo):
    """Each keeps its own pack: the other may let go of its own first."""
    found = discover(repo)
    before = packs(repo)
    with transaction(found) as second:
        with transaction(found) as first:
            oid = stored(first)
            assert stored(second) == oid
            assert packs(repo).count(".keep") == 2
        assert packs(repo).count(".keep") == 1
        git(repo, "gc", "-q", "--prune=now")
        assert found.objects.blob(oid) == b"the same in both\n"
    assert packs(repo).count(".keep") == 0
    # And once more, where the pack stands and no process holds it.
    with transaction(found) as third:
        assert stored(third) == oid
    assert (
        packs(repo).count(".pack") == packs(repo).count(".idx") > before.count(".pack")
    )
    git(repo, "fsck", "--full", "--strict")
    assert not list((repo / ".git" / "gitcp" / "tmp").iterdir())


REF = "refs/gitcp/s/work/main"


@pytest.fixture
def moving(repo: Path) -> tuple[Path, str]:
    """The lock of a ref that exists, and another commit for it."""
    git(repo, "update-ref", REF, "HEAD")
    write_files(repo, {"b.txt": b"b"})
    commit_all(repo)
    return repo / ".git" / f"{REF}.lock", git_line(repo, "rev-parse", "HEAD")


@pytest.mark.ref_files
def test_refs_that_moved_leave_the_lock_that_another_process_then_takes(
    repo, monkeypatch, moving
):
    """Without it two savers move a branch at once, and a checkpoint of one is lost."""
    lock, new = moving

    def then_another(repository: Repository, directory: Path) -> None:
        settle_refs(repository, directory)
        assert not lock.exists()
        lock.touch()

    monkeypatch.setattr(transactions, "settle_refs", then_another)
    with transaction(discover(repo)) as opened:
        opened.publish_together([REF], lambda: {REF: new})
    assert git_line(repo, "rev-parse", REF) == new
    assert lock.exists()


@pytest.mark.ref_files
def test_a_signal_after_a_ref_moved_leaves_the_lock_that_another_process_then_takes(
    repo, monkeypatch, moving
):
    lock, new = moving
    rename = Path.rename

    def then_another(path: Path, target: Path) -> None:
        rename(path, target)
        if path == lock:
            lock.touch()
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", then_another)
    old = git_line(repo, "rev-parse", REF)
    with (
        pytest.raises(KeyboardInterrupt),
        transaction(discover(repo)) as opened,
    ):
        opened.publish(REF, expect=old, new=bytes.fromhex(new))
    assert git_line(repo, "rev-parse", REF) == new
    assert lock.exists()


@pytest.mark.ref_files
def test_what_fails_before_a_ref_moves_leaves_no_lock(repo, moving):
    lock, new = moving

    def decide() -> dict[str, str]:
        assert lock.exists()
        raise ValueError("cannot")

    with transaction(discover(repo)) as opened:
        with pytest.raises(ValueError, match="cannot"):
            opened.publish_together([REF], decide)
        assert not lock.exists()
        with pytest.raises(BranchMovedError):
            opened.publish(REF, expect=new, new=bytes.fromhex(new))
    assert not lock.exists()
