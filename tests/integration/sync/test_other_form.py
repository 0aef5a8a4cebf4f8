"""Sharing between repositories whose ids are made by SHA-256, and by another hash."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.clones import clone, make_hub, save
from tests.support.gitrepo import git, git_line, make_repo
from tests.support.inprocess import fails, ok

HOOK = Path(__file__).resolve().parents[3] / "hooks" / "update"


@pytest.fixture
def team(tmp_path, monkeypatch) -> tuple[Path, Path]:
    """Two clones of a hub, all three with SHA-256, and gitcp's hook at the hub."""
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    hub = make_hub(tmp_path)
    shutil.copy(HOOK, hub / "hooks" / "update")
    monkeypatch.delenv("GIT_DEFAULT_HASH")
    return clone(hub, "ann"), clone(hub, "bob")


def test_sessions_are_shared_with_sha256(team):
    ann, bob = team
    assert git_line(ann, "rev-parse", "--show-object-format") == "sha256"
    save(ann, a_py=b"1")
    save(ann, a_py=b"2")
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "restore", "-y", "main:1")
    assert (bob / "a.py").read_bytes() == b"1"
    save(bob, a_py=b"3")
    pushed = ok(bob, "push")["branches"]
    assert [one["result"] for one in pushed] == ["fast-forward"]
    ok(ann, "pull")
    assert ok(ann, "verify")["problems"] == []
    ok(ann, "export", "last", "-o", str(bob / "file"))
    ok(bob, "import", str(bob / "file"))
    git(bob, "fsck", "--strict", "--no-dangling")


@pytest.mark.parametrize("sends", [True, False])
def test_what_names_objects_otherwise_is_refused_in_one_sentence(team, tmp_path, sends):
    ann, _ = team
    save(ann, a_py=b"1")
    other = make_repo(tmp_path / "other", {"f": b"1"})
    ok(other, "save")
    here, there = (ann, other) if sends else (other, ann)
    git(here, "remote", "add", "there", there)
    ours, theirs = ("SHA-256", "SHA-1") if sends else ("SHA-1", "SHA-256")
    before = [git(one, "for-each-ref") for one in (here, there)]
    for verb in ("push", "pull"):
        said = fails(here, 21, verb, "there")
        assert f"there names its objects by {theirs}, this repository by {ours}" in said
    assert [git(one, "for-each-ref") for one in (here, there)] == before


@pytest.mark.parametrize("sends", [True, False])
def test_so_is_a_remote_without_refs(team, tmp_path, sends):
    ann, _ = team
    other = make_repo(tmp_path / "other", {"f": b"1"})
    form = "sha1" if sends else "sha256"
    git(tmp_path, "init", "-q", "--bare", f"--object-format={form}", "empty")
    here = ann if sends else other
    save(here, a_py=b"1")
    git(here, "remote", "add", "there", tmp_path / "empty")
    said = fails(here, 21, "push", "there")
    assert "there names its objects by another hash than this repository" in said
