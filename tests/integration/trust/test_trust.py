"""Trust is given once, to a remote's address, in the user's own configuration."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.clones import clone, make_hub
from tests.support.gitrepo import Entry, git, write_files
from tests.support.inprocess import fails, invoke, ok, partly

SAID = {
    "type": "user",
    "uuid": "u",
    "sessionId": "s",
    "message": {"role": "user", "content": "hello"},
}


@pytest.fixture
def own(sealed, monkeypatch) -> Path:
    """The user's own configuration of git."""
    path: Path = sealed / ".gitconfig"
    path.write_text("")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    return path


def pushed(repo: Path, files: Mapping[str, Entry] | None = None) -> None:
    path = repo.parent / "s.jsonl"
    path.write_text(json.dumps(SAID) + "\n")
    write_files(repo, files or {".envrc": b"theirs", "run": b"x"})
    ok(repo, "save", "-s", "s", "--transcript", str(path))
    ok(repo, "push", "origin", "s")


def test_a_trusted_remote_needs_no_option(ann, bob, own):
    pushed(ann)
    ok(bob, "pull")
    assert partly(bob, "restore", "s/main:1", "--yes")["resume"] is None
    assert ok(bob, "trust")["trusted"] == []
    given = ok(bob, "trust", "origin")
    assert given["changed"] is True
    assert given["trusted"] == [str((bob.parent / "hub.git").resolve())]
    assert "gitcp" not in (bob / ".git" / "config").read_text()
    done = ok(bob, "restore", "s/main:1", "--yes")
    assert done["left"] == []
    assert "claude --resume" in done["resume"]
    # What goes on from it is trusted, too.
    assert ok(bob, "show", "s:last")["withheld"]["conversation"] is None
    write_files(bob, {"a.py": b"9"})
    ok(bob, "save")
    assert "claude --resume" in ok(bob, "restore", "s:last", "--yes")["resume"]
    assert "claude --resume" in ok(bob, "fork", "s/main:1", "f", "--yes")["resume"]
    assert ok(bob, "trust", "origin")["changed"] is False
    ok(bob, "trust", "origin", "--remove")
    # The files are there by now; the conversation would be handed over once more.
    assert ok(bob, "restore", "s/main:1", "--yes")["resume"] is None
    fails(bob, 2, "trust", "origin", "--remove")
    fails(bob, 2, "trust", "nowhere")
    assert b"no remote is trusted" in invoke(bob, "trust").stderr


def test_a_purge_of_what_was_pulled_leaves_the_rest_restorable(ann, bob, own):
    """The purged checkpoint is the one that the first pull noted."""
    pushed(ann, {".envrc": b"theirs", "run": b"wombat-7351"})
    ok(bob, "pull")
    ok(bob, "trust", "origin")
    write_files(ann, {"run": b"y"})
    ok(ann, "save", "-s", "other")
    ok(ann, "push", "origin", "other")
    ok(bob, "pull")
    ok(bob, "purge", "--value-from-stdin", "-y", input=b"wombat-7351")
    ok(bob, "gc")
    assert ok(bob, "restore", "other:last", "--yes")["left"] == []
    assert (bob / "run").read_bytes() == b"y"
    ok(bob, "fork", "other:last", "f", "--no-switch")
    # Rewritten by the purge: nothing shows any more where it came from.
    assert ok(bob, "restore", "s:last", "--yes")["resume"] is None


def test_a_repository_cannot_give_trust_to_itself(ann, bob, own):
    pushed(ann)
    ok(bob, "pull")
    git(bob, "config", "gitcp.trust", str((bob.parent / "hub.git").resolve()))
    assert ok(bob, "trust")["trusted"] == []
    assert partly(bob, "restore", "s:1", "--yes")["resume"] is None


def test_what_came_from_another_remote_is_not_trusted_with_it(ann, bob, hub, own):
    """Not by the name of its branch, nor because Bob has pushed it to the trusted one."""
    pushed(ann)
    ok(bob, "pull")
    other = bob.parent / "zz.git"
    shutil.copytree(hub, other)
    mallory = clone(other, "mallory")
    ok(mallory, "pull")
    ok(mallory, "switch", "s", "--restore", "--yes", "--trust")
    pushed(mallory, {".envrc": b"mallory's"})
    git(bob, "remote", "add", "zz", str(other))
    ok(bob, "trust", "origin")
    assert ok(bob, "restore", "s:1", "--yes")["left"] == []
    ok(bob, "pull", "zz")
    ok(bob, "push", "origin")
    tip = ok(bob, "log", "--all", "-n", "30")["checkpoints"]
    theirs = [one for one in tip if one["foreign"]]
    evil = [
        one["id"]
        for one in theirs
        if invoke(bob, "cat", one["id"], ".envrc").stdout == b"mallory's"
    ]
    assert evil
    for ident in evil:
        done = partly(bob, "restore", ident, "--yes")
        assert done["resume"] is None
        assert (bob / ".envrc").read_bytes() == b"theirs"
        # What Bob's own restore made of it is not a way around either.
        assert ok(bob, "rollback", "--yes")["resume"] is None


def test_what_a_plain_fetch_brought_is_trusted_by_nothing(ann, bob, own):
    pushed(ann)
    git(bob, "fetch", "-q", "origin", "refs/gitcp/s/*:refs/gitcp/s/*")
    ok(bob, "trust", "origin")
    assert partly(bob, "restore", "s:1", "--yes")["resume"] is None


def test_addresses_have_one_spelling_and_no_secrets(tmp_path, own):
    repo = clone(make_hub(tmp_path), "x")
    for url, kept in (
        ("https://ann:secret@example.org/p/q.git/", "https://example.org/p/q.git"),
        ("ssh://git@example.org/p", "ssh://git@example.org/p"),
        ("git@example.org:p/q", "git@example.org:p/q"),
        ("../hub.git", str((tmp_path / "hub.git").resolve())),
    ):
        git(repo, "remote", "set-url", "origin", url)
        assert ok(repo, "trust", "origin")["trusted"][-1] == kept
    assert "secret" not in own.read_text()
