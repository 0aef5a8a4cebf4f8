"""A checkpoint whose own record cannot be read costs that checkpoint, not the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.damage import empty, explode, loose, replace_blob
from tests.support.gitrepo import git, git_line, write_files
from tests.support.inprocess import invoke, ok

PARTIAL = 3


def damage(repo: Path, oid: str, how: str) -> None:
    if how == "missing":
        loose(repo, oid).unlink()
    elif how == "empty":
        empty(repo, oid)
    else:
        replace_blob(repo, oid, b'{"format": 1, "id": 7}')


def shown(repo: Path, *args: str) -> tuple[int, dict]:
    done = invoke(repo, *args, "--json")
    assert b"Traceback" not in done.stderr
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def seqs(repo: Path, session: str) -> list[int]:
    return [one["seq"] for one in shown(repo, "log", "-s", session)[1]["checkpoints"]]


def save(repo: Path, number: int, *args: str) -> dict:
    write_files(repo, {"a": b"%d" % number, "d/b": b"%d" % number})
    return ok(repo, "save", "-m", f"n{number}", *args)["checkpoint"]


@pytest.fixture
def two(repo: Path) -> list[dict]:
    """Two sessions; the first one has restored. All objects are loose."""
    for number in range(1, 5):
        save(repo, number)
    ok(repo, "restore", "2", "-y")
    for number in range(5, 9):
        save(repo, number)
    made = shown(repo, "log")[1]["checkpoints"][::-1]
    for number in range(10, 15):
        save(repo, number, "-s", "other")
    ok(repo, "switch", "main")
    explode(repo)
    return made


def record_of(repo: Path, checkpoint: dict) -> str:
    return git_line(repo, "rev-parse", f"{checkpoint['commit']}:.gitcp/checkpoint.json")


def restore_of(made: list[dict]) -> dict:
    return next(one for one in made if one["trigger"] == "restore")


@pytest.mark.parametrize("how", ["missing", "empty", "other"])
@pytest.mark.parametrize("which", ["restore", "commit"])
def test_prune_leaves_a_branch_that_it_cannot_judge_and_goes_on(repo, two, which, how):
    before = restore_of(two) if which == "restore" else two[2]
    oid = record_of(repo, before) if which == "restore" else before["commit"]
    damage(repo, oid, how)
    tip = git_line(repo, "rev-parse", "refs/gitcp/s/main/main")
    status, plan = shown(repo, "prune", "--keep-last", "2", "--dry-run")
    assert status == PARTIAL
    assert {one["session"] for one in plan["removed"]} == {"other"}
    status, done = shown(repo, "prune", "--keep-last", "2", "--yes")
    assert (status, len(done["removed"])) == (PARTIAL, 3)
    (reason,) = done["unreadable"]
    assert reason.startswith("main/main stays as it is: ")
    assert oid in reason
    assert seqs(repo, "other") == [5, 4]
    assert git_line(repo, "rev-parse", "refs/gitcp/s/main/main") == tip
    told = invoke(repo, "prune", "--keep-last", "1", "--yes").stderr
    assert b"main/main stays as it is" in told
    # What is asked for by name, and is sound, is no concern of the damaged branch.
    assert shown(repo, "prune", "--keep-last", "1", "-s", "other", "-y")[0] == 0


@pytest.mark.parametrize("how", ["missing", "empty", "other"])
def test_prune_needs_no_record_of_what_goes_or_of_a_tip(repo, two, how):
    for one in (two[2], two[-1]):
        damage(repo, record_of(repo, one), how)
    status, done = shown(repo, "prune", "--keep-last", "2", "--max-size", "1", "--yes")
    assert status in {0, PARTIAL}
    assert two[2]["id"] in {one["id"] for one in done["removed"]}
    assert done["unreadable"] == []


@pytest.mark.parametrize("how", ["missing", "empty", "other"])
def test_log_leaves_out_one_checkpoint(repo, two, how):
    damage(repo, record_of(repo, two[2]), how)
    for args in (("log",), ("log", "--all", "--graph")):
        status, listed = shown(repo, *args)
        assert status == PARTIAL
        mine = [one for one in listed["checkpoints"] if one["session"] == "main"]
        assert [one["seq"] for one in mine] == [
            one["seq"] for one in reversed(two) if one != two[2]
        ]
        (reason,) = listed["unreadable"]
        assert reason.startswith(f"#3 {two[2]['id']} is left out: ")


def test_du_counts_what_is_there(repo, two):
    whole = ok(repo, "du")
    damage(repo, record_of(repo, two[2]), "missing")
    status, used = shown(repo, "du")
    assert status == PARTIAL
    before = {one["name"]: one["bytes"] for one in whole["sessions"]}
    after = {one["name"]: one["bytes"] for one in used["sessions"]}
    assert before["other"] == after["other"]
    assert 0 < after["main"] < before["main"]
    assert 0 < used["only"] < whole["only"]
    (reason,) = used["unreadable"]
    assert reason.startswith("main is not counted in full")
    loose(repo, two[-1]["commit"]).unlink()
    status, used = shown(repo, "du")
    assert status == PARTIAL
    assert next(one["bytes"] for one in used["sessions"] if one["name"] == "main") == 0


def test_gc_needs_no_blob_but_every_tree(repo, two):
    save(repo, 20)
    loose(repo, record_of(repo, two[2])).unlink()
    shown(repo, "prune", "--keep-last", "3", "--yes", "-s", "other")
    ok(repo, "gc")
    assert ok(repo, "restore", "-y", "1")
    tree = git_line(repo, "rev-parse", f"{two[2]['commit']}:d")
    loose(repo, tree).unlink()
    before = sorted((repo / ".git/objects/pack").glob("*.pack"))
    done = invoke(repo, "gc")
    assert done.returncode == 20
    assert tree.encode() in done.stderr
    assert sorted((repo / ".git/objects/pack").glob("*.pack")) == before


@pytest.mark.parametrize("how", ["missing", "empty", "other"])
@pytest.mark.parametrize("which", ["record", "tree", "commit"])
def test_push_sends_what_can_be_read(repo, two, tmp_path, which, how):
    git(repo, "init", "-q", "--bare", str(tmp_path / "hub"))
    git(repo, "remote", "add", "origin", str(tmp_path / "hub"))
    part = {"record": ":.gitcp/checkpoint.json", "tree": ":d", "commit": ""}[which]
    oid = git_line(repo, "rev-parse", two[2]["commit"] + part)
    damage(repo, oid, how)
    status, pushed = shown(repo, "push", "origin")
    assert status == PARTIAL
    results = {one["session"]: one for one in pushed["branches"]}
    assert results["other"]["result"] == "created"
    assert results["main"]["result"] == "rejected"
    assert "it cannot be read here: " in results["main"]["reason"]
    refs = git(tmp_path / "hub", "for-each-ref", "--format=%(refname)").decode()
    assert refs.split() == ["refs/gitcp/s/other/main"]
    assert invoke(repo, "push", "origin", "main").returncode == 15


@pytest.mark.parametrize("how", ["missing", "empty", "other"])
def test_purge_says_which_checkpoints_it_had_to_leave(repo, how):
    key = "AKIA" + "Q3XK7WZP2MVB5TRD"
    for number in range(1, 5):
        save(repo, number)
    write_files(repo, {"keys": f"aws_access_key_id = {key}\n".encode()})
    save(repo, 5)
    damaged = save(repo, 6)
    save(repo, 7)
    (repo / "keys").unlink()
    save(repo, 8)
    (found,) = shown(repo, "scan")[1]["secrets"]
    name = found["fingerprint"]
    explode(repo)
    damage(repo, record_of(repo, damaged), how)
    plan = ok(repo, "purge", name, "--dry-run")
    assert [one["seq"] for one in plan["checkpoints"]] == [5, 7]
    done = ok(repo, "purge", name, "--yes")
    assert [one["seq"] for one in done["checkpoints"]] == [5, 7]
    (left,) = (one for one in done["left"] if damaged["id"] in one)
    assert left.startswith(f"main/main:6 {damaged['id']}, perhaps: ")
    for number, holds in ((5, False), (6, True), (7, False)):
        commit = git_line(repo, "rev-parse", f"refs/gitcp/s/main/main~{8 - number}")
        assert (key.encode() in git(repo, "show", f"{commit}:keys")) == holds
    # Nothing is left of it that can be read: not the same as nothing being left.
    assert invoke(repo, "purge", name, "--yes").returncode in {14, 15}


@pytest.mark.parametrize("path", ["", ".gitcp"], ids=["files", "record"])
def test_purge_by_fingerprint_passes_over_a_checkpoint_without_its_tree(repo, path):
    key = "AKIA" + "Q3XK7WZP2MVB5TRD"
    write_files(repo, {"keys": f"aws_access_key_id = {key}\n".encode()})
    made = [save(repo, number) for number in (1, 2, 3)]
    (found,) = shown(repo, "scan")[1]["secrets"]
    explode(repo)
    damage(repo, git_line(repo, "rev-parse", f"{made[1]['commit']}:{path}"), "missing")
    plan = ok(repo, "purge", found["fingerprint"], "--dry-run")
    assert [one["seq"] for one in plan["checkpoints"]] == [1, 3]
    assert any(made[1]["id"] in one for one in plan["left"])
