"""`undo` takes back the last restore in a work tree, and no other."""

from __future__ import annotations

import json

import pytest

from tests.support.agent import Agent
from tests.support.gitrepo import git
from tests.support.inprocess import invoke, ok


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Agent(repo, tmp_path / "claude")


def test_undo_does_not_pass_over_a_restore_whose_state_is_gone(repo, agent):
    first = agent.turn("one", a="1")
    second = agent.turn("two", a="2")
    ok(repo, "restore", second.id, "--yes")
    (repo / "b").write_text("3")
    ok(repo, "save", "-s", "other")
    restored = ok(repo, "restore", first.id, "--yes")["checkpoint"]
    for ref in git(repo, "for-each-ref", "--format=%(refname)").decode().split():
        if "/other/" in ref:
            git(repo, "update-ref", "-d", ref)
    done = invoke(repo, "undo", "--json", "--yes")
    assert done.returncode == 13, done.stdout
    error = json.loads(done.stderr)["error"]
    assert (
        f"the state that the restore #{restored['number']} replaced" in error["message"]
    )
    assert (repo / "a").read_text() == "1"


def test_each_work_tree_keeps_its_last_restore_though_others_restore_later(
    repo, tmp_path
):
    other = tmp_path / "other"
    git(repo, "worktree", "add", "-q", str(other))
    (repo / "a").write_text("one")
    first = ok(repo, "save", "-s", "shared")["checkpoint"]
    (repo / "a").write_text("two")
    ok(repo, "save", "-s", "shared")
    ok(repo, "restore", first["id"], "--yes")
    # Newer restores on the same branch, elsewhere: prune keeps what this one needs.
    ok(other, "switch", "shared")
    for _ in range(3):
        (other / "b").write_text("there")
        ok(other, "restore", first["id"], "--yes")
    ok(repo, "prune", "--keep-last", "1", "--yes")
    ok(repo, "undo", "--yes")
    assert (repo / "a").read_text() == "two"
