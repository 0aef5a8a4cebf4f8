"""What a rewrite refuses: it moves no ref then."""

from __future__ import annotations

import pytest

from gitcp.errors import CorruptError
from gitcp.git.transaction import transaction
from gitcp.project.workspace import open_workspace
from gitcp.store.rewrite import AS_IT_IS, rewrite
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import ok

BRANCH = "refs/gitcp/s/main/main"


def save(repo, name):
    (repo / name).write_text(name)
    return ok(repo, "save")["checkpoint"]


def rewritten(repo, change):
    workspace = open_workspace(repo)
    with transaction(workspace.repository) as txn:
        return rewrite(workspace.store, txn, [BRANCH], change)


def test_the_newest_checkpoint_of_a_branch_cannot_be_removed(repo):
    save(repo, "one")
    tip = save(repo, "two")
    with pytest.raises(ValueError, match="must not go"):
        rewritten(repo, lambda one: None if one.id == tip["id"] else AS_IT_IS)
    assert git_line(repo, "rev-parse", BRANCH) == tip["commit"]
    assert [one["seq"] for one in ok(repo, "log")["checkpoints"]] == [2, 1]


def test_a_checkpoint_with_two_parents_stops_a_rewrite(repo):
    first = save(repo, "one")
    tip = save(repo, "two")
    raw = git(repo, "cat-file", "commit", tip["commit"])
    more = f"parent {git_line(repo, 'rev-parse', 'HEAD')}\nauthor ".encode()
    two = raw.replace(b"author ", more, 1)
    write = ("hash-object", "-t", "commit", "-w", "--stdin")
    made = git(repo, *write, input=two).decode().strip()
    git(repo, "update-ref", BRANCH, made)
    with pytest.raises(CorruptError, match="more than one parent"):
        rewritten(repo, lambda one: None if one.id == first["id"] else AS_IT_IS)
    assert git_line(repo, "rev-parse", BRANCH) == made
