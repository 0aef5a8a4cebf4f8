"""git may be asked about a repository before gitcp has loaded: each answer is used once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gitcp.cli import agent_hook
from gitcp.git import launch, process, questions
from gitcp.git.discover import discover
from tests.support.gitrepo import git, make_repo
from tests.support.inprocess import invoke, ok


@pytest.fixture(autouse=True)
def left_over() -> Iterator[None]:
    yield
    questions.drop()


@pytest.fixture
def asked(monkeypatch) -> list[process.Running]:
    """The processes that were asked where a repository is."""
    noted: list[process.Running] = []

    def note(module: ModuleType, name: str) -> None:
        begin = getattr(module, name)

        def noting(args, **how):
            started = begin(args, **how)
            if "rev-parse" in args:
                noted.append(started)
            return started

        monkeypatch.setattr(module, name, noting)

    note(launch, "launch")
    note(process, "start")
    return noted


def has_ended(running: process.Running) -> bool:
    """Whether a process has been waited for, so that its number may name another one."""
    if isinstance(running, launch.Launched):
        with pytest.raises(ChildProcessError):
            os.waitpid(running.pid, os.WNOHANG)
        return True
    return running.returncode is not None


def open_pipes() -> set[str]:
    """The pipes of this process."""
    ends = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
    return {str(end.readlink()) for end in ends if end.exists()}


def test_what_was_asked_early_is_taken_once(repo, monkeypatch, asked):
    monkeypatch.chdir(repo)
    questions.start_early()
    assert discover(".").top == discover(repo).top == repo
    assert len(asked) == 2


def test_a_question_about_another_directory_is_ended(
    repo, tmp_path, monkeypatch, asked
):
    other = make_repo(tmp_path / "other", {"file": b"1"})
    monkeypatch.chdir(other)
    questions.start_early()
    assert discover(repo).top == repo
    early, late = asked
    assert has_ended(early)
    assert has_ended(late)


def test_settings_that_change_after_an_early_question_are_seen(repo, monkeypatch):
    monkeypatch.chdir(repo)
    questions.start_early()
    repository = discover(".")
    git(repo, "config", "gitcp.branch", "other")
    repository.reread()
    assert repository.config["gitcp.branch"] == ["other"]


def test_outside_a_repository_the_reason_is_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    late = invoke(tmp_path, "log")
    assert late.returncode != 0
    assert invoke(tmp_path, "-C", ".", "log").stderr == late.stderr


def test_the_command_line_asks_early_where_it_opens_the_project(repo, monkeypatch):
    early: list[bool] = []
    monkeypatch.setattr(questions, "start_early", lambda: early.append(True))
    for words in (("-C", ".", "log"), ("save", "--help"), ("help",)):
        assert invoke(repo, *words).returncode == 0
    assert early == []
    ok(repo, "-q", "save")
    assert early == [True]


def test_an_answer_that_nothing_took_leaves_no_process(repo, monkeypatch, asked):
    monkeypatch.chdir(repo)
    before = open_pipes()
    questions.start_early()
    questions.drop()
    (started,) = asked
    assert has_ended(started)
    assert open_pipes() == before


def test_where_there_is_no_git_the_command_says_so(repo, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = invoke(repo, "log")
    assert done.returncode != 0
    assert b"git could not be started" in done.stderr


def test_a_hook_of_an_agent_asks_early(repo, monkeypatch, asked):
    event = {"session_id": "s", "cwd": str(repo), "hook_event_name": "Stop"}
    sent = json.dumps(event).encode()
    before_it_was_read: list[int] = []

    def read() -> bytes:
        before_it_was_read.append(len(asked))
        return sent

    monkeypatch.setattr(agent_hook, "_stdin", read)
    monkeypatch.chdir(repo)
    agent_hook.run("claude-code", "Stop")
    assert before_it_was_read == [1]
    assert len(asked) == 1
