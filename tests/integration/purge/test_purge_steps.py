"""A secret is taken out of ledgers of steps; what was done is not done again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp.purge import tracking_refs
from tests.support.gitrepo import git, git_line, run_gitcp
from tests.support.inprocess import fails, invoke, ok

SECRET = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"


def test_a_secret_goes_from_what_steps_did_and_nothing_runs_again(ann, bob, hub):
    def run(repo: Path) -> list[Any]:
        session = gitcp.open(repo).session("job")
        large = {"key": SECRET, "more": "x" * 9_000}
        return [
            session.step("small", lambda: {"key": SECRET}),
            session.step("large", lambda: large),
            session.step("last", lambda: 1),
        ]

    gitcp.open(ann).session("job").save()
    run(ann)
    command = ("run", "-s", "job", "--step", "call", "--undo", f"true {SECRET}", "--")
    assert run_gitcp(ann, *command, "echo", SECRET).returncode == 0
    with pytest.raises(ValueError, match="no"):
        gitcp.open(ann).session("job").step("fails", _raise, f"no {SECRET}")
    gitcp.open(ann).session("job").save(note="after")
    said = fails(ann, 24, "push")
    assert "its step ledger" in said
    assert SECRET not in said
    ledger = "refs/gitcp/fx/job"
    before = git_line(ann, "rev-parse", ledger)
    checkpoints = [one["id"] for one in ok(ann, "log", "-s", "job")["checkpoints"]]
    planned = ok(ann, "purge", "--value-from-stdin", "--dry-run", input=SECRET.encode())
    assert planned["ledgers"] == ["job"]
    assert git_line(ann, "rev-parse", ledger) == before
    done = ok(ann, "purge", "--value-from-stdin", "--yes", input=SECRET.encode())
    assert done["ledgers"] == ["job"]
    assert done["left"] == []
    everything = git(ann, "cat-file", "--batch-all-objects", "--batch", "--unordered")
    assert SECRET.encode() not in everything
    assert ok(ann, "verify")["ok"]
    assert [
        one["id"] for one in ok(ann, "log", "-s", "job")["checkpoints"]
    ] == checkpoints
    steps = ok(ann, "steps", "-s", "job")["steps"]
    assert [(one["name"], one["state"], one["foreign"]) for one in steps] == [
        ("small", "done", False),
        ("large", "done", False),
        ("last", "done", False),
        ("call", "done", False),
        ("fails", "failed", False),
    ]
    again = run(ann)
    assert again[0]["key"].startswith("[purged:")
    assert again[1]["key"].startswith("[purged:")
    assert again[2] == 1
    # What a checkpoint says of the ledger is found in the one that stands for it.
    ok(ann, "restore", "job:1", "--yes", "--replay")
    ok(ann, "push")
    ok(bob, "pull")
    assert run(bob) == again


def test_a_purged_ledger_replaces_the_old_one_there_when_asked_to(ann, hub, bob):
    git(ann, "config", "gitcp.secrets", "off")
    session = gitcp.open(ann).session("job")
    session.save()
    session.step("one", lambda: {"key": SECRET})
    ok(ann, "push")
    ok(bob, "pull")
    gitcp.open(bob).session("job").step("bob's", lambda: 2)
    done = ok(ann, "purge", "--value-from-stdin", "--yes", input=SECRET.encode())
    assert done["remotes"] == ["origin"]
    # Nothing of it comes back, and it does not go without asking.
    assert ok(ann, "pull")["ledgers"] == []
    assert "--pruned" in fails(ann, 3, "push")
    assert ok(ann, "push", "--pruned")["ledgers"][0]["result"] == "pruned"
    # Who has it still takes it out, too; then the two are one again.
    said = fails(bob, 3, "pull")
    assert "purged from it there" in said
    ok(bob, "purge", "--value-from-stdin", "--yes", input=SECRET.encode())
    ok(bob, "pull")
    ok(bob, "push")
    ok(ann, "pull")
    for repo in (ann, bob):
        names = {
            one["name"]: one["state"] for one in ok(repo, "steps", "-s", "job")["steps"]
        }
        assert names == {"one": "done", "bob's": "done"}
        assert ok(repo, "verify")["ok"]


def test_a_large_result_without_the_secret_is_kept_as_it_is(ann):
    """A result of that size is a file of its own, which the new commit has to name."""
    large = {"more": "x" * 9_000}
    session = gitcp.open(ann).session("job")
    session.save()
    session.step("small", lambda: {"key": SECRET})
    session.step("large", lambda: large)
    done = ok(ann, "purge", "--value-from-stdin", "--yes", input=SECRET.encode())
    assert done["ledgers"] == ["job"]
    assert ok(ann, "verify")["ok"]
    session = gitcp.open(ann).session("job")
    small: Any = session.step("small", lambda: None)
    assert small["key"].startswith("[purged:")
    assert session.step("large", lambda: None) == large


def test_a_record_around_a_large_result_that_stays_is_sealed_again(ann):
    class Plain:
        name = SECRET

        def dump(self, value: Any) -> Any:
            return value

        def load(self, value: Any) -> Any:
            return value

    session = gitcp.open(ann).session("job")
    session.save()
    session.step("large", lambda: "x" * 9_000, codec=Plain())
    ok(ann, "purge", "--value-from-stdin", "--yes", input=SECRET.encode())
    (step,) = ok(ann, "steps", "-s", "job")["steps"]
    assert (step["name"], step["foreign"]) == ("large", False)


@pytest.mark.parametrize("how", ["value", "fingerprint"])
def test_an_interrupted_purge_is_finished_by_the_same_command(ann, how, monkeypatch):
    """The branches moved; what was seen on the remote still held all of it."""
    session = gitcp.open(ann).session("job")
    session.save(messages=[{"role": "user", "content": SECRET}])
    session.step("one", lambda: {"key": SECRET})
    (secret,) = json.loads(invoke(ann, "scan", "--json").stdout)["secrets"]
    words = ["--value-from-stdin"] if how == "value" else [secret["fingerprint"]]
    git(ann, "config", "gitcp.secrets", "off")
    ok(ann, "push")

    def power_cut(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(tracking_refs, "reaching", power_cut)
        done = invoke(ann, "purge", *words, "--yes", input=SECRET.encode())
        assert done.returncode == 130
    assert ok(ann, "purge", *words, "--dry-run", input=SECRET.encode())["remotes"]
    said = invoke(ann, "purge", *words, "--yes", input=SECRET.encode())
    assert said.returncode == 0, said.stderr
    assert b"origin still has it" in said.stderr
    everything = git(ann, "cat-file", "--batch-all-objects", "--batch", "--unordered")
    assert SECRET.encode() not in everything
    assert "no checkpoint holds" in fails(
        ann, 13, "purge", *words, "--yes", input=SECRET.encode()
    )
    ok(ann, "push", "--pruned")
    assert ok(ann, "verify")["ok"]


def _raise(text: str) -> None:
    raise ValueError(text)
