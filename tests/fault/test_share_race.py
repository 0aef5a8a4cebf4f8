"""Many clones and one remote at once: nothing lost, every branch a line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import gitcp
from tests.support.clones import clone, make_hub, results, save
from tests.support.gitrepo import (
    git,
    gitcp_argv,
    gitcp_environment,
    run_gitcp,
    write_files,
)
from tests.support.inprocess import ok

GITCP = gitcp_argv()


def started(repo: Path, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*GITCP, *args],
        cwd=repo,
        env=gitcp_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def tips(repo: Path) -> dict[str, str]:
    found = git(
        repo, "for-each-ref", "--format=%(refname) %(objectname)", "refs/gitcp/s"
    )
    return dict(line.split() for line in found.decode().splitlines())


def together(hub: Path, clones: int, sessions: int) -> None:
    """Each clone pushes sessions of its own, and one branch that all of them have."""
    repos = [clone(hub, f"clone{number}") for number in range(clones)]
    for number, repo in enumerate(repos):
        store = gitcp.open(repo)
        for session in range(sessions):
            write_files(repo, {"a.py": f"{number} {session}".encode()})
            store.session(f"s{number}-{session}").save(
                messages=[{"role": "user", "content": f"{number} {session}"}]
            )
    running = [started(repo, "push", "--json") for repo in repos]
    for process in running:
        out, err = process.communicate(timeout=280)
        # No retry by hand: each push succeeds at once.
        assert process.returncode == 0, err
        assert {one["result"] for one in json.loads(out)["branches"]} == {"created"}
    there = tips(hub)
    assert len(there) == clones * sessions
    for repo in repos:
        for ref, oid in tips(repo).items():
            assert there[ref] == oid
    git(hub, "fsck", "--strict", "--no-dangling")
    fresh = clone(hub, "fresh")
    assert len(ok(fresh, "pull")["branches"]) == clones * sessions
    assert ok(fresh, "verify")["ok"]


def test_clones_that_push_at_once_lose_nothing(tmp_path):
    together(make_hub(tmp_path), clones=4, sessions=6)


@pytest.mark.slow
def test_eight_clones_with_fifty_sessions_each_lose_nothing(tmp_path):
    together(make_hub(tmp_path), clones=8, sessions=50)


def test_two_clones_that_grow_one_branch_lose_nothing(tmp_path):
    """Both save and push at once, again and again; the later one is told so.

    The late one's line goes its own way under a name of its own, as it is told.
    """
    hub = make_hub(tmp_path)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    save(ann, a_py=b"start")
    ok(ann, "push")
    ok(bob, "pull")
    made: dict[Path, list[str]] = {ann: [], bob: []}
    for turn in range(3):
        for repo, ids in made.items():
            text = f"{repo.name} {turn}".encode()
            ids.append(str(save(repo, a_py=text)["id"]))
        pushes = {repo: started(repo, "push", "--json") for repo in made}
        for process in pushes.values():
            _, err = process.communicate(timeout=120)
            assert process.returncode in {0, 12}, err
    for repo in made:
        done = run_gitcp(repo, "push")
        if done.returncode == 12:
            assert b"gitcp pull origin" in done.stderr
            ok(repo, "pull")
            ok(repo, "fork", f"{repo.name}s", "--no-switch")
            assert {one for one, _ in results(repo, "push").values()} <= {
                "created",
                "forked",
                "up-to-date",
            }
    fresh = clone(hub, "fresh")
    ok(fresh, "pull")
    assert ok(fresh, "verify")["ok"]
    held = {one["id"] for one in ok(fresh, "log", "--all")["checkpoints"]}
    assert held >= {*made[ann], *made[bob]}
    merges = git(hub, "rev-list", "--min-parents=2", "--glob=refs/gitcp/s/*")
    assert merges == b""


def test_pulls_of_one_remote_at_once_agree(tmp_path):
    """Two processes in one clone: one makes the branch, the other finds it there."""
    hub = make_hub(tmp_path)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    for number in range(5):
        save(ann, "-s", f"s{number}", a_py=str(number).encode())
    ok(ann, "push")
    running = [started(bob, "pull") for _ in range(4)]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert tips(bob) == tips(ann)
    assert ok(bob, "verify")["ok"]
    assert list((bob / ".git" / "gitcp").glob("tmp/*")) == []
