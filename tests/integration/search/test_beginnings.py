"""The first checkpoint of each conversation has every file; the index has each once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.gitrepo import git, make_repo, write_files
from tests.support.inprocess import ok


@pytest.fixture
def repo(tmp_path):
    files = {f"src/quokka{n}.py": b"wombat = %d\n" % n for n in range(4)}
    return make_repo(tmp_path / "repo", files)


def paths(top: Path, *words: str) -> dict[str, tuple[str, int]]:
    """Each path that is found, with the session and the number that have it."""
    found = ok(top, "search", "-n", "50", *words)["hits"]
    return {hit["path"]: (hit["session"], hit["number"]) for hit in found}


def rows(top: Path) -> int:
    """How many contents of files the index has."""
    index = sqlite3.connect(top / ".git" / "gitcp" / "search" / "index.db")
    with closing(index):
        return int(index.execute("SELECT count(*) FROM contents").fetchone()[0])


def test_a_conversation_adds_only_the_files_that_it_has_otherwise(repo):
    ok(repo, "save", "-s", "one")
    write_files(repo, {"src/quokka0.py": b"wombat = 9\n"})
    for session in ("two", "three"):
        ok(repo, "save", "-s", session)
        # Those of one second are in no order.
        paths(repo, "wombat")
    assert paths(repo, "wombat", "--in", "files") == {
        "src/quokka0.py": ("two", 2),
        **{f"src/quokka{n}.py": ("one", 1) for n in range(1, 4)},
    }
    assert len(paths(repo, "src", "--in", "paths")) == 4
    assert rows(repo) == 5


def test_what_a_session_that_is_gone_had_is_found_in_the_next_one(repo):
    for session in ("one", "two", "three"):
        ok(repo, "save", "-s", session)
    every = {f"src/quokka{n}.py" for n in range(4)}
    for gone, has in (("one", ("two", 2)), ("two", ("three", 3))):
        assert paths(repo, "wombat", "--in", "files").keys() == every
        git(repo, "update-ref", "-d", f"refs/gitcp/s/{gone}/main")
        assert set(paths(repo, "wombat", "--in", "files").values()) == {has}
        assert set(paths(repo, "src", "--in", "paths").values()) == {has}
        assert rows(repo) == 4


def test_each_work_tree_has_all_its_files(repo, tmp_path):
    ok(repo, "save", "-s", "here")
    git(repo, "worktree", "add", "-q", "../there")
    ok(tmp_path / "there", "save", "-s", "there")
    assert len(paths(repo, "wombat", "--in", "files")) == 4
    found = paths(tmp_path / "there", "wombat", "--in", "files")
    assert set(found.values()) == {("there", 2)}
    assert len(found) == 4


def test_so_has_each_client(repo):
    for session, agent in (("one", "codex"), ("two", "claude-code")):
        file = repo.parent / "talk.jsonl"
        file.write_text('{"role": "user", "content": "hello"}\n')
        ok(repo, "save", "-s", session, "--transcript", file, "--agent", agent)
    found = paths(repo, "wombat", "--in", "files", "--agent", "claude-code")
    assert len(found) == 4


def test_a_damaged_base_is_no_base(repo):
    ok(repo, "save", "-s", "one")
    assert len(paths(repo, "wombat", "--in", "files")) == 4
    index = sqlite3.connect(repo / ".git" / "gitcp" / "search" / "index.db")
    with closing(index):
        index.execute("UPDATE checkpoints SET whole = 0")
        index.commit()
    ok(repo, "save", "-s", "two")
    paths(repo, "wombat", "--in", "files")
    assert rows(repo) == 8
