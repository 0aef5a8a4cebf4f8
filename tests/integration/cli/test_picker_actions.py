"""What the picker does: restore, undo, fork, label, copy; by the functions of the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitcp.agents import bindings
from gitcp.agents.bindings import Binding
from gitcp.checkpoints.selectors import select
from gitcp.cli.emit import Output
from gitcp.cli.picker.choice import Choice
from gitcp.cli.picker.performing import perform
from gitcp.errors import BusyError, GitcpError, PartialError, StorageError
from gitcp.project.workspace import open_workspace
from tests.support.agent import Agent
from tests.support.clones import clone, make_hub
from tests.support.gitrepo import git, tree_bytes, write_files
from tests.support.inprocess import invoke, ok
from tests.support.picked import Project
from tests.support.picker import drive


@pytest.fixture
def project(monkeypatch):
    made = Project.make(monkeypatch)
    monkeypatch.chdir(made.top)
    return made


def at(project):
    """What an Output knows of the project."""
    out = Output()
    out.directory = str(project.top)
    return out


def chosen(project, steps, **how) -> Choice:
    """What was chosen."""
    choice = drive(project.top, steps, **how)
    assert choice is not None
    return choice


def handed_by(project, choice) -> Any:
    """How the conversation goes on once it was done."""
    return perform(at(project), choice)


def carried(project, steps, **how) -> Any:
    """The same, of what was chosen."""
    return handed_by(project, chosen(project, steps, **how))


def numbers(project):
    return [one["number"] for one in ok(project.top, "log")["checkpoints"]]


def test_r_shows_what_a_dry_run_prints_and_only_y_does_it(project, capsys):
    number = numbers(project)[3]
    dry = invoke(project.top, "restore", str(number), "--dry-run").stdout.decode()
    before = tree_bytes(project.top)

    async def steps(picker):
        await picker.press("j", "j", "j", "r")
        await picker.shows("Restore? The present state is saved first.")
        told = " ".join(picker.screen.split())
        for line in dry.splitlines():
            assert " ".join(line.split()) in told
        await picker.press("enter")
        await picker.shows("Enter does not")
        await picker.press("escape", "escape")
        await picker.shows("(now)")
        await picker.plan()
        await picker.press("q")
        await picker.shows("(now)")
        await picker.plan()
        assert tree_bytes(project.top) == before
        await picker.press("y")

    choice = chosen(project, steps)
    assert tree_bytes(project.top) == before
    handed = handed_by(project, choice)
    assert handed.resumption.agent == "claude-code"
    told = capsys.readouterr().out
    assert f"Restored #{number}" in told
    assert "claude --resume" in told
    assert not (project.top / "DOCS.md").exists()
    ok(project.top, "undo", "--yes")
    assert tree_bytes(project.top) == before


@pytest.mark.parametrize(("key", "parts"), [("f", "files"), ("t", "conversation")])
def test_files_or_conversation_alone(project, key, parts, capsys):
    before = tree_bytes(project.top)

    async def steps(picker):
        await picker.plan("G")
        await picker.press(key)
        await picker.until(lambda: picker.app.doing.plan.wanted.parts == parts)
        await picker.press("b")
        await picker.until(lambda: picker.app.doing.plan.wanted.parts == "both")
        await picker.press(key)
        await picker.until(lambda: picker.app.doing.plan.wanted.parts == parts)
        await picker.press("y")

    handed = carried(project, steps)
    capsys.readouterr()
    assert (handed.resumption is None) == (parts == "files")
    assert (tree_bytes(project.top) == before) == (parts == "conversation")


def test_going_back_three_turns_and_resuming_takes_eight_keys(project, capsys):
    pressed = []

    async def steps(picker):
        for key in ("j", "j", "j", "r", "y"):
            if key == "y":
                await picker.shows("Restore?")
            pressed.append(key)
            await picker.press(key)

    handed = carried(project, steps)
    # And Enter: "Resume Claude Code here? [Y/n]".
    assert handed.resumption is not None
    assert len(pressed) + 1 <= 8
    assert "Restored #" in capsys.readouterr().out


def test_where_nothing_is_to_be_done_y_does_nothing(project):
    async def steps(picker):
        await picker.press("j", "r")
        await picker.shows("Nothing to do: this is the present state.")
        await picker.press("y")
        await picker.press("escape")
        await picker.shows("(now)")
        await picker.press("g", "r")
        await picker.shows("this is the present state")

    assert drive(project.top, steps) is None


def test_one_file_comes_back_alone(project, capsys):
    write_files(project.top, {"a.py": b"broken\n", "test_a.py": b"broken\n"})

    async def steps(picker):
        await picker.press("j", "j", "w")
        await picker.shows("+broken")
        await picker.press("tab", "g")
        await picker.press("r")
        await picker.shows("put the cursor on a file")
        await picker.go_to("a.py")
        await picker.plan()
        await picker.press("f", "y")

    choice = chosen(project, steps, size=(120, 90))
    assert choice.returns
    perform(at(project), choice)
    capsys.readouterr()
    assert b"ONE 2" in (project.top / "a.py").read_bytes()
    assert (project.top / "test_a.py").read_bytes() == b"broken\n"


def test_one_hunk_comes_back_and_the_rest_of_the_file_stays(project, capsys):
    now = (project.top / "a.py").read_bytes()
    now = now.replace(b"ONE 2\n", b"broken\n").replace(b"ONE 28\n", b"mine\n")
    write_files(project.top, {"a.py": now})

    async def steps(picker):
        await picker.press("j", "j")
        await picker.shows("+ONE 2")
        await picker.press("tab", "g")
        await picker.press("h")
        await picker.shows("put the cursor on changed lines first")
        await picker.go_to("+ONE 2")
        await picker.press("h")
        await picker.shows("press w")
        await picker.press("w")
        await picker.shows("+broken")
        await picker.go_to("+broken")
        await picker.press("h")
        await picker.shows("Only these lines of this file:")
        await picker.shows("-broken")
        assert "mine" not in picker.screen
        await picker.press("y")

    carried(project, steps, size=(120, 90))
    back = now.replace(b"broken\n", b"ONE 2\n")
    assert (project.top / "a.py").read_bytes() == back
    assert "1 overwritten" in capsys.readouterr().out
    ok(project.top, "verify")
    ok(project.top, "undo", "--yes")
    assert (project.top / "a.py").read_bytes() == now


def test_a_hunk_comes_back_where_nothing_has_changed_since_the_last_save(
    project, capsys
):
    async def steps(picker):
        await picker.press("j", "j", "j", "w")
        await picker.shows("+ONE 2")
        await picker.press("tab", "g")
        await picker.go_to("+ONE 2")
        await picker.press("h")
        await picker.shows("Only these lines of this file:")
        await picker.press("y")

    carried(project, steps, size=(120, 90))
    capsys.readouterr()
    now = (project.top / "a.py").read_bytes()
    assert b"\none 2\n" in now
    assert b"\nONE 28\n" in now


def test_a_hunk_of_a_file_that_has_changed_is_refused(project):
    write_files(project.top, {"a.py": b"broken\n"})

    async def steps(picker):
        await picker.press("j", "j", "w")
        await picker.shows("+broken")
        await picker.press("tab", "g")
        await picker.go_to("+broken")
        write_files(project.top, {"a.py": b"other\n"})
        await picker.press("h")
        await picker.shows("a.py changed after its lines were shown")

    drive(project.top, steps, size=(120, 90))


def test_u_undoes_the_last_restore_and_again(project, capsys):
    before = tree_bytes(project.top)

    async def nothing(picker):
        await picker.settled()
        await picker.press("u")
        await picker.shows("there is no restore to undo in this work tree")

    drive(project.top, nothing)
    ok(project.top, "restore", str(numbers(project)[-1]), "--yes")
    restored = tree_bytes(project.top)

    async def steps(picker):
        await picker.press("u")
        await picker.shows("Restore?")
        await picker.press("y")

    for state in (before, restored):
        carried(project, steps)
        assert tree_bytes(project.top) == state
    capsys.readouterr()


def test_fork_takes_a_name_and_shows_its_plan(project, capsys):
    async def steps(picker):
        await picker.press("G")
        await picker.type("F")
        await picker.shows("fork as:")
        await picker.type("-a")
        await picker.press("enter")
        await picker.hides("fork as:")
        assert not picker.app.doing.shown
        await picker.answer("F", "other-way")
        await picker.shows("Fork other-way from #5? The present state is saved first.")
        await picker.press("y")

    carried(project, steps)
    capsys.readouterr()
    branches = ok(project.top, "sessions")["sessions"]
    names = {one["name"] for each in branches for one in each["branches"]}
    assert "other-way" in names
    assert b"ONE 2" not in (project.top / "a.py").read_bytes()


def test_fork_at_what_is_there_leaves_the_files(project, capsys):
    before = tree_bytes(project.top)

    async def steps(picker):
        await picker.answer("F", "here")
        await picker.shows("Fork here from #8?")
        await picker.press("y")

    carried(project, steps)
    assert "Forked #" in capsys.readouterr().out
    assert tree_bytes(project.top) == before


def test_fork_into_a_work_tree_leaves_this_one_alone(project, capsys, tmp_path):
    before = tree_bytes(project.top)

    async def steps(picker):
        await picker.press("j", "j")
        await picker.answer("W", "apart")
        await picker.shows("work tree in: ../apart")
        await picker.press("enter")

    carried(project, steps)
    assert "its files are in ../apart" in capsys.readouterr().out
    assert tree_bytes(project.top) == before
    assert b"ONE 2" in (project.top.parent / "apart" / "a.py").read_bytes()


def test_a_label_is_given_and_taken(project):
    async def steps(picker):
        await picker.press("j", "j")
        await picker.answer("l", "green")
        await picker.shows("(green)")
        await picker.settled()
        await picker.type("l")
        await picker.shows("label: green")
        await picker.press("ctrl+u", "enter")
        await picker.shows("label removed")
        await picker.hides("(green)")
        await picker.answer("l", "12")
        await picker.shows("could not be selected")

    drive(project.top, steps)


def test_c_copies_the_command_of_the_client_where_it_has_the_talk(project):
    copied: list[str] = []

    async def steps(picker):
        picker.app.copy_to_clipboard = copied.append
        await picker.press("j", "j", "c")
        await picker.shows("copied: ")
        await picker.press("j", "c")
        await picker.until(lambda: len(copied) == 2)
        await picker.press("g", "j", "c")
        await picker.shows("this checkpoint has no client's conversation")

    drive(project.top, steps, size=(200, 40))
    number = numbers(project)[3]
    assert copied[0].endswith(f"claude --resume {project.agent.ident}")
    assert copied[1].endswith(f"gitcp restore {number} --conversation")


def test_what_changed_since_the_plan_was_shown_is_asked_again(project, monkeypatch):
    async def steps(picker):
        await picker.plan("j", "j", "j")
        await picker.press("y")

    choice = chosen(project, steps)
    before = tree_bytes(project.top)
    write_files(project.top, {"README.md": b"edited meanwhile\n"})
    asked = []

    def confirm(self, question, *, yes, diff=None):
        asked.append(question)
        raise GitcpError("no")

    monkeypatch.setattr(Output, "confirm", confirm)
    with pytest.raises(GitcpError):
        perform(at(project), choice)
    assert asked == ["Restore?"]
    assert tree_bytes(project.top) == {**before, **tree_bytes(project.top)}


def test_a_restore_that_fails_half_way_names_both_ways_out(project, monkeypatch):
    from gitcp.checkpoints import finish_restore

    async def steps(picker):
        await picker.plan("j", "j", "j")
        await picker.press("y")

    choice = chosen(project, steps)
    before = tree_bytes(project.top)

    def full(*_, **__):
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(finish_restore, "_apply", full)
        with pytest.raises(StorageError) as failed:
            perform(at(project), choice)
    assert "gitcp restore --continue" in str(failed.value.hint)
    assert "gitcp restore --abort" in str(failed.value.hint)
    ok(project.top, "restore", "--abort")
    assert tree_bytes(project.top) == before


def test_an_interrupted_restore_is_told_and_nothing_else_begins(project, monkeypatch):
    from gitcp.checkpoints import finish_restore

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(finish_restore, "_apply", stopped)
        done = invoke(project.top, "restore", str(numbers(project)[-1]), "--yes")
    assert done.returncode == 130

    async def steps(picker):
        await picker.press("j", "j", "r")
        await picker.shows("gitcp restore --continue")
        await picker.press("u")
        await picker.shows("gitcp restore --abort")

    assert drive(project.top, steps, size=(200, 40)) is None


def test_a_state_that_is_pruned_while_it_is_selected(project):
    async def steps(picker):
        while "Write the module" not in picker.selected:
            await picker.press("j")
        ok(project.top, "prune", "--keep-last", "1", "--yes")
        await picker.press("r")
        await picker.shows("pruned")
        await picker.press("escape")
        await picker.hides("  Write the module")

    drive(project.top, steps, size=(200, 40))


def test_q_and_ctrl_c_leave_at_each_place(project):
    before = tree_bytes(project.top)
    for keys in ((), ("r",), ("slash", "a"), ("question_mark",), ("j", "r"), ("tab",)):

        async def steps(picker, keys=keys):
            await picker.settled()
            await picker.press(*keys, "ctrl+c")
            await picker.until(lambda: not picker.app.is_running or picker.app._exit)
            assert picker.app.interrupted

        assert drive(project.top, steps) is None
    assert tree_bytes(project.top) == before


def test_e_writes_the_page_of_the_session(project, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def steps(picker):
        await picker.press("j", "j", "e")

    choice = chosen(project, steps)
    assert choice.returns
    perform(at(project), choice)
    written = Path(capsys.readouterr().out.splitlines()[0])
    assert written.parent == tmp_path
    assert written.read_bytes().startswith(b"<!doctype html>")


def pulled(tmp_path, monkeypatch):
    """A clone that pulled a session of another one, with a file that tools execute."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    config = tmp_path / "home" / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    hub = make_hub(tmp_path)
    theirs, ours = clone(hub, "theirs"), clone(hub, "ours")
    (theirs / ".envrc").write_text("run me\n")
    Agent(theirs, config).turn("Theirs", **{"theirs.py": "x\n"})
    ok(theirs, "push")
    ok(ours, "pull")
    return ours


def test_what_is_foreign_is_marked_and_held_back_without_trust(
    tmp_path, monkeypatch, capsys
):
    ours = pulled(tmp_path, monkeypatch)
    session = ok(ours, "sessions")["sessions"][0]["name"]
    ok(ours, "switch", session)
    monkeypatch.setattr(
        "gitcp.cli.asking.ask_about_withheld", lambda _, plan: plan.request
    )
    # As if a client here had continued it.
    workspace = open_workspace(ours)
    held = select(workspace, "last").manifest.conversation
    assert held is not None
    assert held.agent_session is not None
    binding = Binding(held.kind, held.agent_session, session, "main")
    bindings.keep(workspace, binding)
    copied: list[str] = []

    async def steps(picker):
        picker.app.copy_to_clipboard = copied.append
        assert "<origin>" in picker.screen
        await picker.press("j", "c")
        await picker.until(lambda: copied)
        await picker.press("r")
        await picker.shows("not made here")
        await picker.shows("held   .envrc")
        await picker.type("T")
        await picker.hides("held   .envrc")
        await picker.type("T")
        await picker.shows("held   .envrc")
        await picker.press("y")

    choice = drive(ours, steps, size=(160, 40))
    assert choice is not None
    assert copied[0].endswith("--conversation")
    assert "claude" not in copied[0].split("&&")[1]
    out = Output()
    out.directory = str(ours)
    with pytest.raises(PartialError):
        perform(out, choice)
    told = capsys.readouterr()
    assert "claude --resume" not in told.out
    assert (ours / "theirs.py").exists()
    assert not (ours / ".envrc").exists()


def test_a_work_tree_that_is_locked_is_told(project, monkeypatch):
    monkeypatch.setenv("GITCP_LOCK_TIMEOUT", "0.1s")
    git(project.top, "config", "gitcp.lockTimeout", "1")
    choice = None

    async def steps(picker):
        await picker.plan("j", "j", "j")
        await picker.press("y")

    choice = chosen(project, steps)
    before = tree_bytes(project.top)
    with open_workspace(project.top).locked(), pytest.raises(BusyError):
        perform(at(project), choice)
    assert tree_bytes(project.top) == before


def test_what_is_typed_fast_is_processed_in_order(project):
    async def steps(picker):
        await picker.press("j")
        await picker.press_at_once(
            *("l", "g", "o", "space", "o", "x", "backspace", "n", "e", "enter")
        )
        await picker.shows("labelled go one")

    drive(project.top, steps)
