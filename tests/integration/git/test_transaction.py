"""Transactions side by side, as two savers at work have them open."""

from __future__ import annotations

from pathlib import Path

from gitcp.git.discover import discover
from gitcp.git.objects import BLOB
from gitcp.git.transaction import Transaction, transaction
from tests.support.gitrepo import git


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
