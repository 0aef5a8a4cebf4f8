"""Output that goes nowhere: streams that are closed, and disks that are full."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gitcp.cli.emit import Output
from tests.support.gitrepo import gitcp_argv, gitcp_environment
from tests.support.inprocess import ok


def shell(
    repo: Path, command: str, redirect: str, unbuffered: str = ""
) -> subprocess.CompletedProcess[bytes]:
    """Runs gitcp by a shell, which can do to its streams what Python cannot."""
    argv = [os.fsdecode(arg) for arg in gitcp_argv(*command.split())]
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirect}', "sh", *argv],
        cwd=repo,
        env=gitcp_environment({"PYTHONUNBUFFERED": unbuffered}),
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("redirect", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_an_empty_one(repo, redirect):
    done = shell(repo, "save -m closed", redirect)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [one["note"] for one in ok(repo, "log")["checkpoints"]] == ["closed"]
    assert shell(repo, "cat 1 README.md", redirect).returncode == 0
    assert shell(repo, "run -- sh -c exit", redirect).returncode == 0
    assert ok(repo, "verify")["ok"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_the_output_is_no_bug(repo, unbuffered):
    """Python exits with 120 if it still has text for a stream that cannot be written."""
    ok(repo, "save")
    (repo / "README.md").write_bytes(b"wreck")
    for command in (
        "log",
        "log --json",
        "cat 1 README.md",
        "--version",
        "restore -y 1",
    ):
        done = shell(repo, command, ">/dev/full", unbuffered)
        assert done.returncode == 20
        assert b"the output cannot be written: No space left on device" in done.stderr
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr
    # It was done all the same.
    assert (repo / "README.md").read_bytes() == b"# A project\n"
    assert shell(repo, "undo -y", ">/dev/full 2>/dev/full", unbuffered).returncode == 20
    assert (repo / "README.md").read_bytes() == b"wreck"
    assert shell(repo, "show nothing", "2>/dev/full", unbuffered).returncode == 13


@pytest.mark.parametrize(
    "command",
    [
        "hook",
        "hook claude-code",
        "hook claude-code Stop more",
        "-C . hook claude-code Stop --unknown",
        "git-hook",
        "--unknown git-hook post-commit",
    ],
)
def test_a_hook_that_is_called_wrongly_vetoes_nothing(repo, command):
    done = shell(repo, command, "</dev/null")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"gitcp: " in done.stderr
    assert shell(repo, "-C hook save --unknown", "").returncode == 2


def test_what_is_printed_steers_no_terminal_but_by_its_own_styles(capfdbinary):
    out = Output()
    out.color = True
    hostile = "\x1b]52;c;QUFB\x07\x1b[2J\x9b31m\r\u202e"
    for tell in (out.print, out.tell):
        tell(f"{out.style('bold' + hostile, bold=True)} plain{hostile}\tx\ny")
    for printed in capfdbinary.readouterr():
        assert printed.startswith(b"\x1b[1mbold\\x1b]52;c;QUFB\\x07\\x1b[2J\\x9b31m\\r")
        assert printed.count(b"\x1b") == 2
        assert b"\x1b[0m plain\\x1b" in printed
        assert printed.endswith(b"\tx\ny\n")
        assert b"\0" not in printed
