"""The rows of the picker: which there are, how they are moved through and found."""

from __future__ import annotations

import pytest

from tests.support.gitrepo import make_repo, run_gitcp
from tests.support.inprocess import ok
from tests.support.picked import Project
from tests.support.picker import drive


@pytest.fixture
def project(monkeypatch):
    return Project.make(monkeypatch)


def rows_of(picker):
    return [line.split("│")[0].strip() for line in picker.screen.splitlines()[1:-1]]


def test_rows_stand_under_their_conversations(project):
    async def steps(picker):
        rows = rows_of(picker)
        assert rows[0] == "(now)"
        at = rows.index('Claude Code · "Write the documentation"')
        assert "Write the documentation" in rows[at + 1]
        first = rows.index('Claude Code · "Write the module"')
        asked = ("Make it fast", "Add the tests", "Write the module")
        for text, row in zip(asked, rows[first + 1 :], strict=False):
            assert text in row
        assert rows[first + 1].endswith("~1")
        assert rows[first + 2].endswith("+1")

    assert drive(project.top, steps) is None


def test_keys_move_over_rows_and_never_stop_at_a_header(project):
    async def steps(picker):
        assert picker.selected == "(now)"
        seen = []
        for key in ("j", "down", "j", "k", "up", "G", "end", "g", "pagedown", "home"):
            await picker.press(key)
            seen.append(picker.selected)
        told = ("by hand", "fast", "tests", "fast", "by hand", "documentation")
        ends = ("documentation", "(now)", "documentation", "(now)")
        for row, text in zip(seen, (*told, *ends), strict=True):
            assert text in row

    drive(project.top, steps)


def test_brackets_go_from_conversation_to_conversation(project):
    async def steps(picker):
        seen = []
        for key in ("]", "]", "j", "]", "]", "[", "[", "["):
            await picker.press(key)
            seen.append(picker.selected)
        told = ("by hand", "fast", "tests", "documentation", "documentation")
        for row, text in zip(seen, (*told, "fast", "by hand", "(now)"), strict=True):
            assert text in row, seen

    drive(project.top, steps)


def test_rows_by_time_name_their_clients(project):
    async def steps(picker):
        await picker.press("t")
        await picker.shows("Claude Code Make it fast")
        texts = [
            row.split("ago")[-1].split("now")[-1].strip() for row in rows_of(picker)
        ]
        assert texts[1].startswith("by hand")
        assert texts[2].startswith("Claude Code Make it fast")
        assert texts[3].startswith("Claude Code Write the docume")
        await picker.press("t")
        await picker.shows('Claude Code · "Write the module"')

    drive(project.top, steps)


def test_forks_stand_below_their_conversation(project):
    number = ok(project.top, "log")["checkpoints"][1]["number"]
    ok(project.top, "fork", str(number), "other-way", "--yes")

    async def steps(picker):
        rows = rows_of(picker)
        at = rows.index("└ fork other-way")
        assert "main" in rows[at + 2]
        assert rows.index('Claude Code · "Write the module"') < at

    drive(project.top, steps)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("docu", ["Write the documentation"]),
        ("DOCS.md", ["Write the documentation"]),
        ("cents", ["by hand"]),
        ("done add", ["Add the tests"]),
        ("test_a.py", ["Add the tests"]),
        ("nowhere", []),
    ],
)
def test_words_find_prompts_paths_reasons_and_talk(project, words, left):
    async def steps(picker):
        await picker.type("/")
        await picker.type(words)
        found = picker.app.listing
        await picker.until(
            lambda: found.matches is not None and found.matches.whole, "all looked at"
        )
        await picker.press("enter")
        await picker.settled()
        rows = [row for row in rows_of(picker) if row.startswith("#")]
        assert len(rows) == len(left)
        for row, text in zip(rows, left, strict=True):
            assert text in row
        await picker.press("escape")
        await picker.settled()
        assert len([row for row in rows_of(picker) if row.startswith("#")]) == 5

    drive(project.top, steps)


def test_letters_are_taken_back_while_typing(project):
    async def steps(picker):
        await picker.type("/")
        await picker.type("docuq")
        await picker.shows("0 of 5 rows")
        await picker.press("backspace")
        await picker.shows("1 of 5 rows")
        await picker.press("escape")
        await picker.hides("1 of 5 rows")
        assert picker.app.look.words == ""

    drive(project.top, steps)


def test_what_is_saved_meanwhile_appears(project):
    async def steps(picker):
        await picker.press("j", "j")
        before = picker.selected
        project.agent.turn("Saved meanwhile", **{"b.py": "b\n"})
        await picker.shows("Saved meanwhile")
        await picker.settled()
        assert picker.selected == before

    drive(project.top, steps)


def test_the_mouse_selects_and_scrolls(project):
    async def steps(picker):
        at = next(
            at for at, row in enumerate(rows_of(picker)) if "Add the tests" in row
        )
        await picker.pilot.click("#left", offset=(5, at))
        assert "Add the tests" in picker.selected
        # A header, and nothing at all, cannot be selected.
        await picker.pilot.click("#left", offset=(5, 1))
        await picker.pilot.click("#left", offset=(5, 20))
        assert "Add the tests" in picker.selected
        await picker.pilot.click("#pane", offset=(5, 1))
        assert picker.app.in_pane

    drive(project.top, steps)


def test_a_label_and_a_failed_run_are_badges(project):
    ok(project.top, "label", "last", "green")
    assert run_gitcp(project.top, "run", "--", "false").returncode == 1

    async def steps(picker):
        assert "(green)" in picker.screen
        assert "✕ failed" in picker.screen

    drive(project.top, steps)


def test_a_project_without_checkpoints_says_how_to_make_one(tmp_path):
    top = make_repo(tmp_path / "project")

    async def steps(picker):
        await picker.shows("No checkpoints yet")
        await picker.press("j", "r", "escape", "d", "1", "2", "w", "enter", "escape")
        await picker.press("l", "c")

    assert drive(top, steps) is None


def test_one_checkpoint(tmp_path):
    top = make_repo(tmp_path / "project", {"a": b"a"})
    ok(top, "save", "-m", "the only one")

    async def steps(picker):
        await picker.press("j", "j", "j")
        assert "the only one" in picker.selected
        await picker.press("k", "k")
        assert picker.selected == "(now)"

    drive(top, steps)


@pytest.mark.parametrize(("failed", "badge"), [(False, "✓ tests"), (True, "✕ tests")])
def test_tests_that_were_run_are_a_badge(project, failed, badge):
    agent = project.agent
    agent.ask("Test it")
    given = {"command": "pytest -q"}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": given}
    answer = {"type": "tool_result", "tool_use_id": "t", "is_error": failed}
    agent.record("assistant", message={"role": "assistant", "content": [call]})
    agent.record("user", message={"role": "user", "content": [answer]})
    agent.answer("I ran them.")

    async def steps(picker):
        (row,) = [row for row in rows_of(picker) if "tests" in row and badge in row]
        assert "Test it" in row
        assert picker.screen.count(badge) == 1

    drive(project.top, steps)
