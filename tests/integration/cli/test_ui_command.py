"""`gitcp ui` and `gitcp restore` without a checkpoint: where they work, and what they load."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import subprocess
import sys
from unittest import mock

import pytest

from gitcp.cli import main
from tests.support.gitrepo import gitcp_environment, write_files
from tests.support.inprocess import fails, ok
from tests.support.picked import Project
from tests.support.terminal import Terminal


@pytest.fixture
def project(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    return Project.make(monkeypatch)


def typed(top, answers, *args):
    """Runs a command at a terminal; returns its status and all that was printed."""
    streams = [Terminal(io.BytesIO(answers.encode())), Terminal(io.BytesIO())]
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(top))
        stack.enter_context(mock.patch.object(sys, "stdin", streams[0]))
        for name in ("stdout", "stderr"):
            stack.enter_context(mock.patch.object(sys, name, streams[1]))
        status = main(list(args))
        streams[1].flush()
    raw = streams[1].buffer
    assert isinstance(raw, io.BytesIO)
    return status, raw.getvalue().decode()


def without_textual(monkeypatch):
    """Has the extra look as if it were not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *more: None if name == "textual" else find(name, *more),
    )


def test_without_a_terminal_it_says_so(project):
    assert "needs a terminal" in fails(project.top, 23, "ui")
    assert "no checkpoint was given" in fails(project.top, 2, "restore")


def test_a_dumb_terminal_is_refused_with_the_reason(project, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    status, told = typed(project.top, "", "ui")
    assert status == 2
    assert "TERM" in told


def test_without_textual_one_line_says_how_to_get_it(project, monkeypatch):
    without_textual(monkeypatch)
    status, told = typed(project.top, "", "ui")
    assert status == 2
    assert "pip install 'gitcp[ui]'" in told


def test_without_textual_restore_lists_turns_and_asks_which(project, monkeypatch):
    without_textual(monkeypatch)
    number = ok(project.top, "log")["checkpoints"][-1]["number"]
    status, told = typed(project.top, f"nothing\n#{number}\ny\n", "restore")
    assert status == 0, told
    plain = re.sub(r"\033\[[0-9;]*m", "", told)
    age = r"(just now|\d+ min ago)"
    assert re.search(rf"#\d+ +{age} +Write the documentation +\+1\n", plain)
    assert "Restore which number?" in told
    assert plain.index("Restore? The present") < plain.index(f"Restored #{number}")
    assert not (project.top / "DOCS.md").exists()


def test_restore_with_options_asks_in_a_list_and_enter_changes_nothing(project):
    write_files(project.top, {"a.py": b"broken\n"})
    status, told = typed(project.top, "\n", "restore", "--files")
    assert status == 1
    assert "nothing was changed" in told
    assert (project.top / "a.py").read_bytes() == b"broken\n"


def test_restore_opens_the_picker_at_a_terminal(project, monkeypatch):
    opened: list[object] = []
    monkeypatch.setattr("gitcp.cli.picker.run.run", opened.append)
    assert typed(project.top, "", "restore")[0] == 0
    assert typed(project.top, "", "ui")[0] == 0
    assert len(opened) == 2
    # A message without a question offers no choice.
    assert typed(project.top, "", "restore", "--dry-run")[0] == 2
    assert typed(project.top, "", "restore", "--yes")[0] == 2


@pytest.mark.parametrize(
    "words", [["--version"], ["log"], ["restore", "1", "-y"], ["ui"]]
)
def test_nothing_else_loads_textual(project, words):
    code = (
        "import sys\nfrom gitcp.cli import main\nmain(sys.argv[1:])\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "sys.exit(9 if loaded & {'textual', 'rich'} else 0)"
    )
    argv = [sys.executable, "-c", code, *words]
    done = subprocess.run(
        argv,
        cwd=project.top,
        env=gitcp_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done
