"""What the shells complete, and that it is what there is."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gitcp.project.settings import KNOWN
from tests.support.gitrepo import git, write_files
from tests.support.inprocess import invoke, ok


@pytest.fixture
def project(repo):
    write_files(repo, {"src/vat.py": b"1", "src/b.py": b"2", "README": b"3"})
    ok(repo, "save", "-m", "add VAT, and more: yes\nsecond line")
    write_files(repo, {"src/b.py": b"4"})
    ok(repo, "save", "-m", "tidy up", "--label", "before-refactor")
    ok(repo, "save", "--allow-empty", "-s", "auth/try", "-m", "another way")
    return repo


def completed(repo: Path, line: str, shell: str = "fish") -> dict[str, str]:
    """Values with their descriptions; of files and directories their kind."""
    env = {"_GITCP_COMPLETE": f"{shell}_complete", "COMP_LINE": line}
    done = invoke(repo, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    found = {}
    for text in filter(None, done.stdout.decode().splitlines()):
        kind, value, about = text.split("\t")
        found[value if kind == "plain" else f"<{kind}>"] = about
    return found


@pytest.mark.parametrize(
    "line", ["restore ", "show ", "diff ", "diff 1 ", "messages ", "fork ", "export "]
)
def test_numbers_come_with_their_prompts(project, line):
    found = completed(project, f"gitcp {line}")
    assert list(found)[:3] == ["3", "2", "1"]
    assert found["1"] == "add VAT, and more: yes"
    assert found["last"] == "the newest checkpoint"
    assert found["before-refactor"] == "tidy up"


def test_what_was_typed_narrows_it(project):
    # An id may begin with any of these digits.
    found = completed(project, "gitcp restore 2")
    assert "2" in found
    assert {"1", "3", "before-refactor", "last"}.isdisjoint(found)
    assert set(completed(project, "gitcp restore befo")) == {"before-refactor"}
    ident = ok(project, "log", "--all")["checkpoints"][0]["id"]
    assert ident in completed(project, f"gitcp restore {ident[:3]}")
    assert completed(project, "gitcp restore auth/try:") == {
        "auth/try:1": "another way",
        "auth/try:last": "the newest checkpoint",
    }
    # bash has the part up to the colon already.
    assert set(completed(project, "gitcp restore auth/try:l", "bash")) == {"last"}


def test_a_word_is_offered_once(project):
    """bash inserts what its lines have in common: of two with one word, their notes."""
    for at in range(2):
        ok(project, "save", "--allow-empty", "-s", f"other{at}", "--label", "rel",
           "-m", f";touch pwn #{at}")  # fmt: skip
    env = {"_GITCP_COMPLETE": "bash_complete", "COMP_LINE": "gitcp show rel"}
    lines = invoke(project, env=env).stdout.decode().splitlines()
    assert lines == ["plain\trel\t;touch pwn #1"]


def test_what_gitcp_noted_is_told_with_numbers(project):
    ok(project, "restore", "1", "-y")
    newest = next(iter(completed(project, "gitcp restore ").values()))
    assert newest == "restored #1"
    assert "restored #1" in completed(project, "gitcp switch ").values()


def test_a_pruned_checkpoint_is_not_offered(project):
    for number in range(3):
        ok(project, "save", "--allow-empty", "-s", "main", "-m", f"more {number}")
    ok(project, "prune", "--keep-last", "1", "--no-keep-labelled", "-s", "main", "-y")
    assert "1" not in completed(project, "gitcp show ")


def test_sessions_and_branches(project):
    for line in ("switch ", "save -s ", "steps --session ", "push origin ", "verify "):
        found = completed(project, f"gitcp {line}")
        assert found == {"auth/try": "another way", "main": "tidy up"}, line


def test_settings_topics_remotes(project):
    assert completed(project, "gitcp config maxF")["maxFileSize"]
    assert completed(project, "gitcp config ").keys() == KNOWN.keys()
    assert "selectors" in completed(project, "gitcp help se")
    assert "restore" in completed(project, "gitcp help re")
    git(project, "remote", "add", "hub", "/nowhere")
    assert completed(project, "gitcp push ") == {"hub": "/nowhere"}


def test_paths_are_those_of_the_checkpoint(project):
    (project / "src" / "vat.py").unlink()
    for line in ("restore 1 src/", "cat 1 src/", "files 1 src/", "diff 1 2 src/"):
        found = completed(project, f"gitcp {line}")
        assert set(found) == {"src/vat.py", "src/b.py", "src/pkg/"}, line
    assert {"README", "src/"} <= set(completed(project, "gitcp cat 1 "))
    # From where one is.
    inside = set(completed(project / "src", "gitcp cat 1 v"))
    assert inside == {"vat.py"}
    assert set(completed(project / "src", "gitcp cat 1 ../RE")) == {
        "../README",
        "../README.md",
    }


def test_files_and_directories_are_the_shells_own(project):
    assert set(completed(project, "gitcp save --transcript x")) == {"<file>"}
    assert set(completed(project, "gitcp fork 1 x --worktree y")) == {"<dir>"}
    assert set(completed(project, "gitcp purge src/")) == {"<file>"}


def test_the_directory_option_counts(project, tmp_path):
    found = completed(tmp_path, f"gitcp -C {project} restore ")
    assert list(found)[:3] == ["3", "2", "1"]


def test_outside_of_a_repository_nothing_is_said(tmp_path):
    for line in ("restore ", "switch ", "push ", "cat 1 "):
        assert not completed(tmp_path, f"gitcp {line}").keys() - {"<file>"}


_LINES = ("restore ", "switch ", "save -s ", "cat last ", "log -s ")


def test_names_that_a_shell_would_act_on_are_not_offered(project):
    write_files(project, {"$(touch x)": b"1", "a b": b"1", "`x`": b"1", ";x": b"1"})
    write_files(project, {"--trust": b"1", "~root": b"1", "=ls": b"1", "#x": b"1"})
    ok(project, "save", "-s", "$(touch x)", "-m", "evil\x1b[31m\ttext")
    ok(project, "save", "--allow-empty", "--label", "a;b")
    # bash and fish would read no further: `gitcp push origin` pushes every session.
    ok(project, "save", "--allow-empty", "-s", "#x", "--label", "#y")
    words = [
        word
        for line in (*_LINES, "push origin ")
        for word in completed(project, f"gitcp {line}")
    ]
    assert words
    assert all(re.fullmatch(r"(?![-~=#])[\w./:@%+=,~#<>-]+", word) for word in words)
    abouts = completed(project, "gitcp restore ").values()
    assert all(about.isprintable() for about in abouts)


def test_commands_and_options_are_completed_as_before(project):
    assert "restore" in completed(project, "gitcp rest")
    assert "--stat" in completed(project, "gitcp diff --st")
    assert set(completed(project, "gitcp install cla")) == {"claude-code"}


def test_an_open_quote_is_no_reason_to_fail(project):
    assert completed(project, "gitcp save -m 'half a") == {}
    assert completed(project, 'gitcp restore "') == {}


def test_a_script_of_an_older_gitcp_still_works(project):
    env = {
        "_GITCP_COMPLETE": "bash_complete",
        "COMP_WORDS": "gitcp restore ",
        "COMP_CWORD": "2",
    }
    assert "COMP_LINE" not in os.environ
    lines = invoke(project, env=env).stdout.decode().splitlines()
    assert lines[0] == "plain,3"
