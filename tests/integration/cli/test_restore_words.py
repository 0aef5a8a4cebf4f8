"""What a restore says before its question and after it: the same things, counted alike."""

from __future__ import annotations

import shutil

import pytest

import gitcp
from gitcp.cli.emit import Output
from gitcp.errors import CorruptError
from gitcp.format.tree import Entry
from gitcp.store.checkpoint import Checkpoint
from tests.support.agent import Agent
from tests.support.gitrepo import git, write_files
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Agent(repo, tmp_path / "claude")


@pytest.fixture
def asked(monkeypatch):
    """Answers each question with yes, after what the test does meanwhile."""
    meanwhile: list = []
    questions: list[str] = []

    def confirm(self: Output, question: str, *, yes: bool, diff=None) -> None:
        del self, diff
        if not yes:
            questions.append(question)
            if meanwhile:
                meanwhile.pop(0)()

    monkeypatch.setattr(Output, "confirm", confirm)
    return meanwhile, questions


def test_question_answer_log_and_show_count_the_same_files(repo, agent, asked):
    write_files(repo, {f"docs/{n}.md": b"x" for n in range(12)} | {"src/vat.py": b"1"})
    first = agent.turn("add VAT")
    for number in range(12):
        (repo / f"docs/{number}.md").unlink()
    (repo / "docs").rmdir()
    write_files(repo, {"src/vat.py": b"2", "tests/t.py": b"t", "tools/x/run.py": b"r"})
    agent.turn("clean up")
    # Another conversation, on a branch of its own: the restore's parent is not what was there.
    other = Agent(repo, agent.transcript.parents[2])
    other.turn("write more", more="m")
    done = invoke(repo, "restore", f"#{first.number}")
    assert done.returncode == 0, done.stderr
    counts = "12 created, 1 overwritten, 3 deleted"
    assert f"{counts}; conversation of 2 messages" in done.stderr.decode()
    assert done.stdout.decode().startswith(
        f"Restored #{first.number} {first.id}: {counts}; conversation of 2 messages\n"
    )
    listed = ok(repo, "log", "-n", "1")["checkpoints"][0]
    assert listed["changed"] == {"added": 12, "modified": 1, "deleted": 3}
    assert b"\nFiles (16 changed)\n" in invoke(repo, "show").stdout


def test_only_folders_and_only_a_conversation_are_told_as_such(repo, agent, asked):
    first = agent.turn("one")
    (repo / "empty").mkdir()
    ok(repo, "save")
    done = invoke(repo, "restore", first.id, "--files")
    assert (
        f"Restored #{first.number} {first.id}: 1 empty folder\n" in done.stdout.decode()
    )
    done = invoke(repo, "restore", first.id, "--conversation")
    assert f"{first.id}: conversation of 2 messages\n" in done.stdout.decode()


def test_a_file_that_appears_while_the_question_is_open_is_asked_about(repo, asked):
    meanwhile, questions = asked
    ok(repo, "save", "--allow-empty")
    write_files(repo, {"new": b"1"})
    meanwhile.append(
        lambda: write_files(repo, {"stray/file": b"precious", "new": b"2"})
    )
    meanwhile.append((repo / "new").unlink)
    done = invoke(repo, "restore", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stderr.decode().splitlines()
    at = lines.index("Files have changed since the plan was shown.")
    assert lines[at + 1 : at + 3] == [
        "The restore would now also:",
        "  delete    stray/ (1 file)",
    ]
    assert "2 deleted" in lines[at + 3]
    assert "It would no longer:" in lines
    assert len(questions) == 3
    assert ": 1 deleted\n" in done.stdout.decode()
    assert not (repo / "stray").exists()
    ok(repo, "undo", "--yes")
    assert (repo / "stray/file").read_bytes() == b"precious"


def test_no_is_still_no_when_it_asks_again(repo, asked):
    from gitcp.errors import NothingToDoError

    meanwhile, questions = asked
    ok(repo, "save", "--allow-empty")
    write_files(repo, {"new": b"1"})

    def refuse() -> None:
        raise NothingToDoError("nothing was changed")

    meanwhile += [lambda: write_files(repo, {"stray": b"precious"}), refuse]
    done = invoke(repo, "restore", "1")
    assert done.returncode == 1
    assert len(questions) == 2
    assert (repo / "stray").read_bytes() == b"precious"
    assert (repo / "new").read_bytes() == b"1"
    # Nothing was saved, either.
    assert len(ok(repo, "log", "--full")["checkpoints"]) == 1


def dry_run(repo, *args: str) -> list[str]:
    done = invoke(repo, "restore", "--dry-run", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_an_open_client_is_named_before_the_question_and_after_the_restore(
    repo, agent, asked
):
    first = agent.turn("add VAT", vat="1")
    other = Agent(repo, agent.transcript.parents[2])
    other.turn("add a discount", off="1")
    agent.hook("SessionEnd", reason="other")
    done = invoke(repo, "restore", first.id)
    name = 'Claude Code · "add a discount" is still open here'
    plan = done.stderr.decode().split("just now)")[0]
    assert (
        f"  {name}. Close it first: it does not notice that its files change\n" in plan
    )
    assert f"  {name}: close it. If it continues, gitcp tells it of the restore\n" in (
        done.stderr.decode()
    )
    # Another that was closed is not open, and no id is told that no list has.
    assert '"add VAT" is still open' not in done.stderr.decode()
    assert other.ident[:8] not in done.stderr.decode()
    headers = invoke(repo, "log").stdout.decode()
    assert 'Claude Code · "add a discount" ·' in headers


def test_a_client_whose_branch_was_taken_over_is_told_so(repo, agent):
    first = agent.turn("add VAT", vat="1")
    agent.turn("more", vat="2")
    done = invoke(repo, "restore", "-y", first.id)
    assert "tells it of the restore, and its further work becomes a new branch\n" in (
        done.stderr.decode()
    )


def test_other_sessions_are_named_in_a_sentence_where_their_files_go_back(repo, agent):
    first = agent.turn("add VAT", vat="1")
    other = Agent(repo, agent.transcript.parents[2])
    theirs = other.turn("add a discount", off="1")
    assert theirs is not None
    said = (
        f'  #{theirs.number} "add a discount" was made here later, in another session.'
        " Its changes to these files are taken back, too; it still has them"
    )
    assert said in dry_run(repo, first.id)
    # One in which nothing was changed has nothing to lose.
    Agent(repo, agent.transcript.parents[2]).turn("what is VAT?")
    (line,) = [line for line in dry_run(repo, first.id) if "here later" in line]
    assert line == said
    # What they did does not go back where their files stay.
    (repo / "vat").write_text("2")
    assert not [line for line in dry_run(repo, first.id, "vat") if "here later" in line]
    assert said in dry_run(repo, first.id, "off")


def test_results_name_checkpoints_by_number(repo):
    ok(repo, "save", "-m", "one", "--allow-empty")
    write_files(repo, {"new": b"1"})
    told = invoke(repo, "restore", "-y", "1").stdout.decode()
    assert "  restored #1\n" in told
    assert "At #3 restored #1 (just now)" in invoke(repo, "status").stdout.decode()
    assert '#3 "restored #1" (just now)' in "\n".join(dry_run(repo, "3"))
    told = invoke(repo, "undo", "-y").stdout.decode()
    assert "  undid a restore: back to #2\n" in told


def test_undo_names_what_was_saved_since_the_restore_and_not_the_restore(
    repo, agent, asked
):
    (repo / "vat").write_text("0")
    first = agent.turn("add VAT", vat="1")
    second = agent.turn("a discount", vat="2", off="1")
    ok(repo, "restore", "-y", first.id)
    undone = invoke(repo, "undo", "--dry-run").stdout.decode()
    assert "after that restore" not in undone
    # The client that is still open goes on, in the session that the undo goes back to.
    later = agent.turn("it is off by a cent", vat="3")
    undone = invoke(repo, "undo", "--dry-run").stdout.decode()
    assert (
        f'  #{later.number} "it is off by a cent" was made here after that'
        " restore. Its changes to these files are taken back, too; it still has them\n"
    ) in undone
    told = invoke(repo, "undo", "-y").stdout.decode()
    assert "  a second `gitcp undo` redoes the restore\n" in told
    assert (repo / "vat").read_text() == "2"
    assert second.id


def test_a_restore_says_that_git_stayed_where_that_shows(repo):
    stayed = b"  git's HEAD, branch and index are unchanged; see `git status`\n"
    ok(repo, "save", "-m", "as in HEAD", "--allow-empty")
    write_files(repo, {"README.md": b"changed", "new": b"1"})
    ok(repo, "save")
    # What differs is what was there before the restore.
    assert stayed not in invoke(repo, "restore", "-y", "1").stdout
    assert stayed in invoke(repo, "restore", "-y", "2").stdout
    assert stayed not in invoke(repo, "restore", "-y", "2").stdout


def test_of_many_open_clients_some_are_named(repo, agent):
    first = agent.turn("add VAT", vat="1")
    for number in range(4):
        Agent(repo, agent.transcript.parents[2]).turn(f"more {number}", vat=str(number))
    lines = dry_run(repo, first.id)
    assert sum("is still open here" in line for line in lines) == 3
    assert "  2 more may be open: `gitcp status -v`" in lines
    told = invoke(repo, "restore", "-y", first.id).stderr.decode()
    assert told.count("is still open here") == 3


def test_damage_beside_a_restore_fails_neither_its_plan_nor_its_report(
    repo, agent, monkeypatch
):
    first = agent.turn("add VAT", vat="1")
    other = Agent(repo, agent.transcript.parents[2])
    theirs = other.turn("add a discount", off="1")
    assert theirs is not None
    entry = Checkpoint.entry

    def damaged(self: Checkpoint, path: bytes) -> Entry | None:
        if self.id == theirs.id:
            raise CorruptError("its tree is gone")
        return entry(self, path)

    monkeypatch.setattr(Checkpoint, "entry", damaged)
    assert not [line for line in dry_run(repo, first.id) if "Since" in line]
    head = git(repo, "rev-parse", "HEAD").decode().strip()
    (repo / ".git/objects" / head[:2] / head[2:]).unlink()
    assert (repo / "off").exists()
    done = invoke(repo, "restore", "-y", first.id, "off")
    assert done.returncode == 0, done.stderr
    assert not (repo / "off").exists()


def test_a_restore_of_a_part_says_of_which(repo):
    (repo / "a.py").write_text("1\n")
    (repo / "b.py").write_text("1\n")
    ok(repo, "save", "-m", "one")
    (repo / "a.py").write_text("2\n")
    (repo / "b.py").unlink()
    ok(repo, "save", "-m", "two")
    ok(repo, "restore", "1", "a.py", "-y")
    assert "restored a.py of #1" in invoke(repo, "log").stdout.decode()
    (repo / "a.py").write_text("3\n")
    ok(repo, "restore", "1", "a.py", "b.py", "-y")
    assert "restored a.py and 1 more of #1" in invoke(repo, "log").stdout.decode()
    error = fails(repo, 13, "restore", "2", "missing.py")
    assert "missing.py exists neither here nor in #2" in error


def test_with_yes_a_restore_is_one_that_undo_takes_back(repo):
    """Else a script's undo would take back an earlier one."""
    ok(repo, "save", "-m", "one")
    assert ok(repo, "restore", "1", "--yes")["checkpoint"]["number"] == 2
    assert ok(repo, "undo", "--yes")["checkpoint"]["number"] == 3


def test_a_terminal_is_told_that_there_is_nothing_to_do(repo, asked):
    ok(repo, "save", "-m", "one")
    done = invoke(repo, "restore", "last")
    assert done.stdout == b"Nothing to do: this is the present state.\n"
    assert asked[1] == []


def test_steps_that_a_restore_rewinds_are_something_to_do(repo, asked):
    run = gitcp.open(repo).session("job")
    run.save(note="start")
    run.step("count", lambda: 1, effect="none")
    done = invoke(repo, "restore", "last")
    assert done.returncode == 0, done.stderr
    assert b"Nothing to do" not in done.stdout
    assert len(asked[1]) == 1


def test_a_fork_where_nothing_changed_is_a_fork(repo):
    ok(repo, "save", "-m", "one")
    (repo / "new").write_text("n")
    ok(repo, "save", "-m", "two")
    (repo / "new").unlink()
    # Forked from the newest of the timeline, to which the files do not belong.
    made = ok(repo, "fork", "2", "way", "--yes")["checkpoint"]
    assert (made["branch"], (repo / "new").read_text()) == ("way", "n")
    assert b"forked from #2" in invoke(repo, "branches").stdout
    assert b"forked from #2" in invoke(repo, "sessions").stdout


def test_a_fork_is_not_named_like_a_checkpoint(repo):
    ok(repo, "save", "-m", "one")
    assert "gitcp fork 1 NAME" in fails(repo, 2, "fork", "1")


@pytest.mark.parametrize("command", [["log"], ["search", "one"]])
def test_an_agent_that_is_not_known_is_told_from_one_without_turns(repo, command):
    ok(repo, "save", "-m", "one")
    said = invoke(repo, *command, "--agent", "claude").stderr.decode()
    assert "claude: claude-code, cline, codex, copilot, cursor, droid, " in said
    assert (
        "claude-code," not in invoke(repo, *command, "--agent", "codex").stderr.decode()
    )


def test_what_was_sealed_by_a_key_that_is_gone_says_so(repo):
    ok(repo, "save", "-m", "one")
    assert b"sealed" not in invoke(repo, "show").stdout
    shutil.rmtree(repo / ".git" / "gitcp")
    assert b"not sealed with this repository's key" in invoke(repo, "show").stdout
