"""A purge of what steps did, killed at any moment: done or not, and ended by another."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp.maintenance.verify import verify
from gitcp.project.workspace import open_workspace
from tests.fault.harness import (
    Point,
    calls,
    fresh,
    fsck,
    in_parallel,
    inject,
    make_scene,
    needs_strace,
    nothing_left,
    spread,
    users_state,
)
from tests.support.gitrepo import git, gitcp_environment, run_gitcp, write_files

VALUE = b"k3J9dLq0" + b"Xz7Yv3Wn5Bt1"
PURGE = ("purge", "--value-from-stdin", "--yes")
LEDGERS = ("refs/gitcp/fx/job", "refs/gitcp/fx/other", "refs/gitcp/fx/plain")
BRANCHES = ("refs/gitcp/s/job/main", "refs/gitcp/s/main/main")

# Ends as a kill does: the last records are in the redo log only.
STEPS = """
import os, signal, sys
import gitcp

value, last = sys.argv[1:]
store = gitcp.open(".")
for name in ("job", "other", "plain"):
    session = store.session(name)
    told = {"token": value if name != "plain" else "none"}
    session.step("small" + last, lambda: told)
    session.step("large" + last, lambda: {**told, "text": "x" * 9_000})
    session.step("last" + last, lambda: 1)
if last:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run_steps(repo: Path, last: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", STEPS, VALUE, last],
        cwd=repo,
        env=gitcp_environment(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == (-9 if last else 0), done.stderr


def scene(base: Path) -> Path:
    """Three ledgers, two with a secret; a remote has the first half of all of it."""
    repo = make_scene(base / "repo")
    git(base, "init", "-q", "--bare", "hub.git")
    git(repo, "remote", "add", "origin", base / "hub.git")
    git(repo, "config", "gitcp.secrets", "off")
    said = b'{"role": "user", "content": "%s"}' % VALUE
    assert run_gitcp(repo, "save", "-s", "job").returncode == 0
    assert (
        run_gitcp(repo, "save", "-s", "main", "--messages", "-", input=said).returncode
        == 0
    )
    run_steps(repo, "")
    assert run_gitcp(repo, "push").returncode == 0
    write_files(repo, {"more.txt": b"more\n"})
    assert run_gitcp(repo, "save", "-s", "job").returncode == 0
    # Fingerprints have a key; with it every trial comes to the same objects.
    assert run_gitcp(repo, "scan").returncode in {0, 24}
    run_steps(repo, "-2")
    assert list((repo / ".git" / "gitcp").rglob("*.redo"))
    return repo


def known(repo: Path) -> dict[str, Any]:
    """What was done and saved, except what to purge; puts the redo log away."""
    workspace = open_workspace(repo)
    found: dict[str, Any] = {}
    for name in ("job", "other", "plain"):
        session = gitcp.open(repo).session(name)
        session.flush()
        ledger = workspace.ledgers.of(name)
        assert all(
            ledger.signet.is_ours(one, ledger.value(one)) for one in ledger.records()
        )
        found[name] = [(one.name, one.state, one.intent.key) for one in session.steps()]
    found["ids"] = [
        one.id
        for name in ("job", "main")
        for one in gitcp.open(repo).session(name).checkpoints()
    ]
    assert verify(workspace.store).ok
    return found


def tips(repo: Path, names: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(git(repo, "rev-parse", "--verify", name) for name in names)


def noted(repo: Path) -> bytes:
    return git(repo, "for-each-ref", "refs/gitcp/r", "refs/gitcp/rfx")


def killed(base: Path, count: int | None) -> None:
    repo = scene(base)
    user = users_state(repo)
    settled = fresh(repo)
    was = known(settled)
    assert [len(some) for some in was.values()] == [6, 6, 6, 3]
    before = tips(settled, LEDGERS), tips(settled, BRANCHES)
    done = run_gitcp(settled, *PURGE, input=VALUE)
    assert done.returncode == 0, done.stderr
    assert b"origin still has it" in done.stderr
    after = tips(settled, LEDGERS), tips(settled, BRANCHES)
    assert before[0][:2] != after[0][:2]
    assert before[0][2] == after[0][2]
    assert before[1][1] != after[1][1]
    kept = noted(settled)
    points = spread(calls(fresh(repo), *PURGE, data=VALUE), count)
    outcomes: Counter[str] = Counter()

    def one(point: Point) -> None:
        copy = fresh(repo)
        ended = inject(copy, point, "signal=KILL", *PURGE, data=VALUE)
        fsck(copy)
        assert known(copy) == was
        ledgers, branches = tips(copy, LEDGERS), tips(copy, BRANCHES)
        for found, old, new in zip(ledgers, before[0], after[0], strict=True):
            assert found in (old, new)
        # Branches move together, and when no ledger holds it any more.
        assert branches in (before[1], after[1])
        assert branches == before[1] or ledgers == after[0]
        at = "done" if branches == after[1] else "begun"
        outcomes["before" if ledgers == before[0] else at] += ended.returncode == -9
        again = run_gitcp(copy, *PURGE, input=VALUE)
        # Where it was done there is nothing more to purge.
        assert again.returncode in ({0, 13} if at == "done" else {0}), again.stderr
        assert (tips(copy, LEDGERS), tips(copy, BRANCHES)) == after
        assert noted(copy) == kept
        everything = git(
            copy, "cat-file", "--batch-all-objects", "--batch", "--unordered"
        )
        assert VALUE not in everything
        for path in (copy / ".git" / "gitcp").rglob("*"):
            assert path.is_dir() or VALUE not in path.read_bytes(), path
        assert known(copy) == was
        assert users_state(copy) == user
        assert run_gitcp(copy, "save").returncode == 0
        nothing_left(copy)
        fsck(copy)
        shutil.rmtree(copy)

    in_parallel(one, points)
    assert sum(outcomes.values()) >= 0.7 * len(points) > 1
    assert outcomes["before"]
    assert outcomes["done"]


@needs_strace
def test_a_purge_of_steps_killed_at_sampled_syscalls_is_done_or_not(tmp_path):
    killed(tmp_path, 4)


@needs_strace
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_purge_of_steps_killed_at_every_syscall_is_done_or_not(tmp_path):
    killed(tmp_path, None)
