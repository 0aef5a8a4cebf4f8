"""A push beside a `git push` that failed is told to a person: once by `log`, by `status` always."""

from __future__ import annotations

import pytest

from gitcp.project import failed_push
from gitcp.project.workspace import open_workspace
from tests.support.clones import clone, make_hub, save
from tests.support.inprocess import invoke, ok
from tests.support.terminal import at_terminal

OUTPUT = """\
gitcp: warning: something else
  rejected     main/main  (it says no)
gitcp: nothing was sent: main/main: it says no
  ask the administrator of origin, which gave this reason
"""


@pytest.fixture
def ann(tmp_path):
    repo = clone(make_hub(tmp_path), "ann")
    save(repo, a_py=b"two")
    return repo


@pytest.fixture
def failed(ann):
    failed_push.note(open_workspace(ann).repository, "origin", OUTPUT)
    return ann


def test_log_tells_a_person_once(failed):
    # A program that reads what is printed is not a person.
    assert b"not pushed" not in invoke(failed, "log").stderr
    assert "not pushed" not in at_terminal(failed, "log", "--json")[2]
    first = at_terminal(failed, "log")[2]
    assert "sessions were not pushed to origin (just now): nothing was sent" in first
    assert "ask the administrator of" in first
    assert "not pushed" not in at_terminal(failed, "log")[2]


def test_the_same_failure_is_not_told_again_and_another_one_is(failed):
    repository = open_workspace(failed).repository
    assert "not pushed" in at_terminal(failed, "log")[2]
    failed_push.note(repository, "origin", OUTPUT)
    assert "not pushed" not in at_terminal(failed, "log")[2]
    failed_push.note(repository, "origin", "gitcp: the remote cannot be reached\n")
    told = at_terminal(failed, "log")[2]
    assert "the remote cannot be reached" in told
    assert "`gitcp push origin` tries again" in told


def test_status_tells_it_until_a_push_of_everything_succeeds(failed):
    for _ in range(2):
        assert b"sessions were not pushed" in invoke(failed, "status").stderr
    ok(failed, "push", "origin", "main")
    ok(failed, "push", "--dry-run")
    assert b"sessions were not pushed" in invoke(failed, "status").stderr
    ok(failed, "push")
    assert invoke(failed, "status").stderr == b""


def test_what_says_nothing_that_can_be_read_is_told_as_it_is(ann):
    repository = open_workspace(ann).repository
    failed_push.note(repository, "origin", "")
    failed = failed_push.read(repository)
    assert failed is not None
    assert failed.reason == "no reason was given"
    failed_push.forget(repository, "backup")
    assert failed_push.read(repository) == failed
    failed_push.forget(repository, "origin")
    assert failed_push.read(repository) is None
