"""Killed between intent, effect and result: nothing twice without asking, nothing lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
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
    mounted,
    needs_root,
    needs_strace,
    nothing_left,
    spread,
    users_state,
)
from tests.support.gitrepo import gitcp_environment, make_repo, run_gitcp
from tests.support.inprocess import ok

KILL = "signal=KILL"
# The effect: a line in a file that is not part of the project.
PAY = (
    "run",
    "--step",
    "pay",
    "--",
    "sh",
    "-c",
    'echo "$GITCP_STEP_KEY" >> ../$(basename "$PWD").world',
)
UNKNOWN = 23


def world(repo: Path) -> list[str]:
    path = repo.with_name(f"{repo.name}.world")
    return path.read_text().split() if path.exists() else []


def steps(repo: Path) -> list[gitcp.Call]:
    """The steps as a new process reads them; trials run side by side in this one."""
    return gitcp.open(repo).session("main").steps()


def after_kill(repo: Path, user: dict[str, bytes]) -> str:
    """What a run after a kill comes to; looks at everything that must hold."""
    fsck(repo)
    done = world(repo)
    assert len(done) <= 1
    recorded = [one.state for one in steps(repo)]
    again = run_gitcp(repo, *PAY)
    if recorded == ["done"]:
        assert again.returncode == 0, again.stderr
        assert world(repo) == done
        outcome = "done"
    elif recorded == []:
        assert again.returncode == 0, again.stderr
        outcome = "before"
    else:
        # Interrupted. It is not run, however often it is called, until it is answered.
        assert recorded == ["open"]
        assert again.returncode == UNKNOWN, (again.returncode, again.stderr)
        assert b"interrupted" in again.stderr
        assert [one.state for one in steps(repo)] == ["open"]
        done = world(repo)
        said = "done" if done else "failed"
        gitcp.open(repo).session("main").answer("pay", said)
        assert run_gitcp(repo, *PAY).returncode == 0
        outcome = "unknown"
    assert len(world(repo)) == 1
    assert [one.intent.key for one in steps(repo)] == world(repo)
    assert verify(open_workspace(repo).store).ok
    gitcp.open(repo).session("main").save()
    nothing_left(repo)
    assert users_state(repo) == user
    return outcome


def sweep(tmp_path: Path, count: int | None) -> None:
    scene = make_scene(tmp_path / "scene")
    user = users_state(scene)
    every = calls(fresh(scene), *PAY)
    points = spread(every, count)
    # The records of intent and result: only between them it is not known.
    points += [p for p in every if p.call == "pwrite64" and p not in points]
    outcomes: list[str] = []

    def one(point: Point) -> None:
        repo = fresh(scene)
        inject(repo, point, KILL, *PAY)
        outcomes.append(after_kill(repo, user))
        shutil.rmtree(repo)

    in_parallel(one, points)
    # The kills fell before, in between, and after.
    assert set(outcomes) == {"before", "unknown", "done"}, outcomes


@needs_strace
def test_a_kill_at_sampled_syscalls_of_a_step(tmp_path):
    sweep(tmp_path, 5)


@needs_strace
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_kill_at_every_syscall_of_a_step(tmp_path):
    sweep(tmp_path, None)


# A step on files: it adds a line, so that a run on what a dead one left would show.
BUILD = ("run", "--step", "build", "--effect", "local", "--", "sh", "-c")
LINE = "echo line >> keep.txt; mkdir -p made; echo part > made/part"


def files_after_kill(repo: Path) -> str:
    """What a run after a kill of a step on files comes to."""
    fsck(repo)
    recorded = [one.state for one in steps(repo)]
    again = run_gitcp(repo, *BUILD, LINE, env={"GITCP_LOCK_TIMEOUT": "60s"})
    found = (repo / "keep.txt").read_text()
    if again.returncode == UNKNOWN:
        # A machine so busy that the last sign of life was long before the kill.
        assert b"half-finished files" in again.stderr
        return "reported"
    assert again.returncode == 0, again.stderr
    assert found == "keep\nline\n"
    assert (repo / "made" / "part").read_text() == "part\n"
    assert (repo / "own.txt").exists()
    gitcp.open(repo).session("main").save()
    assert verify(open_workspace(repo).store).ok
    nothing_left(repo)
    return "done" if recorded == ["done"] else "before" if not recorded else "again"


def sweep_files(tmp_path: Path, count: int | None) -> None:
    scene = make_scene(tmp_path / "scene")
    points = spread(calls(fresh(scene), *BUILD, LINE), count)
    outcomes: list[str] = []

    def one(point: Point) -> None:
        repo = fresh(scene)
        inject(repo, point, KILL, *BUILD, LINE)
        outcomes.append(files_after_kill(repo))
        shutil.rmtree(repo)

    in_parallel(one, points)
    assert {"before", "done"} <= set(outcomes), outcomes


@needs_strace
def test_a_kill_at_sampled_syscalls_of_a_step_on_files(tmp_path):
    sweep_files(tmp_path, 5)


@needs_strace
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_kill_at_every_syscall_of_a_step_on_files(tmp_path):
    sweep_files(tmp_path, None)


def test_a_step_whose_command_outlived_gitcp_is_still_running(tmp_path):
    repo = make_repo(tmp_path / "repo", {"a": b"a"})
    fifo, pid = tmp_path / "fifo", tmp_path / "pid"
    os.mkfifo(fifo)
    words = ["run", "--step", "pay", "--", "sh", "-c", f"echo $$ > {pid}; cat {fifo}"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "gitcp", *words],
        cwd=repo,
        env=gitcp_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 200
    while not (pid.exists() and pid.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert [one["state"] for one in ok(repo, "steps")["steps"]] == ["running"]
    busy = run_gitcp(repo, *words, env={"GITCP_LOCK_TIMEOUT": "50ms"})
    assert busy.returncode == 11, busy.stderr
    with fifo.open("w"):
        pass
    while [one["state"] for one in ok(repo, "steps")["steps"]] != ["unknown"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- a program with many steps ----------------------------------------------------

PROGRAM = """
import os, sys
import gitcp

world, count = sys.argv[1], int(sys.argv[2])

def act(number):
    fd = os.open(world, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, b"%d\\n" % number)
    os.close(fd)
    return {"number": number, "by": os.getpid()}

session = gitcp.open(".").session("job")
try:
    for number in range(count):
        print(number, session.step(f"s{number}", act, number), flush=True)
except gitcp.StepUnknownError as error:
    sys.exit(error.exit_status)
"""


def start(repo: Path, outside: Path, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, str(outside), str(count)],
        # What a buffer had read beyond a line would be lost to `communicate`.
        bufsize=0,
        cwd=repo,
        env=gitcp_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def told(out: bytes) -> dict[int, Any]:
    """The whole lines: step and result."""
    lines = [
        line for line in out.decode().splitlines(keepends=True) if line[-1] == "\n"
    ]
    pairs = (line.split(" ", 1) for line in lines)
    return {int(number): json.loads(text.replace("'", '"')) for number, text in pairs}


def settle(repo: Path, outside: Path) -> int:
    """Answers for interrupted steps, by looking at the world."""
    session = gitcp.open(repo).session("job")
    did = outside.read_text().split() if outside.exists() else []
    unknown = [one for one in session.steps() if one.state == "open"]
    for call in unknown:
        happened = call.name.removeprefix("s") in did
        session.answer(call.name, "done" if happened else "failed", {"number": -1})
    return len(unknown)


def killed_at_random(tmp_path: Path, rounds: int, count: int) -> None:
    repo = make_repo(tmp_path / "repo", {"a": b"a"})
    outside = tmp_path / "world"
    chance = random.Random(rounds)
    acknowledged: dict[int, Any] = {}
    for _ in range(rounds):
        process = start(repo, outside, count)
        assert process.stdout is not None
        first = b""
        for _ in range(chance.randrange(1, 4)):
            first += process.stdout.readline()
        time.sleep(chance.random() * 0.05)
        process.kill()
        out, err = process.communicate()
        assert b"Traceback" not in err, err
        for number, result in told(first + out).items():
            # What was acknowledged once is what every later run is told.
            assert acknowledged.setdefault(number, result) == result
        assert settle(repo, outside) <= 1
        did = outside.read_text().split()
        assert len(did) == len(set(did)), "run twice"
        fsck(repo)
    process = start(repo, outside, count)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    final = told(out)
    assert final.keys() == set(range(count))
    assert acknowledged.items() <= final.items()
    assert sorted(map(int, outside.read_text().split())) == list(range(count))
    assert ok(repo, "verify")["ok"]


def test_a_program_killed_at_random_does_each_step_once(tmp_path):
    killed_at_random(tmp_path, rounds=4, count=12)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_program_killed_at_random_again_and_again(tmp_path):
    killed_at_random(tmp_path, rounds=60, count=120)


def test_two_programs_on_one_session_do_each_step_once(tmp_path):
    repo = make_repo(tmp_path / "repo", {"a": b"a"})
    outside = tmp_path / "world"
    both = [start(repo, outside, 10) for _ in range(2)]
    results = []
    for process in both:
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        results.append(told(out))
    assert results[0] == results[1]
    assert sorted(map(int, outside.read_text().split())) == list(range(10))
    assert len({result["by"] for result in results[0].values()}) >= 1
    assert ok(repo, "verify")["ok"]


@needs_root
def test_on_a_full_disk_a_result_that_is_not_recorded_is_told_and_not_redone(tmp_path):
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=4m", "tmpfs") as disk:
        repo = make_repo(disk / "repo", {"a.txt": b"a\n"})
        did = []

        def act() -> str:
            did.append(1)
            with contextlib.suppress(OSError), (disk / "fill").open("wb", 0) as file:
                while file.write(b"x" * 4096):
                    pass
            return os.urandom(300_000).hex()

        with pytest.raises(gitcp.StorageError, match="'mail' was run, but") as caught:
            gitcp.open(repo).session("main").step("mail", act)
        assert "does not run again" in str(caught.value.hint)
        # Its traceback holds the store.
        del caught
        with pytest.raises(gitcp.StepUnknownError):
            gitcp.open(repo).session("main").step("mail", act)
        (disk / "fill").unlink()
        with pytest.raises(gitcp.StepUnknownError):
            gitcp.open(repo).session("main").step("mail", act)
        assert did == [1]
        gitcp.open(repo).session("main").answer("mail", "done", {"id": 7})
        recorded: Any = gitcp.open(repo).session("main").step("mail", act)
        assert recorded == {"id": 7}
        assert ok(repo, "verify")["ok"]
