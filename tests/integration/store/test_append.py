"""An append beside other processes that move the branch."""

from __future__ import annotations

import pytest

from gitcp.errors import BranchMovedError
from gitcp.git.transaction import transaction
from gitcp.project.workspace import open_workspace
from gitcp.store.append import append_checkpoint, grow
from gitcp.store.draft import Draft

DRAFT = Draft("manual", allow_empty=True)


def test_an_append_to_a_branch_that_keeps_moving_gives_up_and_removes_nothing(repo):
    workspace = open_workspace(repo)
    store = workspace.store
    others = []

    def faster(_):
        """Another process appends after each look at the tip."""
        with transaction(workspace.repository) as other:
            saved = append_checkpoint(store, other, "main", "main", DRAFT)
        others.append(saved.checkpoint.commit)
        return DRAFT

    with (
        transaction(workspace.repository) as txn,
        pytest.raises(BranchMovedError, match="kept moving"),
    ):
        grow(store, txn, "main", "main", faster)
    assert len(others) > 1
    found = [one.commit for one in store.line(store.require_tip("main", "main"))]
    assert found == others[::-1]
