"""The picker in a real terminal: tmux at two sizes, restores, resumes, trouble on the way."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.gitrepo import gitcp_environment, make_repo, tree_bytes
from tests.support.inprocess import invoke, ok
from tests.support.picked import Project

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed"
)
_LONGEST = 30.0


class Tmux:
    """A terminal of a size, with a shell in it."""

    def __init__(self, directory: Path, top: Path, size: tuple[int, int], **more: str):
        self._socket = str(directory / "tmux")
        environment = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        environment |= {"PATH": f"{directory}:{os.environ['PATH']}", **more}
        self.environment = {**gitcp_environment(), **environment}
        columns, rows = map(str, size)
        self._run(
            *("-f", os.devnull, "new-session", "-d", "-x", columns, "-y", rows),
            *("-c", str(top), "sh"),
        )
        try:
            self._prompted()
            self.keys("PS1='ready> '", "Enter")
            self.shows("\nready>")
        except BaseException:
            self.close()
            raise

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words],
            env=self.environment,
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout

    def _prompted(self) -> None:
        """Waits for the shell: what is typed before it is there stands apart."""
        end = time.monotonic() + _LONGEST
        while not self.screen.strip():
            assert time.monotonic() < end
            time.sleep(0.03)

    @property
    def screen(self) -> str:
        """The text on it."""
        return self._run("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        """Presses keys."""
        self._run("send-keys", *keys)

    def line(self, *words: str) -> None:
        """Types a command line, with Enter."""
        self._run("send-keys", "-l", shlex.join(words))
        self.keys("Enter")

    def resize(self, columns: int, rows: int) -> None:
        """Gives it another size."""
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def shows(self, *texts: str) -> str:
        """Waits until all of some texts are on the screen; returns it."""
        end = time.monotonic() + _LONGEST
        while not all(text in (screen := self.screen) for text in texts):
            assert time.monotonic() < end, (texts, screen)
            time.sleep(0.03)
        return screen

    def close(self) -> None:
        """Ends it, and what runs in it."""
        self._run("kill-server")


@pytest.fixture
def project(tmp_path, monkeypatch):
    made = Project.make(monkeypatch)
    for name in ("HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.setenv(name, os.environ[name])
    # A client that only says how it was called.
    for name, lines in {
        "claude": ['echo "client: $*"'],
        "gitcp": [f'exec {shlex.quote(sys.executable)} -m gitcp "$@"'],
    }.items():
        program = tmp_path / name
        program.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        program.chmod(0o755)
    return made


@contextmanager
def opened(project, tmp_path, size, **more):
    home = {name: os.environ[name] for name in ("HOME", "CLAUDE_CONFIG_DIR")}
    with closing(Tmux(tmp_path, project.top, size, **home, **more)) as terminal:
        yield terminal


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_back_by_turns_and_into_the_client(project, tmp_path, size):
    before = tree_bytes(project.top)
    with opened(project, tmp_path, size) as terminal:
        terminal.line("gitcp", "restore")
        terminal.shows("(now)", "Make it fast", "now, against #")
        terminal.keys("j", "j", "j")
        terminal.shows("Add the tests")
        terminal.keys("r")
        terminal.shows("Restore? The present state is saved first.")
        assert tree_bytes(project.top) == before
        terminal.keys("y")
        terminal.shows("Restored #", "Resume Claude Code here? [Y/n]")
        terminal.keys("Enter")
        screen = terminal.shows("client: --resume")
        assert "(now)" not in screen
        assert not (project.top / "DOCS.md").exists()
        terminal.line("stty", "-a")
        terminal.shows(" echo ", "icanon")


def test_a_restore_that_stops_half_way_says_how_to_go_on(project, tmp_path):
    with opened(project, tmp_path, (100, 30)) as terminal:
        terminal.line("gitcp", "ui")
        terminal.shows("(now)", "Make it fast", "now, against #")
        terminal.keys("G", "r")
        terminal.shows("Restore? The present state is saved first.")
        # The folder of a file that is to go cannot be written to any more.
        (project.top / "a.py").unlink()
        (project.top / "a.py").mkdir()
        (project.top / "a.py" / ".git").mkdir()
        terminal.keys("y")
        terminal.shows("gitcp: ", "\nready>")
        terminal.line("stty", "-a")
        terminal.shows(" echo ", "icanon")


def test_ctrl_c_and_a_resize_leave_the_terminal_clean(project, tmp_path):
    with opened(project, tmp_path, (80, 24), NO_COLOR="1") as terminal:
        terminal.line("gitcp", "ui")
        terminal.resize(40, 10)
        terminal.shows("(now)", "Make it fast")
        terminal.resize(120, 30)
        terminal.shows("now, against #")
        terminal.keys("j", "j", "r")
        terminal.keys("C-c")
        terminal.shows("gitcp: interrupted", "\nready>")
        terminal.line("stty", "-a")
        terminal.shows(" echo ", "icanon")


def test_a_picker_that_is_ended_leaves_the_terminal_clean(project, tmp_path):
    with opened(project, tmp_path, (80, 24)) as terminal:
        terminal.line("sh", "-c", f"echo $$ > {tmp_path}/pid; exec gitcp ui")
        terminal.shows("(now)", "now, against #")
        os.kill(int((tmp_path / "pid").read_text()), 15)
        screen = terminal.shows("gitcp: interrupted", "\nready>")
        assert "(now)" not in screen
        terminal.line("stty", "-a")
        terminal.shows(" echo ", "icanon")


def test_a_picker_that_is_killed_leaves_the_store_as_it_was(project, tmp_path):
    with opened(project, tmp_path, (80, 24)) as terminal:
        terminal.line("sh", "-c", f"echo $$ > {tmp_path}/pid; exec gitcp ui")
        terminal.shows("(now)", "Make it fast")
        terminal.keys("j", "j", "r")
        os.kill(int((tmp_path / "pid").read_text()), 9)
        terminal.shows("Killed")
    assert invoke(project.top, "verify").returncode == 0
    assert ok(project.top, "save")["created"] is False


def test_before_the_first_checkpoint(tmp_path):
    top = make_repo(tmp_path / "project")
    with closing(Tmux(tmp_path, top, (80, 24))) as terminal:
        terminal.line(sys.executable, "-m", "gitcp", "ui")
        terminal.shows("No checkpoints yet", "gitcp save")
        terminal.keys("q")
        terminal.shows("gitcp ui\nready>")
