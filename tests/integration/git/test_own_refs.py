"""gitcp moves no ref but its own, whatever name it is handed."""

from __future__ import annotations

import pytest

from gitcp.errors import GitFailedError, UnsafePathError
from gitcp.git.discover import discover
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


ONE, TWO = "refs/gitcp/s/one/main", "refs/gitcp/s/two/main"


@pytest.mark.parametrize("packed", [False, True])
def test_refs_are_deleted_loose_or_packed(repo, packed):
    head = git_line(repo, "rev-parse", "HEAD")
    for ref in (ONE, TWO):
        git(repo, "update-ref", ref, head)
    if packed:
        git(repo, "pack-refs", "--all")
    refs = discover(repo).refs
    refs.delete({ONE: head, TWO: None})
    assert not refs.list("refs/gitcp/")
    assert refs.read("refs/heads/main") == head


def test_where_one_ref_has_moved_none_is_deleted(repo):
    head = git_line(repo, "rev-parse", "HEAD")
    for ref in (ONE, TWO):
        git(repo, "update-ref", ref, head)
    refs = discover(repo).refs
    with pytest.raises(GitFailedError):
        refs.delete({ONE: head, TWO: "1" * len(head)})
    assert set(refs.list("refs/gitcp/")) == {ONE, TWO}
    with pytest.raises(UnsafePathError):
        refs.delete({ONE: head, "refs/heads/main": head})
    assert set(refs.list("refs/gitcp/")) == {ONE, TWO}
