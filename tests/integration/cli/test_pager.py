"""The pager: git's choice, at a terminal only, and no reason to fail."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
from pathlib import Path

import pytest

from gitcp.cli.layout import cells
from tests.support import forked
from tests.support.gitrepo import git, gitcp_environment
from tests.support.inprocess import invoke, ok

MARKED = "sed s/^/P:/"


def terminal(
    repo: Path, *args: str, columns: int = 80, **variables: str | None
) -> tuple[int, str]:
    """Runs gitcp at a terminal; returns its status and what it showed."""
    env = gitcp_environment({"TERM": "xterm", "NO_COLOR": "1", **variables})
    fd, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    pid = forked.start_at(repo, args, env, theirs)
    os.close(theirs)
    shown = b""
    while True:
        if not select.select([fd], [], [], 60)[0]:
            os.kill(pid, signal.SIGKILL)
            break
        try:
            chunk = os.read(fd, 1 << 16)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    text = shown.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return os.waitstatus_to_exitcode(status), text


@pytest.fixture
def saved(repo):
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}]
    ok(repo, "save", "--messages", "-", "-m", "one", "--decision", "D",
       input=json.dumps(talk).encode())  # fmt: skip
    (repo / "README.md").write_bytes(b"changed\n")
    return repo


@pytest.mark.parametrize(
    "command",
    ["log", "show", "show -p", "diff 1", "messages", "messages --all", "decisions",
     "context", "messages --format jsonl"],
)  # fmt: skip
def test_what_is_read_goes_through_the_pager(saved, command):
    status, shown = terminal(saved, *command.split(), GIT_PAGER=MARKED)
    assert status == 0
    lines = shown.splitlines()
    assert lines
    # Remarks, too: in git as here the pager has both.
    assert all(line.startswith("P:") for line in lines)


@pytest.mark.parametrize(
    "command",
    [
        "--no-pager log",
        "log --json",
        "--json show",
        "status",
        "files",
        "cat 1 README.md",
    ],
)
def test_nothing_else_does(saved, command):
    status, shown = terminal(saved, *command.split(), GIT_PAGER=MARKED)
    assert status == 0
    assert shown
    assert "P:" not in shown


def test_no_pager_without_a_terminal(saved):
    assert b"P:" not in invoke(saved, "log", env={"GIT_PAGER": MARKED}).stdout


def test_the_pager_is_the_one_that_git_would_use(saved):
    def used(**variables: str | None) -> str:
        return terminal(saved, "log", columns=80, **variables)[1].strip()

    unset = {"GIT_PAGER": None, "PAGER": None}
    assert used(**{**unset, "PAGER": "echo by PAGER"}) == "by PAGER"
    git(saved, "config", "core.pager", "echo by core.pager")
    assert used(**{**unset, "PAGER": "echo by PAGER"}) == "by core.pager"
    assert used(GIT_PAGER="echo by GIT_PAGER") == "by GIT_PAGER"
    for none in ("", "cat", " "):
        assert "one" in used(GIT_PAGER=none)
    assert used(GIT_PAGER="echo $LESS $LV", LESS=None, LV=None) == "FRX -c"
    assert used(GIT_PAGER="echo $LESS", LESS="mine") == "mine"


@pytest.mark.parametrize("pager", ["nowhere-x", "nowhere-x -R", "/", "a\\b"])
def test_a_pager_that_is_missing_is_no_pager(saved, pager):
    status, shown = terminal(saved, "log", GIT_PAGER=pager)
    assert status == 0
    assert "one" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("pager", ["true", "head -n 1", "exit 3", "kill -9 $$"])
def test_a_pager_that_quits_early_is_no_failure(saved, pager):
    big = [{"role": "user", "content": "word " * 200_000}]
    ok(saved, "save", "--messages", "-", input=json.dumps(big).encode())
    status, shown = terminal(saved, "messages", GIT_PAGER=pager)
    assert status == 0
    assert len(shown) < 1000
    assert "Traceback" not in shown


def test_an_error_is_not_paged_and_keeps_its_status(saved):
    status, shown = terminal(saved, "show", "nowhere", GIT_PAGER=MARKED)
    assert status == 13
    assert "P:" not in shown
    assert "there is no checkpoint" in shown


def test_what_is_paged_is_laid_out_for_the_terminal(saved):
    note = "漢字かな交じり文 " * 20
    ok(saved, "save", "-m", note, "--allow-empty")
    for command, columns in itertools.product(("log", "show"), (40, 80)):
        _, shown = terminal(saved, command, columns=columns, GIT_PAGER="tail -n +1")
        assert "…" in shown
        assert max(map(cells, shown.splitlines())) <= columns
    ok(
        saved,
        "save",
        "--messages",
        "-",
        input=b'[{"role":"user","content":"\\u001b["}]',
    )
    _, shown = terminal(saved, "messages", "--format", "jsonl", GIT_PAGER="tail -n +1")
    assert "\x1b" not in shown


def test_no_lock_is_held_while_the_user_reads(saved):
    ok(saved, "log")
    assert (saved / ".git" / "gitcp" / "readers.lock").exists()
    look = (
        "import fcntl; f = open('.git/gitcp/readers.lock', 'rb+');"
        " fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); print('free')"
    )
    status, shown = terminal(saved, "log", GIT_PAGER=f'{sys.executable} -c "{look}"')
    assert (status, shown.strip()) == (0, "free")
