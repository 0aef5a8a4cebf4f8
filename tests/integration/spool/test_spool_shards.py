"""One process sends to all repositories of a pattern, in one push to each a round."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gitcp.spool import entries
from tests.support.clones import save
from tests.support.gitrepo import git
from tests.support.inprocess import ok
from tests.support.spooling import run_round


@pytest.fixture
def shards(hub: Path, ann: Path, bob: Path, monkeypatch) -> Path:
    monkeypatch.setenv("GITCP_PUSH_INTERVAL", "0s")
    monkeypatch.setenv("XDG_STATE_HOME", str(hub.parent / "state"))
    base = hub.parent / "shards"
    first = base / "s-c.git"
    git(hub.parent, "init", "-q", "--bare", first)
    hook = first / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nwc -l >>pushes\n")
    hook.chmod(0o755)
    shutil.copytree(first, base / "s-d.git")
    for repo in (ann, bob):
        git(repo, "config", "gitcp.remote", f"{base}/s-{{shard:x}}.git")
    return base


def refs_in(repository: Path) -> set[str]:
    found = git(repository, "for-each-ref", "--format=%(refname)").decode()
    return set(found.split())


def one_round() -> tuple[int, int]:
    (spool,) = entries.every_spool()
    return run_round(spool)


def test_clones_leave_in_one_push_to_each_repository(ann, bob, shards):
    save(ann, "-s", "main", a_py=b"ann")
    save(ann, "-s", "vat", a_py=b"ann")
    ok(ann, "push", "--spool")
    one_round()
    assert refs_in(shards / "s-d.git") == {"refs/gitcp/s/main/main"}
    assert refs_in(shards / "s-c.git") == {"refs/gitcp/s/vat/main"}
    for one in shards.iterdir():
        assert (one / "pushes").read_text().split() == ["1"]
    assert ok(ann, "status")["unsent"] == []
    # As after any push, the clone knows what is there.
    assert ok(ann, "push", "--spool")["branches"][0]["result"] == "up-to-date"
    # Another clone continues what it has pulled; its repository alone is asked.
    ok(bob, "pull")
    save(bob, "-s", "vat", a_py=b"two")
    ok(bob, "push", "--spool")
    shutil.rmtree(shards / "s-d.git")
    one_round()
    assert (shards / "s-c.git" / "pushes").read_text().split() == ["1", "1"]
    assert ok(bob, "status")["unsent"] == []


def test_a_repository_that_is_not_there_keeps_no_other_waiting(ann, bob, shards):
    (shards / "s-d.git").rename(shards / "away")
    save(ann, "-s", "main", a_py=b"ann")
    ok(ann, "push", "--spool")
    one_round()
    (waiting,) = ok(ann, "status")["unsent"]
    assert waiting["refs"] == ["refs/gitcp/s/main/main"]
    assert "s-d.git" in waiting["reason"]
    save(bob, "-s", "vat", a_py=b"bob")
    ok(bob, "push", "--spool")
    one_round()
    assert refs_in(shards / "s-c.git") == {"refs/gitcp/s/vat/main"}
    assert ok(bob, "status")["unsent"] == []
    (shards / "away").rename(shards / "s-d.git")
    one_round()
    assert refs_in(shards / "s-d.git") == {"refs/gitcp/s/main/main"}
    assert ok(ann, "status")["unsent"] == []


def test_one_that_does_not_answer_is_tried_again_and_named(ann, shards):
    save(ann, "-s", "main", a_py=b"ann")
    save(ann, "-s", "vat", a_py=b"ann")
    ok(ann, "push", "--spool")
    sound = (shards / "s-d.git" / "config").read_bytes()
    (shards / "s-d.git" / "config").write_text("[core\n")
    assert one_round() == (1, 1)
    assert refs_in(shards / "s-c.git") == {"refs/gitcp/s/vat/main"}
    assert "s-d.git" in ok(ann, "status")["unsent"][0]["reason"]
    # It has not refused anything: `push --wait` goes on waiting.
    (spool,) = entries.every_spool()
    (one,) = spool.pending().values()
    assert (one.tries, one.reason) == (1, "")
    # Nor is the whole pattern put off where all that is asked is away.
    assert one_round() == (0, 1)
    assert spool.progress().failures == 0
    (shards / "s-d.git" / "config").write_bytes(sound)
    assert one_round() == (1, 0)
