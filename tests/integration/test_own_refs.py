"""gitcp moves no ref but its own, whatever name it is handed."""

from __future__ import annotations

import pytest

from gitcp.errors import UnsafePathError
from gitcp.git.repository import discover
from gitcp.git.transaction import transaction
from tests.support.gitrepo import git, git_line


@pytest.mark.parametrize(
    "name",
    [
        "refs/heads/main",
        "HEAD",
        "refs/gitcp/../heads/main",
        "refs/gitcp/s//x",
        "refs/gitcp/./x",
        "refs/gitcp/s/x/",
        "../outside",
        "/tmp/outside",
    ],
)
def test_a_ref_that_is_not_below_its_own_is_never_moved(repo, name):
    repository = discover(repo)
    head = git_line(repo, "rev-parse", "HEAD")
    before = git(repo, "for-each-ref"), sorted((repo / ".git").rglob("*.lock"))
    with transaction(repository) as opened:
        with pytest.raises(UnsafePathError):
            opened.publish(name, expect=head, new=bytes.fromhex(head))
        with pytest.raises(UnsafePathError):
            opened.publish_together([name], lambda: {name: head})
    assert before == (
        git(repo, "for-each-ref"),
        sorted((repo / ".git").rglob("*.lock")),
    )
