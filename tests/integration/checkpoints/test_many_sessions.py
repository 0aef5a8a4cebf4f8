"""Very many sessions in one repository: what they are read from, and what is kept."""

from __future__ import annotations

import os
import shutil

import pytest

from gitcp.checkpoints import branch_index
from gitcp.git import pack_refs
from gitcp.git.discover import discover
from tests.support.clones import clone, make_hub, results, save
from tests.support.gitrepo import git, git_line
from tests.support.hooks import program
from tests.support.inprocess import invoke, ok


@pytest.fixture
def many(repo, monkeypatch):
    """Nine sessions, where three are many."""
    monkeypatch.setattr(branch_index, "MANY", 3)
    monkeypatch.setattr(pack_refs, "AT_MOST", 5)
    ok(repo, "save", "-m", "the first")
    tip = git_line(repo, "rev-parse", "refs/gitcp/s/main/main")
    for number in range(8):
        ok(
            repo,
            "save",
            "-s",
            f"s{number}",
            "--allow-empty",
            "-m",
            f"of s{number}\nmore",
        )
    assert tip
    return repo


def names(repo):
    found = ok(repo, "sessions")["sessions"]
    return {
        one["name"]: [(b["name"], b["seq"]) for b in one["branches"]] for one in found
    }


@pytest.mark.ref_files
def test_refs_are_packed_and_stay_what_they_are(many):
    assert discover(many).refs.crowd("refs/gitcp/s/") <= 5
    packed = (many / ".git" / "packed-refs").read_text()
    assert "refs/gitcp/s/s3/main" in packed
    assert len(discover(many).refs.list("refs/gitcp/s/")) == 9
    # A packed branch grows on, and is read where it stands now.
    ok(many, "save", "-s", "s3", "--allow-empty")
    assert names(many)["s3"] == [("main", 2)]
    assert git(many, "fsck", "--strict") == b""
    git(many, "tag", "x")
    git(many, "pack-refs", "--all")
    assert len(discover(many).refs.list("refs/gitcp/s/")) == 9
    assert list(discover(many).refs.list("refs/tags/")) == ["refs/tags/x"]
    assert discover(many).refs.list("refs/notes/") == {}


def test_the_list_is_kept_and_follows_each_change(many):
    first = names(many)
    assert len(first) == 9
    kept = many / ".git" / "gitcp" / "sessions.json"
    assert kept.exists()
    assert names(many) == first
    ok(many, "save", "-s", "new", "--allow-empty")
    ok(many, "fork", "--no-switch", "s1:last", "side")
    assert names(many) == {
        **first,
        "new": [("main", 1)],
        "s1": [("main", 1), ("side", 1)],
    }
    git(many, "update-ref", "-d", "refs/gitcp/s/s2/main")
    assert "s2" not in names(many)
    said = invoke(many, "sessions").stdout.decode()
    assert "of s4" in said
    assert "more" not in said
    kept.write_bytes(b"damaged")
    assert "s2" not in names(many)
    assert "s4" in names(many)


def test_what_is_kept_is_not_read_again(many, monkeypatch):
    """This is what makes ten thousand as quick as ten."""
    first = names(many)
    from gitcp.checkpoints import sessions

    def refuse(*_, **__):
        raise AssertionError("a commit was read")

    monkeypatch.setattr(sessions, "branches", refuse)
    assert names(many) == first


def test_a_pull_offers_the_remote_no_tip_of_other_sessions(tmp_path, monkeypatch):
    hub = make_hub(tmp_path)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    for number in range(20):
        ok(ann, "save", "-s", f"s{number}", "--allow-empty")
    save(bob, "-s", "fresh")
    ok(bob, "push")
    trace = tmp_path / "trace"
    program(
        tmp_path / "bin" / "git",
        f'GIT_TRACE_PACKET={trace} exec {shutil.which("git")} "$@"',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert results(ann, "pull") == {"fresh/main": ("created", "main")}
    sent = trace.read_text("utf-8", "replace")
    assert "fetch> want" in sent
    assert sent.count("fetch> have") < 16
