"""The right side of the picker: changes, talk, reasons, what was not captured."""

from __future__ import annotations

import threading

import pytest

from gitcp.cli.picker import bars
from gitcp.cli.picker.views import CHANGES, TABS
from tests.support.forge import Forge, trailers
from tests.support.gitrepo import make_repo, write_files
from tests.support.inprocess import ok
from tests.support.picked import Project
from tests.support.picker import drive


@pytest.fixture
def project(monkeypatch):
    return Project.make(monkeypatch)


def test_changes_are_those_of_the_turn(project):
    async def steps(picker):
        await picker.press("j", "j")
        await picker.shows("1 file changed since the turn before")
        assert "> Make it fast" in picker.screen
        assert "M a.py  +2 -2" in picker.screen
        await picker.shows("+ONE 2")

    drive(project.top, steps, size=(120, 50))


def test_w_compares_with_what_is_there_now(project):
    write_files(project.top, {"a.py": b"broken\n"})

    async def steps(picker):
        assert "now, against #" in picker.screen
        await picker.press("j", "j", "w")
        await picker.shows("+broken")
        await picker.press("w")
        await picker.shows("1 file changed since the turn before")
        await picker.hides("+broken")

    drive(project.top, steps, size=(120, 90))


def test_w_says_what_is_compared_before_it_is(project):
    done = threading.Event()

    def busy(_):
        done.wait()
        yield None

    async def steps(picker):
        await picker.press("j")
        await picker.settled()
        jobs = picker.app.heavy
        jobs.ask("busy", busy, lambda _: None, failed=lambda _: None, rank=0)
        try:
            await picker.press("w")
            assert " 1 against now " in picker.screen
            await picker.press("w")
            assert " 1 changes " in picker.screen
        finally:
            done.set()

    drive(project.top, steps)


@pytest.mark.parametrize("room", [78, 42, 34])
def test_the_tabs_fit_into_their_line(room):
    for tab in TABS:
        shown = "".join(part.text for part in bars.tabs(tab, room, now=True))
        assert len(shown) <= room
        assert ("against now" if tab == CHANGES else tab) in shown


def test_talk_shows_prompts_and_answers_and_folds_tools(project):
    call = {
        "type": "tool_use",
        "id": "t",
        "name": "Edit",
        "input": {"file_path": "a.py"},
    }
    project.agent.ask("Use a tool")
    project.agent.record(
        "assistant", uuid="u", message={"role": "assistant", "content": [call]}
    )
    project.agent.answer("It is done")

    async def steps(picker):
        await picker.press("j", "2")
        await picker.shows("> Use a tool")
        assert "It is done" in picker.screen
        assert "* 1 tool call" in picker.screen
        await picker.press("f")
        await picker.shows("* Edit a.py")
        await picker.press("f")
        await picker.hides("* Edit a.py")
        await picker.press("tab", "g")
        await picker.shows("> Write the module")
        await picker.press("1", "f")
        assert "tool calls are shown" in picker.screen
        await picker.press("2")
        await picker.shows("* Edit a.py")

    drive(project.top, steps)


def test_reasons_are_the_newest_first(project):
    ok(project.top, "save", "-m", "more", "--tried", "floats", "--fact", "later")

    async def steps(picker):
        await picker.press("3")
        await picker.shows("because cents are lost")
        text = picker.screen
        assert text.index("later") < text.index("tried")
        assert text.index("tried") < text.index("Decimal, not float")
        await picker.press("j", "j")
        await picker.hides("floats")

    drive(project.top, steps)


def test_what_was_not_captured_has_its_reason(tmp_path):
    top = make_repo(tmp_path / "project", {"a": b"a"})
    ok(top, "config", "maxFileSize", "10k")
    write_files(top, {"large.bin": b"x" * 20_000})
    ok(top, "save")

    async def steps(picker):
        await picker.press("4")
        await picker.shows("large.bin")

    drive(top, steps)


def test_arrows_and_digits_show_the_tabs(project):
    async def steps(picker):
        await picker.press("right")
        assert picker.app.look.tab == "talk"
        await picker.press("left", "left")
        assert picker.app.look.tab == "not captured"
        await picker.press("1")
        assert picker.app.look.tab == "changes"

    drive(project.top, steps)


def test_two_marked_rows_are_compared_the_older_one_first(project):
    async def steps(picker):
        await picker.press("d")
        await picker.shows("mark two rows")
        await picker.press("j", "j", "space", "j", "space", "d")
        await picker.shows("files differ")
        await picker.shows("+# A")
        assert "A DOCS.md" in picker.screen
        assert "M a.py" in picker.screen
        await picker.press("escape")
        await picker.hides("files differ")
        await picker.press("escape")
        assert not picker.app.rows.marked

    drive(project.top, steps, size=(120, 90))


def test_enter_goes_into_the_page_and_to_the_lines_of_a_file(project):
    async def steps(picker):
        await picker.press("j", "j")
        await picker.shows("@@ ")
        await picker.press("enter", "g")
        assert picker.app.in_pane
        while "a.py" not in picker.app.pane.line.text:
            await picker.press("j")
        await picker.press("enter")
        assert picker.app.pane.line.text.startswith("@@")
        await picker.press("escape")
        assert not picker.app.in_pane

    drive(project.top, steps)


def test_of_many_files_one_is_compared_at_a_time(tmp_path):
    top = make_repo(tmp_path / "project")
    write_files(top, {f"f{number:03}": b"old\n" for number in range(150)})
    ok(top, "save", "-m", "old")
    write_files(top, {f"f{number:03}": b"new\n" for number in range(150)})
    ok(top, "save", "-m", "new")

    async def steps(picker):
        await picker.press("j")
        await picker.shows("Enter shows the lines of a file")
        assert "+new" not in picker.screen
        await picker.press("tab", "g")
        while picker.app.pane.line.place is None:
            await picker.press("j")
        await picker.press("enter")
        await picker.shows("+new")
        assert "f001" not in picker.screen
        await picker.press("escape")
        await picker.shows("f001")

    drive(top, steps)


HOSTILE = "[bold]x[/] [/] \x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u202c \u200b日本語"


def test_what_strangers_write_is_inert_and_aligned(monkeypatch):
    project = Project.make(monkeypatch)
    project.agent.turn(
        HOSTILE, **{"bad\nname\x1b[31m.txt": f"{HOSTILE}\n", "日本.txt": "x\n"}
    )
    ok(
        project.top,
        "save",
        "-m",
        HOSTILE,
        "--decision",
        HOSTILE,
        "--label",
        "[red]l[/]",
    )

    async def steps(picker):
        for key in ("j", "1", "j", "1", "2", "3", "4", "w", "slash", "escape", "t"):
            await picker.press(key)
            await picker.settled()
            text = picker.screen
            assert "[bold]x[/]" in text
            assert all(char.isprintable() or char == "\n" for char in text)
            assert "\u202e" not in text
            edges = {line.find("│") for line in text.splitlines()[1:-1]}
            from wcwidth import wcswidth

            columns = {wcswidth(line.split("│")[0]) for line in text.splitlines()[1:-1]}
            assert len(columns) == 1, edges

    drive(project.top, steps)


def test_a_strangers_label_is_one_line_when_it_is_changed(tmp_path):
    top = make_repo(tmp_path / "repo", {"a.py": b"1\n"})
    forge = Forge()
    message = trailers("main") + b"Gitcp-Label: a%0arestored\n"
    tip = forge.checkpoint(session="main", label="a\nrestored", message=message)
    forge.into(top / ".git", {"refs/gitcp/s/main/main": tip})

    async def steps(picker):
        await picker.press("j", "l")
        await picker.shows(r"label: a\nrestored")

    drive(top, steps)


@pytest.mark.parametrize("size", [(40, 10), (80, 24), (200, 50), (20, 5)])
def test_every_size_has_room(project, size):
    async def steps(picker):
        for key in ("j", "j", "tab", "j", "tab", "2", "question_mark", "escape"):
            await picker.press(key)
        await picker.settled()
        lines = picker.screen.splitlines()
        assert len(lines) <= size[1]
        assert all(len(line) <= size[0] for line in lines)
        await picker.pilot.resize_terminal(100, 30)
        await picker.settled()
        await picker.shows("(now)")
        await picker.pilot.resize_terminal(*size)
        await picker.settled()

    drive(project.top, steps, size=size)
