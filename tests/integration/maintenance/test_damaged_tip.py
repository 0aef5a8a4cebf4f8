"""Damage at the newest checkpoint, or at the user's HEAD, costs that and no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gitcp
from tests.support.damage import empty, explode, loose
from tests.support.gitrepo import commit_all, git, git_line, write_files
from tests.support.inprocess import fails, invoke, ok

CORRUPT = 15
REF = "refs/gitcp/s/main/main"


@pytest.fixture
def history(repo: Path) -> list[dict]:
    """Four checkpoints, all objects loose."""
    made = []
    for number in range(1, 5):
        write_files(repo, {"a": b"%d" % number, "d/b": b"%d" % number})
        made.append(
            ok(repo, "save", "-m", f"n{number}", "--label", f"l{number}")["checkpoint"]
        )
    ok(repo, "save", "-s", "other", "-m", "elsewhere")
    ok(repo, "switch", "main")
    explode(repo)
    return made


# What of the newest checkpoint is lost, and whether its commit can still be read.
LOST = {
    "commit": "",
    "root tree": "^{tree}",
    "own tree": ":.gitcp",
    "manifest": ":.gitcp/checkpoint.json",
}


@pytest.mark.parametrize("what", LOST)
@pytest.mark.parametrize("how", ["missing", "empty"])
def test_all_but_the_damaged_tip_can_be_used(repo, history, tmp_path, what, how):
    oid = git_line(repo, "rev-parse", history[3]["commit"] + LOST[what])
    if how == "empty":
        empty(repo, oid)
    else:
        loose(repo, oid).unlink()
    log = invoke(repo, "log", "--json")
    assert log.returncode == 0, log.stderr
    listed = json.loads(log.stdout)["checkpoints"]
    ids = [one["id"] for one in listed if one["session"] == "main"]
    assert ids == [one["id"] for one in reversed(history[:3])]
    assert b"warning: the newest checkpoint of main/main is damaged" in log.stderr
    assert oid.encode() in log.stderr
    for args in (
        ("show", "l2"),
        ("show", "2"),
        ("show", "last"),
        ("show", history[0]["id"]),
        ("show", "other:last"),
        ("files", "l1"),
        ("cat", "3", "a"),
        ("restore", "l2", "--to", str(tmp_path / "out")),
        ("fork", "l2", "branch", "--no-switch"),
    ):
        done = invoke(repo, *args)
        assert done.returncode == 0, (args, done.stderr)
    assert (tmp_path / "out/a").read_bytes() == b"2"
    names = {one["name"] for one in ok(repo, "sessions")["sessions"]}
    assert names == {"main", "other"}
    assert invoke(repo, "verify").returncode == CORRUPT
    checks = json.loads(invoke(repo, "doctor", "--json").stdout)["checks"]
    assert not next(one for one in checks if one["name"] == "branches")["ok"]


@pytest.mark.parametrize("what", [*LOST, "directory"])
def test_a_save_onto_a_damaged_tip_goes_on_from_the_newest_sound_one(
    repo, history, what
):
    loose(
        repo, git_line(repo, "rev-parse", history[3]["commit"] + LOST.get(what, ":d"))
    ).unlink()
    write_files(repo, {"a": b"5", "d/b": b"5"})
    done = invoke(repo, "save", "--json")
    assert done.returncode == 0, done.stderr
    assert b"is damaged" in done.stderr
    made = json.loads(done.stdout)["checkpoint"]
    assert made["seq"] == 4
    assert git_line(repo, "rev-parse", f"{REF}^") == history[2]["commit"]
    assert invoke(repo, "verify", "main").returncode == 0
    ok(repo, "restore", "-y", "1")
    assert (repo / "a").read_bytes() == b"1"


def test_repair_puts_the_branch_onto_the_newest_sound_checkpoint(repo, history):
    loose(repo, history[3]["commit"]).unlink()
    empty(repo, history[2]["commit"])
    assert invoke(repo, "verify").returncode == CORRUPT
    assert git_line(repo, "rev-parse", REF) == history[3]["commit"]
    done = invoke(repo, "verify", "--repair", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["problems"]) == (0, []), found
    assert found["moved"] == [
        {"ref": REF, "was": history[3]["commit"], "now": history[1]["commit"]}
    ]
    assert git_line(repo, "rev-parse", REF) == history[1]["commit"]
    noted = (repo / ".git/gitcp/damaged/refs").read_text()
    assert history[3]["commit"] in noted
    assert ok(repo, "verify")["ok"]
    git(repo, "rev-list", "--objects", "--all")


def test_a_branch_of_which_nothing_is_left_goes_at_a_repair_only(repo):
    made = ok(repo, "save")["checkpoint"]
    explode(repo)
    loose(repo, made["commit"]).unlink()
    for args in (("log",), ("show", "1"), ("save", "--allow-empty")):
        fails(repo, CORRUPT, *args)
    done = invoke(repo, "verify", "--repair")
    assert done.returncode == 0, done.stdout
    assert b"no sound checkpoint left" in done.stdout
    assert ok(repo, "save")["checkpoint"]["seq"] == 1


def test_what_may_only_be_unreadable_moves_no_branch(repo, history, monkeypatch):
    # As where another member of a group may not read a pack.
    import os

    real = os.access
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode: not str(path).endswith("pack") and real(path, mode),
    )
    loose(repo, history[3]["commit"]).unlink()
    assert invoke(repo, "log").returncode == 0
    write_files(repo, {"a": b"5"})
    fails(repo, CORRUPT, "save")
    assert invoke(repo, "verify", "--repair").returncode == CORRUPT
    assert git_line(repo, "rev-parse", REF) == history[3]["commit"]


def test_a_hole_in_the_line_hides_only_what_it_holds(repo, history):
    loose(repo, history[2]["commit"]).unlink()
    done = invoke(repo, "log", "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)["checkpoints"]
    assert [one["seq"] for one in listed if one["session"] == "main"] == [4, 2, 1]
    assert b"is damaged" in done.stderr
    report = invoke(repo, "verify", "--json")
    assert report.returncode == CORRUPT
    assert json.loads(report.stdout)["checked"] == 4
    ok(repo, "restore", "-y", "1")


def test_a_program_is_told_of_a_damaged_tip_by_a_warning(repo, history):
    loose(repo, history[3]["commit"]).unlink()
    with pytest.warns(gitcp.GitcpWarning, match="newest checkpoint of main/main"):
        found = gitcp.open(repo).checkpoint("main:last")
    assert found.id == history[2]["id"]


@pytest.mark.parametrize("what", ["HEAD", "HEAD^{tree}"])
@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_damaged_head_is_named_by_verify_and_doctor(repo, what, how):
    write_files(repo, {"mine": b"1"})
    ok(repo, "save")
    write_files(repo, {"mine": b"2"})
    commit_all(repo, "mine")
    oid = git_line(repo, "rev-parse", what)
    if how == "empty":
        empty(repo, oid)
    else:
        loose(repo, oid).unlink()
    report = invoke(repo, "verify", "--json")
    assert report.returncode == CORRUPT
    (problem,) = json.loads(report.stdout)["problems"]
    assert (problem["path"], problem["kind"]) == ("HEAD", "head")
    assert oid in problem["problem"]
    checks = json.loads(invoke(repo, "doctor", "--json").stdout)["checks"]
    assert not next(one for one in checks if one["name"] == "head")["ok"]
