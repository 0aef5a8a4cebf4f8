"""Ledgers of steps between clones: what was done there is not done again here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gitcp
from tests.support.clones import clone, refs, results, save
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import fails, invoke, ok

LEDGER = "refs/gitcp/fx/job"


def job(repo: Path, branch: str = "main") -> gitcp.Session:
    return gitcp.open(repo).session("job", branch)


class World:
    """What steps did outside, as a list; an interrupted one has done it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def do(self, what: str) -> dict[str, str]:
        self.done.append(what)
        return {"did": what}

    def interrupted(self, what: str) -> None:
        self.done.append(what)
        raise KeyboardInterrupt


def step(session: gitcp.Session, world: World, name: str, **more: Any) -> Any:
    return session.step(name, world.do, name, **more)


def interrupted(session: gitcp.Session, world: World, name: str, **more: Any) -> None:
    """Leaves a step as a kill would: its intent is there and no result."""
    with pytest.raises(KeyboardInterrupt):
        session.step(name, world.interrupted, name, **more)


def states(repo: Path, branch: str = "main") -> dict[str, str]:
    return {
        one["name"] + ("" if one["call"] == "1" else f" {one['call']}"): one["state"]
        for one in ok(repo, "steps", "-s", f"job/{branch}")["steps"]
    }


def steps_results(repo: Path, verb: str) -> dict[str, str]:
    return {one["session"]: one["result"] for one in ok(repo, verb)["ledgers"]}


def sound(*repos: Path) -> None:
    for repo in repos:
        assert ok(repo, "verify")["ok"]
        git(repo, "fsck", "--strict", "--no-dangling")


def test_a_pipeline_interrupted_here_continues_there(ann, hub, bob):
    world = World()
    run = job(ann)
    run.save(note="start")
    step(run, world, "load", effect="none")
    step(run, world, "mail")
    interrupted(run, world, "pay")
    interrupted(run, world, "count", effect="none")
    assert results(ann, "push") == {"job/main": ("created", "main")}
    assert world.done == ["load", "mail", "pay", "count"]

    assert results(bob, "pull") == {"job/main": ("created", "main")}
    assert git_line(bob, "rev-parse", LEDGER) == git_line(ann, "rev-parse", LEDGER)
    ok(bob, "switch", "job", "--restore", "--yes")
    assert states(bob) == {
        "load": "done",
        "mail": "done",
        "pay": "unknown",
        "count": "failed",
    }
    on = job(bob)
    assert step(on, world, "load", effect="none") == {"did": "load"}
    assert step(on, world, "mail") == {"did": "mail"}
    with pytest.raises(gitcp.StepUnknownError, match="interrupted"):
        step(on, world, "pay")
    # What was only computed is computed again, by its policy.
    assert step(on, world, "count", effect="none") == {"did": "count"}
    on.answer("pay", "done", {"did": "by hand"})
    assert step(job(bob), world, "pay") == {"did": "by hand"}
    assert world.done == ["load", "mail", "pay", "count", "count"]
    sound(ann, bob)


def test_where_both_ran_steps_a_pull_joins_and_nothing_runs_twice(ann, hub, bob):
    world = World()
    run = job(ann)
    run.save(note="start")
    step(run, world, "load")
    interrupted(run, world, "mail")
    ok(ann, "push")
    ok(bob, "pull")
    # Bob finds out about the mail; both go on.
    other = job(bob)
    other.answer("mail", "done", {"id": 7})
    step(other, world, "bob's")
    step(other, world, "both")
    step(run, world, "ann's")
    step(run, world, "both")
    assert steps_results(bob, "push") == {"job": "fast-forward"}
    run.flush()
    before = git_line(ann, "rev-parse", LEDGER)
    said = fails(ann, 3, "push", "origin", "job")
    assert "its step ledger has diverged" in said
    assert "gitcp pull origin" in said
    assert git_line(ann, "rev-parse", LEDGER) == before
    assert steps_results(ann, "pull") == {"job": "joined"}
    # Nothing of either side is lost, and a push is a fast-forward for the other.
    for tip in (before, git_line(bob, "rev-parse", LEDGER)):
        git(ann, "merge-base", "--is-ancestor", tip, LEDGER)
    assert steps_results(ann, "push") == {"job": "fast-forward"}
    assert steps_results(bob, "pull") == {"job": "fast-forward"}
    was = list(world.done)
    for repo in (ann, bob):
        found = states(repo)
        second = next(name for name in found if name.startswith("both 1~"))
        assert found == {
            "load": "done",
            "mail": "done",
            "ann's": "done",
            "bob's": "done",
            "both": "done",
            second: "done",
        }
        again = job(repo)
        for name in ("load", "mail", "ann's", "bob's", "both"):
            step(again, world, name)
        assert step(job(repo), world, "mail") == {"id": 7}
    assert world.done == was
    tips = refs(ann), refs(bob), refs(hub)
    assert steps_results(ann, "pull") == steps_results(bob, "pull") == {}
    assert (
        steps_results(ann, "push")
        == steps_results(bob, "push")
        == {"job": "up-to-date"}
    )
    assert (refs(ann), refs(bob), refs(hub)) == tips
    sound(ann, bob)


def test_two_joins_at_once_come_together(ann, hub, bob):
    """Each side joins the other's line; then one line is left."""
    world = World()
    job(ann).save()
    step(job(ann), world, "load")
    ok(ann, "push")
    ok(bob, "pull")
    step(job(ann), world, "ann's")
    step(job(bob), world, "bob's")
    ok(ann, "export", "job:last", "-o", "../ann.bundle")
    ok(bob, "export", "job:last", "-o", "../bob.bundle")
    for repo, name in ((ann, "bob"), (bob, "ann")):
        found = ok(repo, "import", f"../{name}.bundle")
        assert [one["result"] for one in found["ledgers"]] == ["joined"]
        assert (
            ok(repo, "import", f"../{name}.bundle")["ledgers"][0]["result"]
            == "up-to-date"
        )
    ok(ann, "push")
    assert steps_results(bob, "pull") == {"job": "joined"}
    ok(bob, "push")
    assert steps_results(ann, "pull") == {"job": "fast-forward"}
    assert states(ann) == states(bob)
    assert states(ann) == {"load": "done", "ann's": "done", "bob's": "done"}
    step(job(ann), world, "more")
    assert steps_results(ann, "push") == {"job": "fast-forward"}
    sound(ann, bob)


def test_a_program_at_work_sees_what_a_pull_brought(ann, bob):
    world = World()
    run, other = job(ann), job(bob)
    run.save()
    step(run, world, "load")
    ok(ann, "push")
    ok(bob, "pull")
    step(other, world, "one")
    step(run, world, "two")
    ok(bob, "push")
    ok(ann, "pull")
    ok(ann, "push")
    # Both objects were there before; bob's line is the second parent now.
    ok(bob, "pull")
    for session in (run, other):
        assert {one.name for one in session.steps()} == {"load", "one", "two"}
    step(other, world, "two")
    step(run, world, "one")
    step(run, world, "three")
    assert world.done == ["load", "one", "two", "three"]


def test_who_comes_to_a_branch_goes_back_on_nothing(ann, bob):
    """The newest checkpoint may be older than what was done since: that stays done."""
    world = World()
    run = job(ann)
    start = run.save(note="start")
    step(run, world, "count", effect="none")
    step(run, world, "mail")
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "switch", "job", "--restore", "--yes")
    assert states(bob) == {"count": "done", "mail": "done"}
    # From here on it is one's own branch, and going back is going back.
    assert "mail" in fails(bob, 23, "restore", start.id, "--yes")
    job(bob).save(note="mine")
    step(job(bob), world, "more")
    assert "more" in fails(bob, 23, "restore", "last", "--yes")


def test_a_restore_there_knows_what_was_done_at_a_checkpoint(ann, bob):
    world = World()
    run = job(ann)
    first = run.save(note="first")
    step(run, world, "load", effect="none")
    second = run.save(note="second")
    step(run, world, "mail")
    run.save(note="third")
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "switch", "job", "--restore", "--yes")
    said = fails(bob, 23, "restore", first.id, "--yes")
    assert "mail" in said
    # What happened outside stands; what was computed since is computed again.
    ok(bob, "restore", first.id, "--yes", "--replay")
    assert states(bob) == {"mail": "done"}
    ok(bob, "fork", second.id, "side", "--no-switch")
    assert states(bob, "side") == {"load": "done"}


def test_a_fork_that_a_pull_made_has_done_what_its_line_had(ann, bob):
    world = World()
    run, other = job(ann), job(bob)
    run.save()
    ok(ann, "push")
    ok(bob, "pull")
    step(other, world, "theirs", effect="none")
    other.save(note="theirs", messages=[{"role": "user", "content": "b"}])
    ok(bob, "push")
    step(run, world, "ours", effect="none")
    run.save(note="ours", messages=[{"role": "user", "content": "a"}])
    assert results(ann, "pull") == {"job/main": ("forked", "main~origin")}
    assert states(ann) == {"ours": "done", "theirs": "done"}
    assert states(ann, "main~origin") == {"theirs": "done"}
    again = job(ann, "main~origin")
    step(again, world, "theirs", effect="none")
    assert world.done == ["theirs", "ours"]
    step(again, world, "more", effect="none")
    assert states(ann, "main~origin") == {"theirs": "done", "more": "done"}


def test_a_session_of_steps_alone_goes_too(ann, bob):
    world = World()
    step(job(ann), world, "load")
    save(ann, a_py=b"2")
    assert steps_results(ann, "push") == {"job": "created"}
    assert steps_results(bob, "pull") == {"job": "created"}
    assert states(bob) == {"load": "done"}


def test_large_results_and_long_names_travel(ann, bob):
    name = "é" * 200
    text = "x" * 20_000
    run = gitcp.open(ann).session(name)
    run.save()
    assert run.step("big", lambda: text) == text
    ok(ann, "push")
    ok(bob, "pull")
    assert gitcp.open(bob).session(name).step("big", lambda: "other") == text
    assert ok(bob, "pull")["ledgers"] == []
    assert ok(bob, "push")["ledgers"][0]["session"] == name
    sound(bob)


def test_a_ledger_that_was_taken_back_there_is_not_here(ann, hub, bob):
    world = World()
    run = job(ann)
    run.save()
    step(run, world, "load")
    run.save(note="more")
    run.flush()
    first = git_line(ann, "rev-parse", f"{LEDGER}~1")
    ok(ann, "push")
    ok(bob, "pull")
    git(hub, "update-ref", LEDGER, first)
    ours = git_line(bob, "rev-parse", LEDGER)
    said = invoke(bob, "pull")
    assert said.returncode == 0
    assert b"it was rewound there" in said.stderr
    assert git_line(bob, "rev-parse", LEDGER) == ours
    assert states(bob) == {"load": "done"}
    assert b"rewound" not in invoke(bob, "pull").stderr
    # A new clone is told that something is missing.
    carl = clone(hub, "carl")
    said = invoke(carl, "pull")
    assert b"has only part of the step ledger of job" in said.stderr
    assert steps_results(bob, "push") == {"job": "fast-forward"}
    assert steps_results(carl, "pull") == {"job": "fast-forward"}
    assert states(carl) == {"load": "done"}


def test_where_the_server_refuses_the_ledger_the_branch_stays_too(ann, hub, bob):
    world = World()
    hook = hub / "hooks" / "update"
    hook.write_text(
        "#!/bin/sh\ncase $1 in refs/gitcp/fx/*) echo no >&2; exit 1;; esac\n"
    )
    hook.chmod(0o755)
    run = job(ann)
    run.save()
    step(run, world, "load")
    save(ann, "-s", "main", a_py=b"3")
    done = invoke(ann, "push")
    assert done.returncode == 3, done.stderr
    assert b"rejected     job/main" in done.stdout
    names = git(hub, "for-each-ref", "--format=%(refname)", "refs/gitcp").split()
    assert names == [b"refs/gitcp/s/main/main"]
    hook.unlink()
    ok(ann, "push")
    assert results(bob, "pull").keys() == {"job/main", "main/main"}


def test_no_branch_goes_whose_steps_would_not_be_known_there(ann, hub, bob):
    world = World()
    job(ann).save()
    step(job(ann), world, "load")
    ok(ann, "push")
    ok(bob, "pull")
    step(job(bob), world, "bob's")
    ok(bob, "push")
    step(job(ann), world, "ann's")
    ok(ann, "fork", "job:last", "side", "--no-switch")
    there = refs(hub)
    done = invoke(ann, "push")
    assert done.returncode in {3, 12}, done.stderr
    assert b"rejected     job/side" in done.stdout
    assert b"its step ledger was not sent" in done.stdout
    assert refs(hub) == there
    ok(ann, "pull")
    assert results(ann, "push")["job/side"] == ("created", "side")


def test_pruning_leaves_the_ledger_and_what_checkpoints_say_of_it(ann, bob):
    world = World()
    run = job(ann)
    for number in range(4):
        step(run, world, f"s{number}", effect="none")
        run.save(note=f"{number}")
    run.flush()
    tip = git_line(ann, "rev-parse", LEDGER)
    assert ok(ann, "prune", "--keep-last", "2", "-y")["removed"]
    assert git_line(ann, "rev-parse", LEDGER) == tip
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "switch", "job", "--restore", "--yes")
    assert set(states(bob)) == {"s0", "s1", "s2", "s3"}
    ok(bob, "restore", "job:3", "--yes")
    assert set(states(bob)) == {"s0", "s1", "s2"}
    sound(ann, bob)


def seen_there(repo: Path) -> tuple[list[str], str | None, str | None]:
    """How a remote's session `job` stands: its branches; its ledger, and its tip."""
    (found,) = ok(repo, "remote-sessions")["sessions"]
    assert found["name"] == "job"
    its = found["steps"] or {"here": None, "commit": None}
    return [one["here"] for one in found["branches"]], its["here"], its["commit"]


def test_remote_sessions_tell_how_the_ledger_stands(ann, hub, bob):
    world = World()
    run = job(ann)
    run.save()
    ok(ann, "push")
    assert seen_there(bob) == (["new"], None, None)
    step(run, world, "load")
    assert seen_there(ann) == (["same"], "not-there", None)
    ok(ann, "push")
    first = git_line(hub, "rev-parse", LEDGER)
    assert seen_there(ann) == (["same"], "same", first)
    assert seen_there(bob) == (["new"], "new", first)
    ok(bob, "pull")
    step(run, world, "more")
    # Nothing has been put into git's refs for it yet.
    assert seen_there(ann) == (["same"], "ahead", first)
    ok(ann, "push")
    second = git_line(hub, "rev-parse", LEDGER)
    assert seen_there(bob) == (["same"], "behind", second)
    step(job(bob), world, "bob's")
    assert seen_there(bob) == (["same"], "different", second)
    assert b"  different    job (steps)\n" in invoke(bob, "remote-sessions").stdout
    # Nothing was fetched to find out.
    assert second not in git_line(
        bob, "cat-file", "--batch-all-objects", "--batch-check"
    )
    git(bob, "fetch", "-q", "origin", LEDGER)
    assert seen_there(bob) == (["same"], "forked", second)
    ok(bob, "pull")
    assert seen_there(bob) == (["same"], "ahead", second)
    ok(bob, "push")
    assert seen_there(bob)[1] == "same"
    git(hub, "update-ref", LEDGER, first)
    assert seen_there(bob) == (["same"], "taken-back", first)
    # A push that broke off leaves a ledger without its branches.
    git(hub, "update-ref", "-d", "refs/gitcp/s/job/main")
    assert seen_there(clone(hub, "carl")) == ([], "new", first)


def test_remote_sessions_tell_that_a_ledger_was_purged_here_only(ann):
    git(ann, "config", "gitcp.secrets", "off")
    value = "k3J9dLq0" + "Xz7Yv3Wn5Bt1"
    job(ann).save()
    job(ann).step("one", lambda: value)
    ok(ann, "push")
    ok(ann, "purge", "--value-from-stdin", "--yes", input=value.encode())
    assert seen_there(ann)[1] == "pruned"
