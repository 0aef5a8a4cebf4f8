"""A step on files that was killed half-way: what it left is put back, or reported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gitcp
from gitcp.steps import lease
from tests.support.gitrepo import git_line, gitcp_environment
from tests.support.inprocess import ok

needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/fd"), reason="the names of open files are in /proc"
)

# Writes, changes and removes, and is killed before it is done.
PROGRAM = """
import os, signal, sys
from pathlib import Path
import gitcp

def work():
    with open("log.txt", "a") as log:
        log.write("half\\n")
    Path("new").mkdir(exist_ok=True)
    Path("new/part").write_text("half")
    Path("old.txt").unlink()
    os.kill(os.getpid(), signal.SIGKILL)

writes = sys.argv[1:]
gitcp.open(".").session("job").step("build", work, effect="local", writes=writes)
"""


@pytest.fixture
def project(repo):
    (repo / "log.txt").write_text("first\n")
    (repo / "old.txt").write_text("old\n")
    (repo / "mine.txt").write_text("mine\n")
    return repo


def killed(project: Path, *writes: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *writes],
        cwd=project,
        env=gitcp_environment(),
        check=False,
        timeout=200,
    )
    assert done.returncode == -signal.SIGKILL
    alive(project, time.time())


def alive(project: Path, at: float) -> None:
    """Says when the dead run gave its last sign of life; a busy machine delays them."""
    (left,) = (project / ".git" / "gitcp" / "fx" / "job").glob("*.lock")
    assert left.stat().st_size
    os.utime(left, (at, at))


def step(project: Path, *writes: str) -> list[str]:
    """Runs the step again; returns what it found."""
    found: list[str] = []

    def work() -> None:
        found.append((project / "log.txt").read_text())
        found.append(str((project / "new").exists()))
        found.append(str((project / "old.txt").exists()))
        (project / "log.txt").write_text("done\n")

    run = gitcp.open(project).session("job")
    run.step("build", work, effect="local", writes=writes)
    return found


BEFORE = ["first\n", "False", "True"]


@pytest.mark.parametrize("writes", [(), ("log.txt", "new", "old.txt")])
def test_what_a_dead_run_left_is_put_back_before_it_runs_again(project, writes):
    killed(project, *writes)
    assert step(project, *writes) == BEFORE
    # What it left half done can be had again.
    session = gitcp.open(project).session("job")
    notes = {one.note: one for one in session.checkpoints()}
    assert "step build, interrupted" in notes
    left = notes["step build, interrupted"]
    assert git_line(project, "show", f"{left.commit}:log.txt") == "first\nhalf"
    assert (project / "log.txt").read_text() == "done\n"
    assert ok(project, "verify")["ok"]


def test_what_the_step_did_not_say_it_writes_stays(project):
    killed(project, "log.txt", "new")
    (project / "mine.txt").write_text("edited since\n")
    assert step(project, "log.txt", "new") == ["first\n", "False", "False"]
    assert (project / "mine.txt").read_text() == "edited since\n"


def test_a_file_that_was_changed_since_is_reported_and_nothing_touched(project):
    killed(project)
    alive(project, time.time() - 60)
    (project / "mine.txt").write_text("edited since\n")
    for _ in range(2):
        with pytest.raises(
            gitcp.StepUnknownError, match="half-finished files"
        ) as caught:
            step(project)
        assert "mine.txt" in caught.value.message
        assert (project / "mine.txt").read_text() == "edited since\n"
        assert (project / "new" / "part").read_text() == "half"
    # It was answered by hand: it runs on the files as they are.
    gitcp.open(project).session("job").answer("build", "again")
    assert step(project) == ["first\nhalf\n", "True", "False"]


def test_what_changes_between_two_looks_is_not_overwritten(project, monkeypatch):
    """It was told what the dead run left, and killed before that was put back."""
    killed(project)
    from gitcp.steps import remains

    with monkeypatch.context() as patch:
        patch.setattr(remains, "put_back", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            step(project)
    (project / "log.txt").write_text("by hand\n")
    with pytest.raises(gitcp.StepUnknownError, match="changed since"):
        step(project)
    assert (project / "log.txt").read_text() == "by hand\n"
    assert (project / "new" / "part").exists()
    # Put as the dead run left it, that is known again.
    (project / "log.txt").write_text("first\nhalf\n")
    assert step(project) == BEFORE


def test_what_another_step_wrote_since_is_not_taken_back(project):
    killed(project)
    run = gitcp.open(project).session("job")
    run.step(
        "other",
        lambda: (project / "log.txt").write_text("other\n") and None,
        effect="local",
        writes=["log.txt"],
    )
    with pytest.raises(gitcp.StepUnknownError, match=r"log\.txt"):
        step(project)
    assert (project / "log.txt").read_text() == "other\n"


def test_a_run_without_a_sign_of_life_is_only_reported(project):
    killed(project)
    (left,) = (project / ".git" / "gitcp" / "fx" / "job").glob("*.lock")
    left.unlink()
    with pytest.raises(gitcp.StepUnknownError, match="half-finished files"):
        step(project)
    assert (project / "log.txt").read_text() == "first\nhalf\n"


def test_where_nothing_changed_it_just_runs_again(project):
    run = gitcp.open(project).session("job")
    declared = run.step("build", effect="local")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(run._engine), "finish", lambda *_: None)
        declared(lambda: None)()
    assert step(project) == BEFORE


def test_a_step_on_files_gives_signs_of_life(project, monkeypatch):
    monkeypatch.setattr(lease, "BEAT", 0.01)
    seen: list[float] = []

    def work() -> None:
        (file,) = (project / ".git" / "gitcp" / "fx" / "job").glob("*.lock")
        os.utime(file, (1, 1))
        for _ in range(20_000):
            seen[:] = [file.stat().st_mtime]
            if seen[0] > 1:
                return
            time.sleep(0.01)

    gitcp.open(project).session("job").step("build", work, effect="local")
    assert seen[0] > 1
    assert not list((project / ".git" / "gitcp" / "fx" / "job").glob("*.lock"))


# Ends while the second file is being written, under a name of its own.
KILLER = """
import os, sys
import gitcp
synced, written = os.fsync, []

def fsync(fd):
    if ".gitcp-tmp-" in os.readlink(f"/proc/self/fd/{fd}"):
        written.append(fd)
        if len(written) == int(sys.argv[1]):
            os._exit(9)
    synced(fd)

os.fsync = fsync
run = gitcp.open(".").session("job")
if sys.argv[2] == "again":
    run.step("build", lambda: None, effect="local")
else:
    run.compensate(next(one for one in run.checkpoints() if one.note == "first"))
"""


def temporaries(project: Path) -> list[Path]:
    return [path for path in project.rglob(".gitcp-tmp-*") if ".git" not in path.parts]


def killed_in(project: Path, number: int, what: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", KILLER, str(number), what],
        cwd=project,
        env=gitcp_environment(),
        check=False,
        timeout=200,
    )
    assert done.returncode == 9
    assert temporaries(project)


@needs_proc
@pytest.mark.parametrize("number", [1, 2])
def test_files_of_a_run_that_was_killed_while_it_put_back_do_not_stay(project, number):
    killed(project)
    killed_in(project, number, "again")
    assert step(project) == BEFORE
    assert not temporaries(project)


@needs_proc
@pytest.mark.parametrize("number", [1, 2])
def test_files_of_an_undo_that_was_killed_do_not_stay(project, number):
    run = gitcp.open(project).session("job")
    first = run.save(note="first")

    def work() -> None:
        (project / "log.txt").write_text("changed")
        (project / "old.txt").write_text("changed")

    run.step("build", work, effect="local")
    killed_in(project, number, "undo")
    gitcp.open(project).session("job").compensate(first)
    assert not temporaries(project)
    assert (project / "log.txt").read_text() == "first\n"
    assert (project / "old.txt").read_text() == "old\n"
