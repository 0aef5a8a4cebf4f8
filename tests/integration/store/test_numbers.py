"""Numbers of checkpoints: given once, never given again, whatever happens."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from unittest.mock import Mock

import pytest

from gitcp.project.workspace import open_workspace
from gitcp.store.numbering import number_all
from gitcp.store.numbers import Numbers
from gitcp.store.surroundings import Surroundings
from tests.support.clones import clone
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import fails, ok


def save(repo, *args):
    count = len(list(repo.iterdir()))
    (repo / f"file-{count}").write_bytes(b"%d" % count)
    return ok(repo, "save", *args)["checkpoint"]


def numbers(repo):
    return {
        entry["id"]: entry["number"]
        for entry in ok(repo, "log", "--all", "--json")["checkpoints"]
    }


def file_of(repo):
    return repo / ".git" / "gitcp-numbers"


def test_they_count_over_sessions_branches_and_work_trees(repo, tmp_path):
    assert save(repo)["number"] == 1
    assert save(repo, "-s", "job")["number"] == 2
    assert ok(repo, "fork", "1", "side", "--no-switch")["checkpoint"]["number"] == 3
    git(repo, "worktree", "add", "-q", tmp_path / "other")
    assert save(tmp_path / "other")["number"] == 4
    assert save(repo)["number"] == 5
    for number, session in ((1, "main"), (2, "job"), (4, "other")):
        assert ok(repo, "show", f"#{number}")["checkpoint"]["session"] == session


def test_a_number_stays_when_others_are_pruned_and_says_when_it_was(repo):
    made = [save(repo) for _ in range(5)]
    ok(repo, "prune", "--keep-last", "2", "--yes")
    assert numbers(repo) == {one["id"]: one["number"] for one in made[3:]}
    assert ok(repo, "show", "4")["checkpoint"]["id"] == made[3]["id"]
    assert "#2 was pruned on 20" in fails(repo, 13, "show", "#2")
    assert save(repo)["number"] == 6
    assert "#2 was pruned on 20" in fails(repo, 13, "show", "2")


def test_they_outlive_the_state_of_gitcp(repo):
    made = save(repo)
    shutil.rmtree(repo / ".git" / "gitcp")
    assert ok(repo, "show", "1")["checkpoint"]["id"] == made["id"]
    assert save(repo)["number"] == 2


def test_what_is_pulled_is_numbered_here_in_its_own_order(repo, tmp_path):
    there = clone(repo, tmp_path / "there")
    save(repo)
    theirs = [save(there, "-s", "theirs") for _ in range(3)]
    ok(there, "push", "origin")
    git(repo, "remote", "add", "there", there)
    ok(repo, "pull", "there")
    found = numbers(repo)
    assert [found[one["id"]] for one in theirs] == [2, 3, 4]
    assert save(repo)["number"] == 5


def test_an_older_repository_is_numbered_once(repo):
    made = [save(repo), save(repo, "-s", "job"), save(repo)]
    file_of(repo).unlink()
    assert numbers(repo) == {one["id"]: at for at, one in enumerate(made, 1)}
    before = file_of(repo).read_bytes()
    assert numbers(repo)
    assert file_of(repo).read_bytes() == before


def test_what_could_not_be_read_is_numbered_once_it_can_be(repo):
    made = [save(repo, "-s", "whole"), save(repo, "-s", "hurt")]
    file_of(repo).unlink()
    tip = git_line(repo, "rev-parse", "refs/gitcp/s/hurt/main")
    parts = repo / ".git" / "objects" / tip[:2] / tip[2:]
    git(repo, "repack", "-adq")
    packs = repo / ".git" / "objects" / "pack"
    assert not parts.exists()
    shutil.move(packs, packs.with_name("aside"))
    packs.mkdir()
    number_all(open_workspace(repo).store)
    packs.rmdir()
    shutil.move(packs.with_name("aside"), packs)
    number_all(open_workspace(repo).store)
    assert numbers(repo) == {one["id"]: at for at, one in enumerate(made, 1)}


def test_a_list_in_which_none_is_missing_is_not_searched_again(repo, monkeypatch):
    save(repo)
    number_all(open_workspace(repo).store)
    search = Mock(return_value=set())
    monkeypatch.setattr(Numbers, "unnamed", search)
    number_all(open_workspace(repo).store)
    assert not search.called
    shutil.rmtree(repo / ".git" / "gitcp")
    number_all(open_workspace(repo).store)
    assert search.called


def test_a_line_that_was_torn_costs_a_gap_and_no_more(repo):
    made = [save(repo), save(repo)]
    raw = file_of(repo).read_bytes()
    file_of(repo).write_bytes(raw[:-20])
    store = open_workspace(repo).store
    assert store.numbers.damaged == 1
    number_all(store)
    assert numbers(repo) == {made[0]["id"]: 1, made[1]["id"]: 3}
    assert save(repo)["number"] == 4


def test_a_damaged_line_gives_its_number_to_no_other(repo):
    save(repo)
    save(repo)
    raw = bytearray(file_of(repo).read_bytes())
    raw[raw.rindex(b"main/main")] ^= 1
    file_of(repo).write_bytes(raw)
    assert save(repo)["number"] == 3


def test_a_full_disk_leaves_the_file_as_it_was(repo, monkeypatch):
    save(repo)
    before = file_of(repo).read_bytes()
    write = os.write

    def half(fd, data):
        if bytes(data).startswith(b"+ "):
            return write(fd, data[: len(data) // 2])
        return write(fd, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        made = save(repo)
    assert made["number"] is None
    assert file_of(repo).read_bytes() == before
    assert ok(repo, "show", made["id"])["checkpoint"]["number"] == 2


def test_a_link_in_its_place_is_not_followed(repo, tmp_path):
    save(repo)
    target = tmp_path / "precious"
    target.write_bytes(b"precious\n")
    file_of(repo).unlink()
    file_of(repo).symlink_to(target)
    save(repo)
    assert target.read_bytes() == b"precious\n"


def test_a_pipe_in_its_place_is_waited_for_by_nothing(repo):
    made = save(repo)
    file_of(repo).unlink()
    os.mkfifo(file_of(repo))
    assert save(repo)["number"] is None
    error = fails(repo, 20, "show", made["id"])
    assert "not a regular file" in error
    assert "move it away" in error


def test_the_index_is_made_where_much_is_searched_not_at_each_save(repo):
    save(repo)
    numbers = open_workspace(repo).store.numbers
    assert numbers.find(1) is not None
    assert vars(numbers)["_index"] is None
    for _ in range(100):
        assert numbers.find(1) is not None
    assert numbers._index is not None
    made = save(repo)
    assert numbers.of(made["id"]) == 2
    assert numbers._index is None


def test_doctor_names_damaged_lines(repo):
    save(repo)
    save(repo)
    raw = bytearray(file_of(repo).read_bytes())
    raw[raw.rindex(b"main/main")] ^= 1
    file_of(repo).write_bytes(raw)
    checks = ok(repo, "doctor", status=1)["checks"]
    (found,) = [check for check in checks if check["name"] == "numbers"]
    assert found["detail"] == "damaged lines in .git/gitcp-numbers: 1"


def test_an_adapter_s_records_get_none(repo):
    pytest.importorskip("claude_agent_sdk")
    import asyncio

    from gitcp.adapters.claude_sdk import GitcpSessionStore

    store = GitcpSessionStore(repo)
    record = {"type": "user", "uuid": "u"}
    key = {"project_key": "p", "session_id": "s"}
    asyncio.run(store.append(key, [record]))  # type: ignore[arg-type,list-item]
    assert set(numbers(repo).values()) == {None}
    assert save(repo)["number"] == 1


SAVER = """
import sys
from gitcp.cli import main
from pathlib import Path
for number in range(5):
    Path(sys.argv[1], sys.argv[2]).write_text(str(number))
    assert main(["-C", sys.argv[1], "save", "-q", "-s", sys.argv[2]]) == 0
"""


def test_many_processes_share_the_count(repo):
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SAVER, str(repo), f"agent-{number}"],
            stdout=subprocess.DEVNULL,
        )
        for number in range(4)
    ]
    assert [process.wait() for process in running] == [0] * 4
    given = sorted(numbers(repo).values())
    assert given == list(range(1, len(given) + 1))
    assert len(given) >= 5 * 4


def test_what_was_pruned_and_collected_is_not_looked_for_one_by_one(repo):
    for _ in range(9):
        save(repo)
    ok(repo, "prune", "--keep-last", "1", "-y")
    ok(repo, "gc")
    store = open_workspace(repo).store
    looked: list[str] = []

    def read(commit):
        looked.append(commit)
        return store.checkpoint(commit)

    newest = store.require_tip("main", "main")
    before = Surroundings(store.numbers, store.labels, read).before(newest)
    assert before is None
    assert len(looked) == 1


def test_what_was_pruned_and_is_there_yet_is_the_state_before(repo):
    for _ in range(4):
        save(repo)
    commit = git_line(repo, "rev-parse", "refs/gitcp/s/main/main~1")
    ok(repo, "prune", "--keep-last", "1", "-y")
    store = open_workspace(repo).store
    around = Surroundings(store.numbers, store.labels, store.checkpoint)
    before = around.before(store.require_tip("main", "main"))
    assert before is not None
    assert before.commit == commit
