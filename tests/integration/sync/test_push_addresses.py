"""A remote with several addresses to push to: each is told, and gets what it lacks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.clones import save
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import fails, invoke, ok

MAIN = "refs/gitcp/s/main/main"
NOTED = "refs/gitcp/r/origin/main/main"


@pytest.fixture
def other(hub: Path, ann: Path) -> Path:
    """Another hub, without any session, that `ann` pushes to as well."""
    other = hub.parent / "other.git"
    git(hub.parent, "clone", "-q", "--bare", str(hub), str(other))
    for address in (hub, other):
        git(ann, "config", "--add", "remote.origin.pushurl", str(address))
    return other


def told(done: dict[str, object]) -> dict[str, str]:
    branches = done["branches"]
    assert isinstance(branches, list)
    return {Path(one["address"]).name: one["result"] for one in branches}


def tip(repo: Path, ref: str = MAIN) -> str:
    return git_line(repo, "rev-parse", "--verify", "-q", ref)


def test_each_address_gets_what_it_lacks_and_is_told(ann, hub, other):
    save(ann, a_py=b"one")
    both = {hub.name: "created", other.name: "created"}
    assert told(ok(ann, "push", "--dry-run")) == both
    assert not git(other, "for-each-ref", "refs/gitcp/")
    assert told(ok(ann, "push")) == both
    assert tip(hub) == tip(other) == tip(ann) == tip(ann, NOTED)
    # One of them has lost it.
    git(other, "update-ref", "-d", MAIN)
    save(ann, a_py=b"two")
    done = invoke(ann, "push")
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    assert [line[:2] for line in lines] == [
        ["fast-forward", "main/main"],
        ["created", "main/main"],
    ]
    assert [line[3] for line in lines] == [str(hub), str(other)]
    assert tip(hub) == tip(other) == tip(ann)
    assert set(told(ok(ann, "push")).values()) == {"up-to-date"}


def test_one_that_is_ahead_keeps_what_it_has(ann, bob, hub, other):
    save(ann, a_py=b"one")
    ok(ann, "push")
    ok(bob, "pull")
    save(bob, a_py=b"bob")
    ok(bob, "push")
    ahead = tip(hub)
    save(ann, a_py=b"ann")
    said = fails(ann, 3, "push")
    assert str(hub) in said
    assert "git remote add" in said
    assert tip(hub) == ahead
    assert tip(other) == tip(ann)
    # Not every address has it: a pull from there would not bring it.
    assert tip(ann, NOTED) != tip(ann)
    ok(ann, "pull")
    found = fails(ann, 3, "push")
    assert str(other) not in found


def test_one_that_cannot_be_reached_does_not_keep_the_others(ann, hub, other):
    save(ann, a_py=b"one")
    ok(ann, "push")
    before = tip(ann, NOTED)
    shutil.move(other, away := other.with_name("away"))
    save(ann, a_py=b"two")
    said = fails(ann, 3, "push")
    assert "cannot be reached" in said
    assert str(other) in said
    assert tip(hub) == tip(ann)
    assert tip(ann, NOTED) == before
    shutil.move(hub, hub.with_name("too"))
    assert "cannot be reached" in fails(ann, 21, "push")
    shutil.move(hub.with_name("too"), hub)
    shutil.move(away, other)
    assert told(ok(ann, "push")) == {hub.name: "up-to-date", other.name: "fast-forward"}


def test_no_password_in_an_address_is_printed(ann, hub):
    for address in (hub, "https://me:hidden@localhost:1/x.git"):
        git(ann, "config", "--add", "remote.origin.pushurl", str(address))
    save(ann, a_py=b"one")
    done = invoke(ann, "push")
    assert done.returncode == 3
    assert b"localhost:1/x.git" in done.stdout + done.stderr
    assert b"hidden" not in done.stdout + done.stderr
    assert tip(hub) == tip(ann)
