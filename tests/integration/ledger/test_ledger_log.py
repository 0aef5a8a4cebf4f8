"""The write-ahead log of a ledger: durable before git has it, and never overlooked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import gitcp
from gitcp.format import layout
from gitcp.ledger.log import Ledger
from gitcp.project.workspace import open_workspace
from gitcp.wal import background, log_file
from tests.support.gitrepo import git, git_line, gitcp_environment, run_gitcp
from tests.support.inprocess import fails, ok

REF = "refs/gitcp/fx/work"

# Ends without settling: as a kill does, at a known point.
PROGRAM = """
import os, sys, gitcp
run = gitcp.open(".").session("work")
run.save(note="before")
for name in sys.argv[1:]:
    run.step(name, lambda: "x" * 9000 if name == "large" else name)
os._exit(0)
"""


@pytest.fixture
def still(monkeypatch):
    """Nothing is settled in the background."""
    monkeypatch.setattr(background, "QUIET", 3600.0)
    monkeypatch.setattr(background, "OLDEST", 3600.0)


def log_of(repo: Path) -> Path:
    return repo / ".git" / "gitcp" / "redo" / "fx.work.redo"


def killed(repo: Path, *names: str) -> None:
    """Runs steps in a process that ends before git has them."""
    program = f"""
from gitcp.wal import background as settling
settling.QUIET = settling.OLDEST = 3600.0
{PROGRAM}"""
    subprocess.run(
        [sys.executable, "-P", "-c", program, *names],
        cwd=repo,
        env=gitcp_environment(),
        check=True,
        timeout=200,
    )


def names(repo: Path) -> list[str]:
    return [one.name for one in gitcp.open(repo).session("work").steps()]


def has_ref(repo: Path) -> bool:
    return bool(git(repo, "for-each-ref", REF))


def test_an_acknowledged_step_is_in_the_log_alone_until_it_is_settled(repo, still):
    run = gitcp.open(repo).session("work")
    assert run.step("a", lambda: 7) == 7
    assert log_of(repo).stat().st_size
    assert not has_ref(repo)
    run.flush()
    assert not log_of(repo).exists()
    assert int(git_line(repo, "rev-list", "--count", REF)) == 2
    git(repo, "fsck", "--full", "--strict")


def test_the_background_settles_soon(repo, monkeypatch):
    monkeypatch.setattr(background, "QUIET", 0.0)
    gitcp.open(repo).session("work").step("a", lambda: 7)
    done = threading.Event()
    # Waits for the file to go, as long as it may take.
    for _ in range(6000):
        if has_ref(repo) and not log_of(repo).exists():
            break
        done.wait(0.02)
    assert has_ref(repo)
    assert not log_of(repo).exists()


def test_the_end_of_the_process_settles(repo):
    run_gitcp(repo, "run", "--step", "pay", "-s", "work", "--", "true")
    assert has_ref(repo)
    assert not log_of(repo).exists()


def restore(repo: Path) -> list[str]:
    before = ok(repo, "log", "-s", "work")["checkpoints"][0]["id"]
    said = fails(repo, 23, "restore", before, "-y")
    return [name for name in ("a", "large", "b") if name in said]


@pytest.mark.parametrize(
    "look",
    [
        lambda repo: [one["name"] for one in ok(repo, "steps", "-s", "work")["steps"]],
        names,
        lambda repo: (ok(repo, "verify"), git_line(repo, "rev-list", "--count", REF))[
            1
        ],
        lambda repo: (ok(repo, "gc"), git_line(repo, "rev-list", "--count", REF))[1],
        lambda repo: (ok(repo, "doctor"), git_line(repo, "rev-list", "--count", REF))[
            1
        ],
        restore,
    ],
    ids=["steps", "python", "verify", "gc", "doctor", "restore"],
)
def test_every_reader_sees_what_a_dead_process_acknowledged(repo, look):
    killed(repo, "a", "large", "b")
    assert log_of(repo).exists()
    assert look(repo) in (["a", "large", "b"], "6")
    git(repo, "fsck", "--full", "--strict")


def test_a_process_that_runs_sees_what_another_acknowledges(repo, still):
    """Two stores, as two processes have them; nothing is settled in between."""
    one, other = (gitcp.open(repo).session("work") for _ in range(2))
    assert one.step("a", lambda: "from one") == "from one"
    assert other.step("a", lambda: "from the other") == "from one"
    assert other.step("b", lambda: "x" * 9000) == "x" * 9000
    assert one.step("b", lambda: "y") == "x" * 9000
    assert [call.name for call in one.steps()] == ["a", "b"]
    assert not has_ref(repo)
    # One of them settles, the other goes on from there.
    one.flush()
    assert other.step("c", lambda: 3) == 3
    assert one.step("c", lambda: 4) == 3
    other.flush()
    assert int(git_line(repo, "rev-list", "--count", REF)) == 6
    assert ok(repo, "verify")["ok"]


def test_a_checkpoint_says_how_far_the_log_had_come(repo, still):
    run = gitcp.open(repo).session("work")
    first = run.save(note="nothing yet")
    run.step("a", lambda: 1)
    second = run.save(note="one step")
    assert (first.manifest.effects, second.manifest.effects) == (0, 2)
    assert not has_ref(repo)
    run.flush()
    assert second.manifest.ledger == git_line(repo, "rev-parse", REF)


def test_looking_leaves_no_file(repo):
    run = gitcp.open(repo).session("work")
    assert run.steps() == []
    assert run.save().manifest.effects == 0
    assert not log_of(repo).parent.exists()


def test_a_ref_that_another_process_moved_is_joined_with_the_log(repo, still):
    """An older gitcp, which knows no log of a ledger, has added to it meanwhile."""
    run = gitcp.open(repo).session("work")
    run.step("a", lambda: 1)
    run.flush()
    tip = git_line(repo, "rev-parse", REF)
    gitcp.open(repo).session("work").step("theirs", lambda: 2)
    open_workspace(repo)
    theirs = git_line(repo, "rev-parse", REF)
    git(repo, "update-ref", REF, tip)
    other = gitcp.open(repo).session("work")
    other.step("ours", lambda: 3)
    assert log_of(repo).exists()
    git(repo, "update-ref", REF, theirs)
    assert sorted(call.name for call in other.steps()) == ["a", "ours", "theirs"]
    assert other.step("more", lambda: 4) == 4
    other.flush()
    assert sorted(names(repo)) == ["a", "more", "ours", "theirs"]
    git(repo, "fsck", "--full", "--strict")
    git(repo, "merge-base", "--is-ancestor", theirs, REF)


def test_a_settled_log_that_comes_back_changes_nothing(repo):
    """A power cut may bring back a file whose removal was not synced."""
    killed(repo, "a", "large")
    kept = log_of(repo).read_bytes()
    run = gitcp.open(repo).session("work")
    assert not log_of(repo).exists()
    run.step("b", lambda: 2)
    run.flush()
    tip = git_line(repo, "rev-parse", REF)
    log_of(repo).write_bytes(kept)
    assert names(repo) == ["a", "large", "b"]
    assert git_line(repo, "rev-parse", REF) == tip
    # Also if the repository is not opened again in between.
    log_of(repo).write_bytes(kept)
    assert run.step("c", lambda: 3) == 3
    run.flush()
    assert names(repo) == ["a", "large", "b", "c"]
    assert ok(repo, "verify")["ok"]


@pytest.mark.parametrize("cut", [1, 9, 100])
def test_a_torn_record_is_removed_and_those_before_it_stay(repo, cut):
    killed(repo, "a", "b")
    log_of(repo).write_bytes(log_of(repo).read_bytes()[:-cut])
    states = [(one.name, one.state) for one in gitcp.open(repo).session("work").steps()]
    # Its result was not acknowledged: what became of it is not known.
    assert states == [("a", "done"), ("b", "open")]
    assert ok(repo, "verify")["ok"]


def test_a_disk_that_refuses_records_nothing(repo, monkeypatch, still):
    run = gitcp.open(repo).session("work")
    run.step("a", lambda: 1)
    called: list[int] = []
    with monkeypatch.context() as patch:

        def refuse(fd: int) -> None:
            raise OSError(5, "Input/output error")

        patch.setattr(log_file, "fdatasync", refuse)
        with pytest.raises(gitcp.StorageError):
            run.step("b", called.append, 1)
    assert not called
    assert [one.name for one in run.steps()] == ["a"]
    # Nor does who comes next find what was not acknowledged.
    assert names(repo) == ["a"]
    assert run.step("b", lambda: 2) == 2
    assert names(repo) == ["a", "b"]
    assert ok(repo, "verify")["ok"]


def test_rewriting_a_ledger_keeps_other_writers_out(repo, still):
    ledger = open_workspace(repo).ledgers.of("work")
    run = gitcp.open(repo).session("work")
    run.step("a", lambda: 1)
    waiting = threading.Thread(target=lambda: run.step("b", lambda: 2))
    with ledger.drained():
        tip = git_line(repo, "rev-parse", REF)
        waiting.start()
        assert not log_file.LogFile(
            ledger.repository, layout.ledger_log("work")
        ).path.read_bytes()
        assert git_line(repo, "rev-parse", REF) == tip
    waiting.join()
    assert [one.name for one in run.steps()] == ["a", "b"]


def test_threads_that_add_at_once_share_syncs(repo, still, monkeypatch):
    run = gitcp.open(repo).session("work")
    run.step("first", lambda: 0)
    synced: list[int] = []
    real = log_file.fdatasync
    begin = threading.Barrier(8)

    def sync(fd: int) -> None:
        synced.append(fd)
        real(fd)

    monkeypatch.setattr(log_file, "fdatasync", sync)

    def work(number: int) -> None:
        begin.wait()
        for turn in range(5):
            assert run.step("s", lambda: number, key=f"{number}-{turn}") == number

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(run.steps()) == 41
    assert len(synced) <= 80
    run.flush()
    assert len(names(repo)) == 41
    assert ok(repo, "verify")["ok"]


def test_a_forked_process_has_locks_of_its_own(repo, monkeypatch):
    """Forked while the parent's background settles."""
    monkeypatch.setattr(background, "QUIET", 0.0)
    run = gitcp.open(repo).session("work")
    for number in range(8):
        for turn in range(3):
            run.step("parent", lambda: 0, key=f"{number}-{turn}")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run.step("child", lambda: 1, key=str(number))
                # A thread of its own settles, and not the parent's.
                at_work = {one.name for one in threading.enumerate()}
                run.flush()
                status = 0 if "gitcp-settling" in at_work else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    children = [one for one in run.steps() if one.name == "child"]
    assert [one.state for one in children] == ["done"] * 8
    run.flush()
    assert len(run.steps()) == 32
    assert ok(repo, "verify")["ok"]


@pytest.mark.parametrize("where", ["since", "_move"])
def test_a_process_forked_while_a_thread_is_in_a_step_goes_on(repo, monkeypatch, where):
    """What the thread held stays held in the child, where the thread does not run."""
    run = gitcp.open(repo).session("work")
    run.step("parent", lambda: 0)
    inside, go_on = threading.Event(), threading.Event()
    real = getattr(Ledger, where)

    def held(ledger: Ledger, *given: object) -> object:
        if threading.current_thread() is thread:
            inside.set()
            go_on.wait()
        return real(ledger, *given)

    monkeypatch.setattr(Ledger, where, held)
    thread = threading.Thread(target=run.step, args=("beside", lambda: 1))
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        # The kernel ends it where it hangs.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)
        status = 1
        try:
            status = 0 if run.step("child", lambda: 2) == 2 else 2
            run.flush()
        finally:
            os._exit(status)
    go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    states = {one.name: one.state for one in run.steps()}
    assert states == {"parent": "done", "beside": "done", "child": "done"}
    run.flush()
    assert ok(repo, "verify")["ok"]


def test_one_object_serves_a_session(repo):
    ledgers = open_workspace(repo).ledgers
    ledger = ledgers.of("work")
    assert isinstance(ledger, Ledger)
    assert ledgers.of("work") is ledger
    assert ledgers.of("other") is not ledger
