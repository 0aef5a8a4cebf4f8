"""A restore that was interrupted can be ended, whatever happened meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from gitcp.cli.restoring import stoppable
from gitcp.worktree import apply as applying
from gitcp.worktree import journal, one_step, renames
from tests.support.gitrepo import git, tree_bytes, write_files
from tests.support.inprocess import Done, fails, invoke, ok

ENDS = pytest.mark.parametrize("end", ["--continue", "--abort"])


def save(repo: Path, **files: bytes) -> None:
    write_files(repo, files)
    ok(repo, "save", "--allow-empty")


def interrupt(repo: Path, monkeypatch: pytest.MonkeyPatch, target: str = "1") -> Done:
    """A restore that Ctrl-C stops after its first step."""
    real = one_step.carry_out
    calls = iter(range(100))

    def stopped(*args):
        if next(calls) == 1:
            raise KeyboardInterrupt
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(one_step, "carry_out", stopped)
        done = invoke(repo, "restore", "-y", target)
    assert done.returncode == 130
    return done


def as_written_by_0_1_0(repo: Path) -> None:
    """Takes from a journal what gitcp 0.1.0 did not write."""
    file = repo / ".git/gitcp/restore.json"
    held = json.loads(file.read_bytes())
    for name in ("steps", "left", "target_id", "before_id", "trust", "named"):
        del held[name]
    assert set(held) == {
        "checkpoint", "session", "branch", "target", "before", "files",
        "conversation", "paths", "sparse", "note", "fork", "withhold",
    }  # fmt: skip
    file.write_text(json.dumps(held))


def two_states(repo: Path) -> tuple[dict, dict]:
    save(repo, a=b"1", b=b"1")
    first = tree_bytes(repo)
    save(repo, a=b"2", b=b"2", c=b"2")
    return first, tree_bytes(repo)


@ENDS
@pytest.mark.parametrize("old", [False, True])
def test_an_interrupted_restore_is_ended(repo, monkeypatch, end, old):
    first, second = two_states(repo)
    interrupt(repo, monkeypatch)
    if old:
        as_written_by_0_1_0(repo)
    assert invoke(repo, "restore", end).returncode == 0
    assert tree_bytes(repo) == (first if end == "--continue" else second)


def test_ctrl_c_names_both_ways(repo, monkeypatch):
    two_states(repo)
    said = interrupt(repo, monkeypatch).stderr
    assert b"`gitcp restore --continue` finishes it" in said
    assert b"`gitcp restore --abort` undoes it" in said


def test_sigterm_stops_a_restore_as_ctrl_c_does():
    with pytest.raises(KeyboardInterrupt), stoppable():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@ENDS
def test_prune_and_gc_leave_what_an_open_restore_needs(repo, monkeypatch, end):
    """Pruning gives the checkpoints other commits; git removes the old ones."""
    first, second = two_states(repo)
    for number in range(3, 6):
        save(repo, a=b"%d" % number)
    second = tree_bytes(repo)
    interrupt(repo, monkeypatch)
    ok(repo, "prune", "-y", "--keep-last", "1")
    git(repo, "gc", "-q", "--prune=now")
    ok(repo, "gc")
    assert len(ok(repo, "log")["checkpoints"]) == 2
    ok(repo, "prune", "-y", "--keep-last", "1")
    assert invoke(repo, "restore", end).returncode == 0
    assert tree_bytes(repo) == (first if end == "--continue" else second)


@ENDS
@pytest.mark.parametrize("opened_in", ["main", "linked"])
def test_housekeeping_in_another_work_tree_leaves_what_an_open_restore_needs(
    repo, monkeypatch, end, opened_in
):
    """Retention by a setting as well: each save prunes then."""
    linked = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", "-b", "other", linked)
    here, there = (repo, linked) if opened_in == "main" else (linked, repo)
    first, _ = two_states(here)
    for number in range(3, 6):
        save(here, a=b"%d" % number)
    last = tree_bytes(here)
    interrupt(here, monkeypatch)
    git(there, "config", "gitcp.maxCheckpoints", "1")
    for number in range(3):
        save(there, elsewhere=b"%d" % number)
    ok(there, "prune", "-y", "--keep-last", "1")
    for top in (there, here):
        ok(top, "gc")
        git(top, "gc", "-q", "--prune=now")
    assert invoke(here, "restore", end).returncode == 0
    assert tree_bytes(here) == (first if end == "--continue" else last)
    assert ok(there, "verify")["ok"]


@pytest.mark.parametrize("old", [False, True])
def test_other_ignore_rules_do_not_change_the_way_back(repo, monkeypatch, old):
    save(repo, **{".gitignore": b"*.o\n", "z": b"z"})
    (repo / "z").unlink()
    save(repo, **{".gitignore": b"", "f1": b"1", "f2": b"2"})
    before = tree_bytes(repo)
    interrupt(repo, monkeypatch)
    assert tree_bytes(repo) != before
    with (repo / ".git/info/exclude").open("a") as file:
        file.write("f*\n")
    if old:
        # It plans again, does not see the files, and must not say that they are back.
        as_written_by_0_1_0(repo)
        done = invoke(repo, "restore", "--abort")
        assert done.returncode == 3
        assert b"differs from the checkpoint" in done.stderr
        return
    assert invoke(repo, "restore", "--abort").returncode == 0
    assert tree_bytes(repo) == before


def test_an_open_restore_is_ended_when_its_checkpoints_cannot_be_read(
    repo, monkeypatch
):
    two_states(repo)
    interrupt(repo, monkeypatch)
    for path in (repo / ".git/objects").rglob("*"):
        if path.is_file():
            path.unlink()
    fails(repo, 15, "restore", "--continue")
    assert journal.is_open(repo / ".git/gitcp")
    done = invoke(repo, "restore", "--abort")
    assert done.returncode == 3
    assert b"its content cannot be read" in done.stderr
    assert not journal.is_open(repo / ".git/gitcp")


@ENDS
def test_a_damaged_target_does_not_stop_the_way_back(repo, monkeypatch, end):
    _, second = two_states(repo)
    interrupt(repo, monkeypatch)
    held = json.loads((repo / ".git/gitcp/restore.json").read_bytes())
    held["target"] = held["before"] = "1" * 40
    held["target_id"] = held["before_id"] = "0" * 12
    (repo / ".git/gitcp/restore.json").write_text(json.dumps(held))
    if end == "--continue":
        said = fails(repo, 15, "restore", end)
        assert "--abort" in said
    done = invoke(repo, "restore", "--abort")
    assert done.returncode == 3
    assert b"can no longer be read" in done.stderr
    assert tree_bytes(repo) == second
    assert not journal.is_open(repo / ".git/gitcp")


def test_the_result_is_compared_with_the_whole_target(repo, monkeypatch):
    """Also paths for which there was no step."""
    two_states(repo)
    real = applying.apply

    def meanwhile(*args, **options):
        left = real(*args, **options)
        (repo / "README.md").write_bytes(b"by another program")
        return left

    monkeypatch.setattr(applying, "apply", meanwhile)
    done = invoke(repo, "restore", "-y", "1")
    assert done.returncode == 3
    assert b"README.md: differs from the checkpoint" in done.stderr


def test_what_a_killed_restore_moved_aside_comes_back(repo, monkeypatch):
    two_states(repo)

    def stopped(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        from gitcp.worktree import replace

        patch.setattr(replace, "_unchanged", stopped)
        assert invoke(repo, "restore", "-y", "1").returncode == 130
    [aside] = repo.glob(".gitcp-tmp-*")
    aside.write_bytes(b"edited meanwhile")
    done = invoke(repo, "restore", "--abort")
    assert done.returncode == 3
    assert b"edited meanwhile" in {path.read_bytes() for path in repo.glob("[abc]")}
    assert not list(repo.glob(".gitcp-tmp-*"))


def test_a_limit_of_the_system_is_no_bug(repo, monkeypatch):
    two_states(repo)

    def refused(*_: object) -> bool:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(renames, "_attempt", refused)
    assert b"ulimit -n" in invoke(repo, "restore", "-y", "1").stderr
    shutil.rmtree(repo / ".git/gitcp/scan")
    monkeypatch.undo()
    assert invoke(repo, "restore", "--continue").returncode == 0
