"""A clock with a time that git cannot store: a save counts more than its date."""

from __future__ import annotations

import pytest

from gitcp.ledger.ledgers import Ledgers
from gitcp.store.store import Store
from tests.support.gitrepo import git, make_repo, write_files
from tests.support.inprocess import ok


@pytest.mark.parametrize(
    ("now", "kept"),
    [(-5e8, "1970-01-01T00:00:00.000Z"), (4e11, "9998-12-31T23:59:59.000Z")],
)
def test_a_save_takes_the_nearest_time_that_git_can_store(
    tmp_path, monkeypatch, now, kept
):
    for init in (Store.__init__, Ledgers.__init__):
        defaults = init.__kwdefaults__
        assert defaults is not None
        assert "clock" in defaults
        monkeypatch.setitem(defaults, "clock", lambda: now)
    repo = make_repo(tmp_path / "repo", {"a": b"1\n"})
    assert ok(repo, "save")["checkpoint"]["created"] == kept
    write_files(repo, {"a": b"2\n"})
    assert ok(repo, "save")["created"]
    ok(repo, "restore", "1", "-y")
    assert (repo / "a").read_bytes() == b"1\n"
    assert ok(repo, "verify")["ok"]
    git(repo, "fsck", "--strict", "--no-dangling")
