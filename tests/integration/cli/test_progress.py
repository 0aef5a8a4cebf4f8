"""What takes long says so at a terminal, and nothing of that is left there."""

from __future__ import annotations

import io
import re
import sys
from unittest import mock

import pytest

from gitcp.cli import progress_line
from gitcp.cli.progress_line import ProgressLine
from gitcp.worktree import one_step
from tests.support.gitrepo import write_files
from tests.support.inprocess import ok
from tests.support.terminal import Terminal, at_terminal, screen

FILES = {f"d/{number}": b"%d" % number for number in range(40)}
LINE = re.compile(r"\r([^\r\x1b]+)\x1b\[K")


@pytest.fixture
def impatient(monkeypatch):
    """Nothing is too short to be shown."""
    monkeypatch.setattr(progress_line, "SLOW", -1.0)
    monkeypatch.setattr(progress_line, "EVERY", -1.0)


@pytest.fixture
def saved(repo):
    write_files(repo, FILES)
    ok(repo, "save")
    write_files(repo, dict.fromkeys(FILES, b"other"))
    return repo


@pytest.mark.usefixtures("impatient")
def test_a_restore_shows_what_it_does_and_leaves_no_line(saved):
    status, _, shown = at_terminal(saved, "restore", "1", "--yes")
    assert status == 0
    doing = {line.split(":")[0] for line in LINE.findall(shown)}
    assert {"reading files", "reading the checkpoint", "writing files"} <= doing
    assert "writing files: 7 of 40" in shown
    assert screen(shown) == ""


@pytest.mark.usefixtures("impatient")
def test_a_save_shows_how_many_files_it_has_read(saved):
    status, out, shown = at_terminal(saved, "save")
    assert status == 0
    assert "reading files: 7 of 40" in shown
    assert screen(shown) == ""
    assert out.startswith("Saved ")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("option", ["-q", "--json"])
def test_quiet_and_json_show_none(saved, option):
    status, _, shown = at_terminal(saved, "restore", option, "1", "--yes")
    assert (status, shown) == (0, "")


def test_what_is_quick_shows_none(saved):
    assert at_terminal(saved, "save")[2] == ""


@pytest.mark.usefixtures("impatient")
def test_an_interrupt_names_the_ways_out_below_no_line(saved, monkeypatch):
    steps = iter(range(20))
    carry_out = one_step.carry_out

    def stopped(*args):
        if next(steps) == 10:
            raise KeyboardInterrupt
        return carry_out(*args)

    monkeypatch.setattr(one_step, "carry_out", stopped)
    status, _, shown = at_terminal(saved, "restore", "1", "--yes")
    assert status == 130
    assert "writing files: 10 of 40" in shown
    left = screen(shown)
    assert left.lstrip("\n").startswith("gitcp: interrupted\n")
    assert "`gitcp restore --continue` finishes it" in left
    monkeypatch.undo()
    ok(saved, "restore", "--continue")
    assert (saved / "d/39").read_bytes() == b"39"


@pytest.mark.usefixtures("impatient")
def test_a_line_is_not_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    err = Terminal(io.BytesIO(), encoding="utf-8")
    with mock.patch.object(sys, "stderr", err):
        line = ProgressLine()
        line.show("x" * 100)
        line.clear()
        line.clear()
        err.flush()
    raw = err.buffer
    assert isinstance(raw, io.BytesIO)
    assert raw.getvalue() == b"\r" + b"x" * 19 + b"\x1b[K" + b"\r\x1b[K"
