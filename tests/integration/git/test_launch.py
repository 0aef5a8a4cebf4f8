"""A git that starts before gitcp has loaded: what it prints, and what it leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitcp.cli.guard import OutOfTimeError, limited
from gitcp.errors import GitFailedError
from gitcp.git import launch, process, questions
from gitcp.git.discover import discover
from gitcp.worktree import comparison, state
from tests.support.gitrepo import write_files
from tests.support.inprocess import ok
from tests.support.snapshots import capture, captured, on_disk

# More than a pipe holds.
MUCH = 300_000


@pytest.fixture(autouse=True)
def left_over() -> Iterator[None]:
    yield
    comparison.drop()
    questions.drop()


@pytest.fixture
def children_are_forgotten() -> Iterator[None]:
    """The system forgets how the children of this process ended."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


def run(script: str, where: Path, **how) -> launch.Launched:
    return launch.launch(["-c", f"alias.x=!{script}", "x"], where=str(where), **how)


def test_much_on_both_streams_is_read(repo):
    running = run(f"head -c {MUCH} /dev/zero; head -c {MUCH} /dev/zero >&2", repo)
    assert running.outcome() == (0, bytes(MUCH), bytes(MUCH))


def test_a_failure_names_the_command_and_what_git_said(repo):
    running = launch.launch(["cat-file", "blob", "missing"], where=str(repo))
    with pytest.raises(GitFailedError, match=r"git cat-file failed: fatal: .*missing"):
        process.result(running)


def test_a_git_that_is_killed_says_so(repo):
    # A child that outlives git would keep the pipes open, so the child kills git and ends.
    running = run("kill -KILL $PPID", repo)
    with pytest.raises(GitFailedError, match="SIGKILL"):
        process.result(running)


def test_a_wait_that_is_cut_short_leaves_no_process(repo):
    running = run("sleep 60", repo)
    with pytest.raises(OutOfTimeError), limited(0.05, "a hook"):
        running.outcome()
    with pytest.raises(ProcessLookupError):
        os.kill(running.pid, 0)


@pytest.mark.parametrize("yields", [False, True])
def test_one_that_yields_has_a_lower_priority(repo, yields):
    running = run("sleep 60", repo, yields=yields)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, running.pid) == min(own + 10 * yields, 19)
    running.kill()


def test_without_git_nothing_stays_open(repo, tmp_path, monkeypatch):
    monkeypatch.chdir(repo)
    monkeypatch.setenv("PATH", str(tmp_path))
    before = os.listdir("/proc/self/fd")
    questions.start_early()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.usefixtures("children_are_forgotten")
def test_a_comparison_of_unknown_outcome_is_made_again(repo, monkeypatch):
    write_files(repo, {"file": b"1"})
    monkeypatch.setattr(state, "_FOLD_AT", 0)
    capture(repo)
    write_files(repo, {"file": b"2"})
    monkeypatch.chdir(repo)
    comparison.start_early()
    assert captured(repo, capture(repo))[b"file"] == on_disk(repo)[b"file"]


@pytest.mark.usefixtures("children_are_forgotten")
def test_a_question_of_unknown_outcome_is_asked_again(repo, monkeypatch):
    monkeypatch.chdir(repo)
    questions.start_early()
    assert discover(".").top == repo


@pytest.mark.usefixtures("children_are_forgotten")
def test_a_command_learns_how_its_gits_end_though_its_caller_ignores_that(repo):
    ok(repo, "save")
    assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL
