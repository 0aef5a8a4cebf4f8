"""`gitcp push`, `pull`, `remote-sessions`: two clones and a bare repository."""

from __future__ import annotations

import pytest

import gitcp
from gitcp.format import layout
from gitcp.git import remote
from tests.support.clones import MESSAGES, refs, results, save
from tests.support.gitrepo import (
    commit_all,
    git,
    git_line,
    tree_bytes,
    write_files,
)
from tests.support.inprocess import fails, invoke, ok


def test_a_session_goes_to_a_fresh_clone_whole(ann, hub, bob):
    first = save(ann, "-s", "vat", "-m", "works", a_py=b"two\r\n")
    save(ann, "-s", "vat", b_bin=b"\xff")
    assert results(ann, "push") == {"vat/main": ("created", "main")}
    assert ok(bob, "remote-sessions")["sessions"] == [
        {
            "name": "vat",
            "branches": [
                {
                    "name": "main",
                    "commit": git_line(ann, "rev-parse", "refs/gitcp/s/vat/main"),
                    "here": "new",
                }
            ],
            "steps": None,
        }
    ]
    assert results(bob, "pull") == {"vat/main": ("created", "main")}
    found = ok(bob, "log", "-s", "vat")["checkpoints"]
    assert [one["seq"] for one in found] == [2, 1]
    assert found[1]["id"] == first["id"]
    assert ok(bob, "show", "vat:1")["checkpoint"]["note"] == "works"
    assert invoke(bob, "messages", "vat:1", "--format", "jsonl").stdout == MESSAGES
    ok(bob, "switch", "vat", "--restore", "--yes")
    assert tree_bytes(bob) == tree_bytes(ann)
    for repo in (ann, bob):
        assert ok(repo, "verify")["ok"]
    git(hub, "gc", "-q", "--prune=now")
    git(bob, "gc", "-q", "--prune=now")
    git(bob, "fsck", "--strict")
    assert ok(bob, "verify")["ok"]


def test_a_second_push_and_a_second_pull_change_nothing(ann, hub, bob):
    save(ann, a_py=b"two")
    ok(ann, "push")
    ok(bob, "pull")
    before = refs(ann), refs(hub), refs(bob)
    packs = [sorted((one / "objects").rglob("*")) for one in (hub, bob / ".git")]
    assert results(ann, "push") == {"main/main": ("up-to-date", "main")}
    assert results(bob, "pull") == {"main/main": ("up-to-date", "main")}
    assert results(bob, "push") == {"main/main": ("up-to-date", "main")}
    assert (refs(ann), refs(hub), refs(bob)) == before
    assert packs == [
        sorted((one / "objects").rglob("*")) for one in (hub, bob / ".git")
    ]


def test_what_grew_on_one_side_is_fast_forwarded(ann, bob):
    save(ann, a_py=b"two")
    ok(ann, "push")
    ok(bob, "pull")
    save(bob, a_py=b"three")
    assert results(bob, "push") == {"main/main": ("fast-forward", "main")}
    said = invoke(ann, "pull")
    assert said.returncode == 0
    assert b"fast-forward" in said.stdout
    # The files here are not theirs yet, and a user has to know.
    assert b"gitcp restore last" in said.stderr
    assert (ann / "a.py").read_bytes() == b"two"
    assert refs(ann).replace(b" ", b"").count(b"gitcp/s/main/main") == 1


def test_where_both_grew_push_is_rejected_and_pull_keeps_both(ann, hub, bob):
    save(ann, a_py=b"two")
    ok(ann, "push")
    ok(bob, "pull")
    save(bob, a_py=b"bob's")
    ok(bob, "push")
    mine = save(ann, a_py=b"ann's")
    there = refs(hub)
    said = fails(ann, 12, "push")
    assert "gitcp push --fork origin" in said
    assert refs(hub) == there
    pulled = invoke(ann, "pull")
    assert pulled.returncode == 0
    assert b"main/main as main~origin" in pulled.stdout
    assert b"gitcp push --fork" in pulled.stderr
    assert invoke(ann, "cat", "main/main~origin:last", "a.py").stdout == b"bob's"
    assert ok(ann, "log", "-n", "1")["checkpoints"][0]["id"] == mine["id"]
    assert (ann / "a.py").read_bytes() == b"ann's"
    before = refs(ann)
    assert results(ann, "pull") == {"main/main": ("up-to-date", "main~origin")}
    assert refs(ann) == before
    # By hand, under a name of one's own.
    ok(ann, "fork", "anns", "--no-switch")
    assert results(ann, "push") == {
        "main/anns": ("created", "anns"),
        "main/main": ("forked", "anns"),
        "main/main~origin": ("up-to-date", "main"),
    }
    assert results(bob, "pull")["main/anns"] == ("created", "anns")
    assert invoke(bob, "cat", "main/anns:last", "a.py").stdout == b"ann's"
    for repo in (ann, bob):
        assert ok(repo, "verify")["ok"]


def test_one_session_or_branch_can_be_named(ann, hub, bob):
    save(ann, "-s", "one", a_py=b"1")
    save(ann, "-s", "two", a_py=b"2")
    ok(ann, "fork", "two:last", "side", "--no-switch")
    assert results(ann, "push", "origin", "two/side") == {
        "two/side": ("created", "side")
    }
    assert results(ann, "push", "origin", "two", "one") == {
        "one/main": ("created", "main"),
        "two/main": ("created", "main"),
        "two/side": ("up-to-date", "side"),
    }
    assert results(bob, "pull", "origin", "one") == {"one/main": ("created", "main")}
    fails(bob, 13, "pull", "origin", "three")
    fails(ann, 13, "push", "origin", "three")
    assert "name the remote first" in fails(ann, 2, "push", "one")


@pytest.mark.parametrize("named", [50, 0])
def test_a_remote_is_asked_for_the_sessions_that_are_pushed(
    ann, hub, monkeypatch, named
):
    for number, name in enumerate(("vat", "vat2", "other")):
        save(ann, "-s", name, a_py=b"%d" % number)
        gitcp.open(ann).session(name).step("pay", lambda: 1)
    ok(ann, "push")
    save(ann, "-s", "vat", a_py=b"new")
    asked = []
    advertised = remote.advertised

    def look(*given, **limits):
        found = advertised(*given, **limits)
        asked.append(sorted(found.refs))
        return found

    monkeypatch.setattr(remote, "advertised", look)
    monkeypatch.setattr(layout, "_NAMED", named)
    assert results(ann, "push", "origin", "vat") == {
        "vat/main": ("fast-forward", "main")
    }
    (heard,) = asked
    # Of ten thousand each takes time; very many names are too long a command.
    assert ("refs/gitcp/s/other/main" in heard) == (named == 0)
    assert {"refs/gitcp/fx/vat", "refs/gitcp/s/vat/main"} <= set(heard)
    tips = [git_line(one, "rev-parse", "refs/gitcp/s/vat/main") for one in (ann, hub)]
    assert tips[0] == tips[1]


def test_a_dry_run_sends_nothing(ann, hub):
    save(ann, a_py=b"2")
    before = refs(hub), refs(ann)
    assert results(ann, "push", "--dry-run") == {"main/main": ("created", "main")}
    assert (refs(hub), refs(ann)) == before


def test_nothing_but_checkpoints_leaves(ann, hub):
    """The user's own branch, unpushed, stays where it is."""
    write_files(ann, {"private": b"private"})
    commit_all(ann, "not pushed")
    git(ann, "config", "remote.origin.mirror", "true")
    git(ann, "config", "push.followTags", "true")
    git(ann, "tag", "-a", "-m", "t", "v1")
    save(ann, a_py=b"2")
    ok(ann, "push")
    names = [line.split()[-1] for line in refs(hub).splitlines()]
    assert names == [b"refs/gitcp/s/main/main", b"refs/heads/main"]


def test_the_users_repository_is_as_it_was_after_a_pull(ann, bob):
    save(ann, a_py=b"2")
    ok(ann, "push")
    git(bob, "config", "remote.origin.prune", "true")
    git(bob, "config", "fetch.prune", "true")
    git(bob, "config", "fetch.writeCommitGraph", "true")
    mine = [one for one in refs(bob).splitlines() if b"gitcp" not in one]
    there = {path.name for path in (bob / ".git").iterdir()}
    tree = tree_bytes(bob)
    ok(bob, "pull")
    assert [one for one in refs(bob).splitlines() if b"gitcp" not in one] == mine
    assert {path.name for path in (bob / ".git").iterdir()} - there == {
        "gitcp",
        "gitcp-numbers",
    }
    assert tree_bytes(bob) == tree
    assert list((bob / ".git" / "gitcp").glob("tmp/*")) == []


def test_a_remote_taken_back_is_a_fork_and_a_warning(ann, hub, bob):
    first = save(ann, a_py=b"1")
    save(ann, a_py=b"2")
    ok(ann, "push")
    ok(bob, "pull")
    git(hub, "update-ref", "refs/gitcp/s/main/main", first["commit"])
    ours = git_line(bob, "rev-parse", "refs/gitcp/s/main/main")
    said = invoke(bob, "pull")
    assert said.returncode == 0
    assert b"rewound on origin" in said.stderr
    assert b"main~origin" in said.stdout
    assert git_line(bob, "rev-parse", "refs/gitcp/s/main/main") == ours
    before = refs(bob)
    assert b"taken back" not in invoke(bob, "pull").stderr
    assert refs(bob) == before


def test_an_unreachable_remote_is_one_clear_error(ann, hub):
    save(ann, a_py=b"1")
    hub.rename(hub.with_name("gone"))
    before = refs(ann)
    for verb in ("push", "pull", "remote-sessions"):
        said = fails(ann, 21, verb)
        assert "origin cannot be reached" in said
        assert "git ls-remote origin" in said
    assert refs(ann) == before


def test_what_was_saved_after_a_pulled_checkpoint_is_in_the_plan(ann, hub, bob):
    save(ann, "-s", "vat", a_py=b"theirs")
    ok(ann, "push")
    mine = save(bob, a_py=b"made here since")
    ok(bob, "pull")
    # Its number is the higher one, although it was made before.
    assert ok(bob, "show", "vat:1")["checkpoint"]["number"] > mine["number"]
    said = invoke(bob, "restore", "vat:1", "--dry-run").stdout.decode()
    assert f"#{mine['number']} was made here later, in another session." in said


@pytest.mark.parametrize("sessions", [1, 9], ids=["few", "many"])
def test_a_push_notices_what_the_remote_lost_of_few_sessions_and_of_many(
    ann, hub, sessions
):
    names = [f"s{number}" for number in range(sessions)]
    for name in names:
        save(ann, "-s", name)
    ok(ann, "push", "origin")
    lost = f"refs/gitcp/s/{names[0]}/main"
    git(hub, "update-ref", "-d", lost)
    pushed = {one["session"]: one for one in ok(ann, "push", "origin")["branches"]}
    assert "removed" in pushed[names[0]]["reason"]
    assert all("removed" not in (pushed[name]["reason"] or "") for name in names[1:])
