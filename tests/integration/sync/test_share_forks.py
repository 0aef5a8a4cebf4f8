"""After a divergence one command continues, and what is only here is pushed as a fork."""

from __future__ import annotations

from gitcp.project.workspace import Current, open_workspace
from tests.support.agent import Agent
from tests.support.clones import refs, results, save
from tests.support.gitrepo import git
from tests.support.inprocess import invoke, ok


def diverge(ann, bob):
    """Both have the first checkpoint of `main`, and each one of their own on it."""
    save(ann, a_py=b"two")
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "switch", "main")
    theirs = save(bob, a_py=b"bob's")
    ok(bob, "push")
    mine = save(ann, a_py=b"ann's")
    return mine, theirs


def command_of(stderr: bytes) -> list[str]:
    """The command that a pull names, which must be its last line and the only one."""
    *before, last = stderr.decode().rstrip().splitlines()
    assert "`" not in "\n".join(before)
    words = last.split()
    assert words[0] == "gitcp"
    return words[1:]


def test_a_pull_names_the_one_command_that_continues(ann, hub, bob):
    mine, theirs = diverge(ann, bob)
    git(ann, "config", "user.name", "Ann Lee")
    pulled = invoke(ann, "pull")
    assert pulled.returncode == 0
    assert b"main/main as main~origin" in pulled.stdout
    done = invoke(ann, *command_of(pulled.stderr))
    assert done.returncode == 0, done.stderr
    assert (ann / "a.py").read_bytes() == b"ann's"
    assert results(bob, "pull")["main/main~ann"] == ("created", "main~ann")
    for repo in (ann, bob):
        ids = {one["id"] for one in ok(repo, "log", "--all", "-n", "99")["checkpoints"]}
        assert {mine["id"], theirs["id"]} <= ids
        assert ok(repo, "verify")["ok"]
    # What comes next goes the same way, without a word.
    save(ann, a_py=b"more")
    assert results(ann, "push")["main/main~ann"] == ("fast-forward", "main~ann")
    assert results(bob, "pull")["main/main~ann"] == ("fast-forward", "main~ann")
    before = refs(hub)
    assert results(ann, "push", "--fork")["main/main"] == ("forked", "main~ann")
    assert refs(hub) == before


def test_a_refused_push_names_the_same_command_and_it_needs_no_pull(ann, hub, bob):
    diverge(ann, bob)
    git(ann, "config", "user.name", "Ann Lee")
    refused = invoke(ann, "push")
    assert refused.returncode == 12
    assert b"`gitcp push --fork origin`" in refused.stderr
    assert results(ann, "push", "--fork", "origin") == {
        "main/main": ("forked", "main~ann"),
        "main/main~ann": ("created", "main~ann"),
    }
    assert open_workspace(ann).current() == Current("main", "main~ann")
    assert invoke(ann, "pull").returncode == 0


def test_a_branch_that_the_remote_only_grew_is_not_forked(ann, hub, bob):
    save(ann, a_py=b"two")
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "switch", "main")
    save(bob, a_py=b"bob's")
    ok(bob, "push")
    before = refs(hub), refs(ann)
    assert results(ann, "push", "--fork") == {"main/main": ("up-to-date", "main")}
    assert (refs(hub), refs(ann)) == before


def test_a_fork_gets_a_name_that_the_remote_does_not_have(ann, hub, bob):
    diverge(ann, bob)
    for repo in (ann, bob):
        git(repo, "config", "user.name", "Kim")
    ok(bob, "fork", "main~kim")
    save(bob, a_py=b"bob's way")
    ok(bob, "push")
    assert results(ann, "push", "--fork")["main/main"] == ("forked", "main~kim-2")
    ok(bob, "pull")
    # The fork of a fork is not named twice.
    ok(bob, "switch", "main/main~kim-2")
    save(bob, a_py=b"bob's, too")
    ok(bob, "push")
    save(ann, a_py=b"ann's, too")
    assert results(ann, "push", "--fork")["main/main~kim-2"][1] == "main~kim-3"


def test_a_client_goes_on_where_its_branch_went(ann, hub, bob, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    git(ann, "config", "user.name", "Ann")
    agent = Agent(ann, tmp_path / "claude")
    agent.turn("one", new="1")
    session = agent.line()[-1].session
    ok(ann, "push")
    ok(bob, "pull")
    save(bob, "-s", session, a_py=b"bob's")
    ok(bob, "push")
    agent.turn("two", new="2")
    assert results(ann, "push", "--fork")[f"{session}/main"] == ("forked", "main~ann")
    before = agent.line()
    agent.turn("three", new="3")
    assert agent.line() == before
    tip = open_workspace(ann).store.tip(session, "main~ann")
    assert tip is not None
    assert tip.note == "three"
    pushed = results(ann, "push", "--fork")
    assert pushed[f"{session}/main~ann"] == ("fast-forward", "main~ann")


def test_a_named_branch_is_forked_alone(ann, hub, bob):
    diverge(ann, bob)
    save(ann, "-s", "other", a_py=b"other")
    git(ann, "config", "user.name", "  ")
    assert results(ann, "push", "--fork", "origin", "main/main") == {
        "main/main": ("forked", "main~mine"),
        "main/main~mine": ("created", "main~mine"),
    }
    assert b"other" not in refs(hub)
    assert open_workspace(ann).current() == Current("other", "main")
