"""A pattern over repositories as a remote: each session is in one of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.clones import results, save
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import fails, invoke, ok, partly
from tests.support.servers import git_daemon

# By the hash of their names.
SHARD = {"main": "d", "vat": "c"}


@pytest.fixture
def shards(hub: Path, ann: Path, bob: Path) -> Path:
    """Sixteen repositories, and two clones that share sessions by them."""
    base = hub.parent / "shards"
    first = base / "s-0.git"
    git(hub.parent, "init", "-q", "--bare", first)
    for number in range(1, 16):
        shutil.copytree(first, base / f"s-{number:x}.git")
    for repo in (ann, bob):
        git(repo, "config", "gitcp.remote", pattern(base))
    return base


def pattern(base: Path) -> str:
    return f"{base}/s-{{shard:x}}.git"


def of(shards: Path, session: str) -> Path:
    return shards / f"s-{SHARD[session]}.git"


def refs_in(repository: Path) -> set[str]:
    found = git(repository, "for-each-ref", "--format=%(refname)").decode()
    return set(found.split())


def test_each_session_goes_to_its_repository_and_comes_from_there(ann, bob, shards):
    save(ann, "-s", "main", a_py=b"one")
    save(ann, "-s", "vat", a_py=b"two")
    both = {"main/main": ("created", "main"), "vat/main": ("created", "main")}
    assert results(ann, "push", "--dry-run") == both
    assert results(ann, "push") == both
    assert refs_in(of(shards, "main")) == {"refs/gitcp/s/main/main"}
    assert refs_in(of(shards, "vat")) == {"refs/gitcp/s/vat/main"}
    assert b"has everything" in invoke(ann, "push").stderr
    listed = ok(bob, "remote-sessions")["sessions"]
    assert {one["name"] for one in listed} == {"main", "vat"}
    assert results(bob, "pull") == both
    assert git_line(bob, "rev-parse", "refs/gitcp/s/vat/main") == git_line(
        ann, "rev-parse", "refs/gitcp/s/vat/main"
    )
    assert b"nothing new" in invoke(bob, "pull").stderr
    # What both continued is told apart as at any remote, by a name without the number.
    save(ann, "-s", "vat", a_py=b"ann")
    save(bob, "-s", "vat", a_py=b"bob")
    ok(ann, "push")
    assert results(bob, "pull")["vat/main"] == ("forked", "main~s")


def test_a_named_session_is_asked_for_in_its_repository_alone(ann, bob, shards):
    save(ann, "-s", "main", a_py=b"one")
    save(ann, "-s", "vat", a_py=b"two")
    ok(ann, "push", pattern(shards), "vat")
    assert not refs_in(of(shards, "main"))
    for one in shards.iterdir():
        if one != of(shards, "vat"):
            shutil.rmtree(one)
    assert results(bob, "pull", pattern(shards), "vat") == {
        "vat/main": ("created", "main")
    }
    said = fails(bob, 13, "pull", pattern(shards), "main")
    assert "s-d.git" in said
    # Of all, those that are there have been asked.
    assert results(bob, "pull") == {"vat/main": ("up-to-date", "main")}
    shutil.rmtree(of(shards, "vat"))
    for verb in ("pull", "remote-sessions", "push"):
        assert "s-" in fails(bob, 21, verb)


def test_a_missing_repository_keeps_its_own_sessions_only(ann, bob, shards):
    save(ann, "-s", "main", a_py=b"one")
    save(ann, "-s", "vat", a_py=b"two")
    shutil.rmtree(of(shards, "vat"))
    foretold = partly(ann, "push", "--dry-run")["branches"]
    done = partly(ann, "push")
    assert done["branches"] == foretold
    told = {one["session"]: one["result"] for one in foretold}
    assert told == {"main": "created", "vat": "rejected"}
    assert "s-c.git" in done["branches"][1]["reason"]
    assert "s-c.git" in fails(ann, 3, "push")
    assert refs_in(of(shards, "main")) == {"refs/gitcp/s/main/main"}
    assert results(bob, "pull") == {"main/main": ("created", "main")}


def test_one_that_does_not_answer_is_named_after_the_others_were_taken(
    ann, bob, shards
):
    save(ann, "-s", "main", a_py=b"one")
    save(ann, "-s", "vat", a_py=b"two")
    ok(ann, "push")
    ok(bob, "pull")
    save(ann, "-s", "main", a_py=b"three")
    ok(ann, "push")
    # A repository that git cannot read, and that is there.
    (of(shards, "vat") / "config").write_text("[core\n")
    done = partly(bob, "pull")
    told = {one["session"]: one["result"] for one in done["branches"]}
    assert told == {"main": "fast-forward"}
    assert done["gone"] == []
    assert "s-c.git" in fails(bob, 3, "pull")
    assert "s-c.git" in fails(bob, 3, "remote-sessions")
    # It is asked only for a session that it can have, and may have.
    assert results(bob, "pull", pattern(shards), "main")
    assert "s-c.git" in fails(bob, 21, "pull", pattern(shards), "vat")


def test_a_session_in_a_repository_of_another_name_is_left_alone(ann, bob, shards):
    save(ann, "-s", "vat", a_py=b"two")
    ok(ann, "push")
    git(
        of(shards, "main"),
        "fetch",
        "-q",
        str(of(shards, "vat")),
        "refs/gitcp/s/vat/main:refs/gitcp/s/other/main",
    )
    assert ok(bob, "pull")["ignored"] == ["refs/gitcp/s/other/main"]
    assert b"in the repository of its name" in invoke(bob, "pull").stderr


def test_what_was_pushed_before_stays_where_it_is(ann, bob, hub, shards):
    save(ann, "-s", "vat", a_py=b"two")
    ok(ann, "push", "origin")
    before = refs_in(hub)
    save(ann, "-s", "vat", a_py=b"three")
    assert results(ann, "push") == {"vat/main": ("created", "main")}
    assert refs_in(hub) == before
    assert results(bob, "pull", "origin") == {"vat/main": ("created", "main")}
    assert results(bob, "pull") == {"vat/main": ("fast-forward", "main")}


def test_pruned_and_purged_checkpoints_are_replaced_in_their_repository(
    ann, bob, shards
):
    for number in range(3):
        save(ann, "-s", "vat", a_py=b"%d" % number)
    ok(ann, "push")
    ok(ann, "prune", "--keep-last", "1", "-y", "-s", "vat")
    assert results(ann, "push", "--pruned") == {"vat/main": ("pruned", "main")}
    ref = "refs/gitcp/s/vat/main"
    assert git_line(of(shards, "vat"), "rev-parse", ref) == git_line(
        ann, "rev-parse", ref
    )
    assert "not an object store" in fails(ann, 2, "gc", "--remote", pattern(shards))


def test_a_pattern_is_not_the_address_of_a_remote_of_git(ann, shards):
    git(ann, "remote", "add", "shards", pattern(shards))
    save(ann, a_py=b"one")
    said = fails(ann, 2, "push", "shards")
    assert "git cannot use" in said
    assert "git config gitcp.remote" in said


def test_a_server_that_is_away_is_not_a_repository_that_is_missing(ann, bob, shards):
    save(ann, "-s", "vat", a_py=b"two")
    with git_daemon(shards) as url:
        for repo in (ann, bob):
            git(repo, "config", "gitcp.remote", f"{url}/s-{{shard:x}}.git")
        assert results(ann, "push") == {"vat/main": ("created", "main")}
        shutil.rmtree(of(shards, "main"))
        assert results(bob, "pull") == {"vat/main": ("created", "main")}
    assert "cannot be reached" in fails(bob, 21, "pull")
    assert "cannot be reached" in fails(ann, 21, "push")


def test_a_password_in_the_pattern_is_shown_nowhere(ann, shards, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(shards.parent / "state"))
    git(ann, "config", "gitcp.remote", "https://ann:s3cret@h.invalid/{shard:x}.git")
    git(ann, "config", "gitcp.autoPush", "save")
    save(ann, a_py=b"one")
    done = invoke(ann, "status")
    assert b"may not hold a password" in done.stderr
    assert b"s3cret" not in done.stdout + done.stderr
    assert "s3cret" not in fails(ann, 2, "push")
    assert b"s3cret" not in git(ann, "for-each-ref")
    assert not (shards.parent / "state" / "gitcp" / "spool").exists()
