"""`gitcp why`: the turn that wrote each line."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.agent import Agent
from tests.support.gitrepo import commit_all, git, git_line
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Agent(repo, tmp_path / "claude")


def asked(repo, target) -> list[dict]:
    return ok(repo, "why", target)["lines"]


def numbers(repo, target) -> list[int | None]:
    return [line["number"] for line in asked(repo, target)]


def save(repo, *args) -> int:
    return ok(repo, "save", "--allow-empty", *args)["checkpoint"]["number"]


def test_each_line_has_its_turn_its_prompt_and_its_reasons(repo, agent):
    first = save(repo)
    agent.turn("add a rate", **{"vat.py": "RATE = 1\nSUM = 2\n"})
    by_turn = agent.line()[-1].number
    (repo / "vat.py").write_text("RATE = 1\n# mine\nSUM = 2\n")
    ok(repo, "decide", "round half up", "--why", "as the tax office does")
    agent.ask("round it")
    by_hand = agent.line()[-1].number
    (repo / "vat.py").write_text("RATE = 1\n# mine\nSUM = round(2)\n")
    agent.answer("Rounded.")
    rounded = agent.line()[-1].number
    (repo / "vat.py").write_text("RATE = 1\n# mine\nSUM = round(2)\nnew = 1\n")
    assert first < by_turn < by_hand < rounded
    lines = asked(repo, "vat.py")
    assert [(one["number"], one["by"], one["prompt"]) for one in lines] == [
        (by_turn, "agent", "add a rate"),
        (by_hand, "hand", None),
        (rounded, "agent", "round it"),
        (None, "unknown", None),
    ]
    assert lines[0]["agent"] == lines[2]["agent"] == "claude-code"
    assert lines[1]["agent"] is None
    assert [one["text"] for one in lines[1]["decisions"]] == ["round half up"]
    said = invoke(repo, "why", "vat.py").stdout.decode().splitlines()
    assert said[:4] == [
        f"#{by_turn}  1  RATE = 1",
        f"#{by_hand}  2  # mine",
        f"#{rounded}  3  SUM = round(2)",
        " -  4  new = 1",
    ]
    assert f'#{by_turn}  just now  Claude Code  "add a rate"' in said
    assert "-  not in a checkpoint yet" in said
    # The same, of some lines.
    assert numbers(repo, "vat.py:2-3") == [by_hand, rounded]
    assert numbers(repo, "vat.py:1") == [by_turn]


def test_restores_and_renames_are_followed(repo):
    (repo / "old.py").write_text("one\ntwo\nthree\nfour\n")
    first = save(repo)
    (repo / "old.py").write_text("one\ntwo\nthree\nFOUR\n")
    second = save(repo)
    (repo / "old.py").write_text("nothing\n")
    save(repo)
    ok(repo, "restore", str(second), "-y")
    assert numbers(repo, "old.py") == [first, first, first, second]
    (repo / "old.py").rename(repo / "new.py")
    (repo / "new.py").write_text("one\ntwo\nthree\nFOUR\nfive\n")
    renamed = save(repo)
    assert numbers(repo, "new.py") == [first, first, first, second, renamed]
    # Gone from the disk, it is shown as the newest checkpoint has it.
    (repo / "new.py").unlink()
    assert numbers(repo, "new.py") == [first, first, first, second, renamed]
    ok(repo, "restore", str(first), "old.py", "-y")
    assert numbers(repo, "old.py") == [first] * 4


@pytest.mark.ref_files
def test_what_was_there_first_and_what_git_brought_is_nobodys(repo):
    (repo / "first").write_text("old\n")
    first = save(repo)
    (line,) = asked(repo, "first")
    assert (line["number"], line["by"], line["commit"]) == (first, "unknown", None)
    commit_all(repo)
    git(repo, "checkout", "-q", "-b", "other")
    (repo / "README.md").write_text("theirs\n")
    theirs = commit_all(repo)
    git(repo, "checkout", "-q", "-")
    save(repo)
    # As a pull does it: no commit is made in this work tree.
    git(repo, "update-ref", "--create-reflog", "HEAD", theirs)
    git(repo, "reset", "-q", "--hard")
    (repo / ".git/logs/HEAD").write_bytes(b"")
    brought = save(repo)
    (line,) = asked(repo, "README.md")
    assert (line["number"], line["by"], line["commit"]) == (brought, "unknown", theirs)
    # A commit made here is a person's.
    (repo / "README.md").write_text("theirs\nours\n")
    ours = commit_all(repo)
    made = save(repo)
    line = asked(repo, "README.md:2")[0]
    assert (line["number"], line["by"], line["commit"]) == (made, "hand", ours)


def test_what_is_saved_by_hand_while_an_agent_works_may_be_either_s(repo, agent):
    save(repo)
    agent.ask("write it")
    (repo / "f").write_text("whose?\n")
    during = save(repo)
    agent.answer("Written.")
    (line,) = asked(repo, "f")
    assert (line["number"], line["by"]) == (during, "unknown")
    (repo / "f").write_text("whose?\nmine\n")
    after = save(repo)
    assert [(one["number"], one["by"]) for one in asked(repo, "f")][1] == (
        after,
        "hand",
    )


def test_names_that_look_like_something_else(repo):
    for name in ("a:1", "b\nc", "-x", ":d", "é"):
        (repo / name).write_text("one\n")
    (repo / "a").write_text("another\nsecond\n")
    number = save(repo)
    for target in ("a:1", "a:2", "b\nc", "./-x", ":d", "é"):
        (line,) = asked(repo, target)
        assert line["number"] == number
        assert line["text"] == ("second" if target == "a:2" else "one")


def test_what_has_no_lines_is_refused(repo):
    (repo / "binary").write_bytes(b"a\0b\n")
    (repo / "empty").write_bytes(b"")
    os.symlink("README.md", repo / "link")
    os.mkfifo(repo / "pipe")
    save(repo)
    assert "no text" in fails(repo, 2, "why", "binary")
    assert "link" in fails(repo, 2, "why", "link")
    assert "no file" in fails(repo, 2, "why", "pipe")
    assert "no file" in fails(repo, 2, "why", ".")
    assert "neither here nor" in fails(repo, 13, "why", "nowhere")
    assert "has 1 line" in fails(repo, 2, "why", "README.md:7")
    assert asked(repo, "empty") == []


def test_settings_of_the_users_do_not_change_the_answer(repo, tmp_path):
    number = save(repo)
    git(repo, "config", "blame.ignoreRevsFile", str(tmp_path / "missing"))
    git(repo, "config", "diff.text.textconv", "false")
    (repo / ".git/info/attributes").write_text("* diff=text\n")
    (line, *_) = asked(repo, "README.md")
    assert line["number"] == number
    assert line["commit"] == git_line(repo, "log", "-1", "--format=%H", "README.md")


def test_pruned_checkpoints_are_left_out(repo):
    save(repo)
    (repo / "f").write_text("one\n")
    gone = save(repo)
    (repo / "f").write_text("one\ntwo\n")
    last = save(repo)
    assert numbers(repo, "f") == [gone, last]
    ok(repo, "prune", "--keep-last", "1", "-y")
    assert (
        json.loads(invoke(repo, "why", "f", "--json").stdout)["lines"][0]["number"]
        == last
    )


def test_in_a_shallow_clone_the_oldest_commit_there_is_has_to_do(repo, tmp_path):
    (repo / "README.md").write_text("second\n")
    head = commit_all(repo)
    git(tmp_path, "clone", "-q", "--depth=1", repo.as_uri(), "shallow")
    clone = tmp_path / "shallow"
    save(clone)
    (line,) = asked(clone, "README.md")
    assert line["commit"] == head


def test_a_purge_changes_no_answer(repo):
    (repo / "secret").write_text("hunter2hunter2\n")
    (repo / "f").write_text("one\n")
    first = save(repo)
    (repo / "f").write_text("one\ntwo\n")
    second = save(repo)
    ok(repo, "purge", "secret", "-y")
    assert numbers(repo, "f") == [first, second]
    listed = ok(repo, "log", "--", "f")["checkpoints"]
    assert [one["number"] for one in listed] == [second, first]


def test_lines_that_were_pulled_are_those_of_who_wrote_them(ann, bob):
    (ann / "a.py").write_text("one\n")
    theirs = ok(ann, "save", "-s", "vat", "-m", "first")["checkpoint"]
    (ann / "a.py").write_text("one\ntwo\n")
    added = ok(ann, "save", "-s", "vat", "-m", "added")["checkpoint"]
    commit_all(ann)
    git(ann, "push", "-q", "origin", "HEAD")
    ok(ann, "push")
    ok(bob, "pull")
    git(bob, "pull", "-q")
    found = asked(bob, "a.py")
    assert [line["id"] for line in found] == [theirs["id"], added["id"]]
    assert [line["by"] for line in found] == ["unknown", "hand"]
    # What is not saved yet has no origin; another file is not theirs.
    (bob / "a.py").write_text("zero\none\ntwo\n")
    (bob / "b.py").write_text("one\n")
    assert [line["id"] for line in asked(bob, "a.py:1-2")] == [None, theirs["id"]]
    assert numbers(bob, "b.py") == [None]
    assert "<origin>" in invoke(bob, "why", "a.py").stdout.decode()
    # Nor does a checkpoint of his own change who wrote it.
    own = save(bob)
    found = asked(bob, "a.py")
    assert [line["number"] for line in found[:2]] == [own, own]
    assert (found[2]["id"], found[2]["by"]) == (added["id"], "hand")


def test_lines_of_another_work_tree_that_git_brought_are_its_own(repo, tmp_path):
    (repo / "a.py").write_text("one\n")
    commit_all(repo)
    save(repo)
    there = tmp_path / "there"
    git(repo, "worktree", "add", "-q", "-b", "there", str(there))
    save(there, "-s", "there")
    (there / "a.py").write_text("one\ntwo\n")
    made = save(there, "-s", "there")
    commit_all(there)
    git(repo, "merge", "-q", "there")
    assert numbers(repo, "a.py")[1] == made
    save(repo)
    assert numbers(repo, "a.py")[1] == made
