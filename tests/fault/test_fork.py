"""A process forked while gitcp is at work blocks no other and releases no lock."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from gitcp import durable
from gitcp.errors import BusyError
from gitcp.git import consolidate
from gitcp.git.transaction import transaction
from gitcp.project.workspace import open_workspace
from tests.support.forks import lasting_child
from tests.support.gitrepo import write_files
from tests.support.inprocess import ok


def leaves_early() -> bool:
    """Forks; true in the child, which goes on as if it were the parent."""
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    return child == 0


def test_a_lock_that_was_let_go_of_is_not_kept_by_a_child(tmp_path):
    lock = tmp_path / "x.lock"
    with ExitStack() as children, ExitStack() as stack:
        stack.enter_context(durable.locked(lock, what="it", timeout=0))
        children.enter_context(lasting_child())
        stack.close()
        with durable.locked(lock, what="it", timeout=0):
            pass


def test_a_child_does_not_let_go_of_its_parents_lock(tmp_path):
    lock = tmp_path / "x.lock"
    child = False
    with durable.locked(lock, what="it", timeout=0):
        child = leaves_early()
        if not child:
            with (
                pytest.raises(BusyError),
                durable.locked(lock, what="it", timeout=0),
            ):
                pytest.fail("two hold it")
    if child:
        os._exit(0)


def test_a_child_does_not_end_its_parents_transaction(repo):
    repository = open_workspace(repo).repository
    child = False
    with transaction(repository) as opened:
        oid = opened.add_blob(b"new")
        child = leaves_early()
        if not child:
            assert len(list((repository.store_dir / "tmp").iterdir())) == 1
            opened.store()
            assert repository.objects.blob(oid) == b"new"
    if child:
        os._exit(0)


def test_packs_are_merged_beside_a_child_that_was_forked_in_a_merge(repo, monkeypatch):
    repository = open_workspace(repo).repository
    merge = consolidate._merge
    with ExitStack() as children:

        def forking(*given, **how):
            children.enter_context(lasting_child())
            return merge(*given, **how)

        monkeypatch.setattr(consolidate, "_merge", forking)
        for number in range(4):
            write_files(repo, {"a.txt": b"%d" % number})
            ok(repo, "save")
            if number % 2:
                # Returns 0 if another thread is at it.
                assert consolidate.consolidate(repository, force=True) > 0
