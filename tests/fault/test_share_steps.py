"""Killed in the middle: a pipeline that goes on elsewhere, a pull of its ledger."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gitcp
from tests.fault.harness import (
    Point,
    calls,
    fresh,
    fsck,
    in_parallel,
    inject,
    needs_strace,
    nothing_left,
    spread,
    tip,
    users_state,
)
from tests.support.clones import clone, make_hub
from tests.support.crypt import Key, encrypt_to, reads_with
from tests.support.gitrepo import git, gitcp_environment, run_gitcp
from tests.support.inprocess import ok

LEDGER, BRANCH = "refs/gitcp/fx/job", "refs/gitcp/s/job/main"

# Five steps that write to a file outside the project; the third one kills the process.
PIPELINE = """
import os, signal, sys
import gitcp

world, killed_at = sys.argv[1:]
session = gitcp.open(".").session("job")

def effect(name):
    with open(world, "a") as file:
        file.write(name + "\\n")
    if name == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return name.upper()

kinds = {"a": "none", "b": "irreversible", "c": "irreversible", "d": "none", "e": "none"}
for name, kind in kinds.items():
    assert session.step(name, effect, name, effect=kind) == name.upper()
print("done")
"""


def pipeline(
    repo: Path, world: Path, killed_at: str = ""
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-P", "-c", PIPELINE, world, killed_at],
        cwd=repo,
        env=gitcp_environment(),
        capture_output=True,
        check=False,
        timeout=200,
    )


def test_a_pipeline_killed_here_goes_on_on_another_machine(tmp_path):
    hub = make_hub(tmp_path)
    ann, world = clone(hub, "ann"), tmp_path / "world"
    assert run_gitcp(ann, "save", "-s", "job", "-m", "start").returncode == 0
    assert pipeline(ann, world, "c").returncode == -9
    assert world.read_text().split() == ["a", "b", "c"]
    assert run_gitcp(ann, "push").returncode == 0
    bob = clone(hub, "bob")
    assert run_gitcp(bob, "pull").returncode == 0
    assert run_gitcp(bob, "switch", "job", "--restore", "--yes").returncode == 0
    # What is done is not done again; an interrupted step is unknown, and asked about.
    stopped = pipeline(bob, world)
    assert b"StepUnknownError" in stopped.stderr
    assert world.read_text().split() == ["a", "b", "c"]
    said = {one["name"]: one["state"] for one in ok(bob, "steps")["steps"]}
    assert said == {"a": "done", "b": "done", "c": "unknown"}
    answer = ("steps", "answer", "c", "done", "--result", '"C"')
    assert run_gitcp(bob, *answer).returncode == 0
    assert pipeline(bob, world).stdout == b"done\n"
    assert world.read_text().split() == ["a", "b", "c", "d", "e"]
    # And back where it was killed there is nothing left to do.
    assert run_gitcp(bob, "push").returncode == 0
    assert run_gitcp(ann, "pull").returncode == 0
    assert pipeline(ann, world).stdout == b"done\n"
    assert world.read_text().split() == ["a", "b", "c", "d", "e"]


def scene(base: Path, *, encrypted: bool = False) -> Path:
    """A clone that has a session, and a remote where branch and ledger went on.

    Steps were run in the clone, too, so that a pull has to join.
    """
    hub = make_hub(base)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    if encrypted:
        key = Key(base, "key")
        for repo in (ann, bob):
            encrypt_to(repo, key)
            reads_with(repo, key)
    run = gitcp.open(ann).session("job")
    run.save()
    run.step("first", str.upper, "x")
    ok(ann, "push")
    ok(bob, "pull")
    run.step("ann's", str.upper, "x")
    (ann / "a.py").write_text("two\n")
    run.save(note="more")
    ok(ann, "push")
    other = gitcp.open(bob).session("job")
    other.step("bob's", str.upper, "x")
    other.flush()
    return bob


def tells_all(repo: Path) -> bool:
    """Whether what the branch's checkpoint says was done is in the ledger."""
    raw = git(repo, "cat-file", "blob", f"{BRANCH}:.gitcp/checkpoint.json")
    said = json.loads(raw).get("ledger")
    if said is None:
        return True
    found = git(repo, "rev-list", LEDGER, check=False).decode().split()
    return said in found


def sweep(base: Path, count: int | None, *, encrypted: bool = False) -> None:
    repo = scene(base, encrypted=encrypted)
    user = users_state(repo)
    before = tip(repo, LEDGER), tip(repo, BRANCH)
    points = spread(calls(fresh(repo), "pull"), count)
    halves: list[tuple[bool, bool]] = []

    def one(point: Point) -> None:
        copy = fresh(repo)
        inject(copy, point, "signal=KILL", "pull")
        fsck(copy)
        halves.append((tip(copy, LEDGER) != before[0], tip(copy, BRANCH) != before[1]))
        assert tells_all(copy)
        again = run_gitcp(copy, "pull")
        assert again.returncode == 0, again.stderr
        steps = gitcp.open(copy).session("job").steps()
        assert {one.name: one.state for one in steps} == {
            "first": "done",
            "ann's": "done",
            "bob's": "done",
        }
        assert tells_all(copy)
        # Joined once, however often it was begun.
        assert len(git(copy, "rev-list", "--merges", LEDGER).split()) == 1
        assert git(copy, "show", f"{BRANCH}:a.py") == b"two\n"
        assert run_gitcp(copy, "verify").returncode == 0
        assert users_state(copy) == user
        assert run_gitcp(copy, "save").returncode == 0
        if encrypted:
            # What was opened is known to be there: nothing is encrypted once more.
            forms = tip(copy, "refs/gitcp/efx/origin/job")
            assert forms == tip(base / "hub.git", LEDGER)
        nothing_left(copy)
        shutil.rmtree(copy)

    in_parallel(one, points)
    # Never the branch without the ledger.
    assert (False, True) not in halves
    assert {(False, False), (True, True)} <= set(halves), halves


@needs_strace
def test_a_pull_killed_at_sampled_syscalls_is_done_again(tmp_path):
    sweep(tmp_path, 4)


@needs_strace
def test_an_encrypted_pull_killed_at_sampled_syscalls_is_done_again(tmp_path):
    pytest.importorskip("pyrage", reason="the extra gitcp[crypt] is not installed")
    sweep(tmp_path, 3, encrypted=True)


@needs_strace
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_pull_killed_at_every_syscall_is_done_again(tmp_path):
    sweep(tmp_path, None)
