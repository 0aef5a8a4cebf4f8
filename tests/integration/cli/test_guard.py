"""A hook's boundary: whatever happens inside, outside nothing does."""

from __future__ import annotations

import os
import signal
import time

import pytest

from gitcp.cli.guard import guarded, limited
from gitcp.errors import BusyError


def log_of(repo):
    path = repo / ".git" / "gitcp" / "hooks.log"
    return path.read_text("utf-8") if path.exists() else ""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BusyError("the work tree is locked"), "locked: the work tree is locked"),
        (ZeroDivisionError("bug"), "ZeroDivisionError: bug"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_what_goes_wrong_is_a_line_in_the_log(repo, error, told):
    def work(started):
        raise error

    guarded("a-hook", work, directory=str(repo))
    assert "a-hook" in log_of(repo)
    assert told in log_of(repo)


def test_a_hook_that_takes_too_long_is_ended(repo):
    def work(started):
        with limited(0.2, "a-hook"):
            time.sleep(30)

    before, handler = time.monotonic(), signal.getsignal(signal.SIGALRM)
    guarded("a-hook", work, directory=str(repo))
    assert time.monotonic() - before < 10
    assert "took more than 0.2 s" in log_of(repo)
    assert signal.getsignal(signal.SIGALRM) is handler


def test_nothing_of_it_is_heard(repo, capfd):
    def work(started):
        os.write(1, b"out")
        os.write(2, b"err")

    guarded("a-hook", work, directory=str(repo))
    os.write(1, b"after")
    assert capfd.readouterr() == ("after", "")


def test_outside_of_a_repository_it_stays_silent(tmp_path, capfd):
    def work(started):
        raise ValueError

    guarded("a-hook", work, directory=str(tmp_path))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_turned_off(repo, monkeypatch):
    monkeypatch.setenv("GITCP_DISABLE", "1")

    def work(started):
        raise AssertionError

    guarded("a-hook", work, directory=str(repo))
    assert log_of(repo) == ""
