"""status, du, gc, doctor, config and completion, as processes."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from gitcp import durable
from gitcp.git.registry import AT_MOST
from tests.support.forms import lock_of
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_argv,
    gitcp_environment,
    make_repo,
    run_gitcp,
    tree_bytes,
    write_files,
)


def document(repo, *args):
    done = run_gitcp(repo, *args, "--json")
    return json.loads(done.stdout)


def check(repo, name):
    (found,) = [
        one for one in document(repo, "doctor")["checks"] if one["name"] == name
    ]
    return found


# --- status


def test_status_tells_what_the_next_save_would_add(repo):
    assert document(repo, "status")["checkpoint"] is None
    run_gitcp(repo, "save", "-m", "start")
    run_gitcp(repo, "decide", "sqlite", "--why", "one file")
    write_files(repo, {"README.md": b"changed\n", "\x1b[31mnew": b"x"})
    (repo / "latest").unlink()
    found = document(repo, "status")
    assert (found["session"], found["branch"], found["changed"]) == ("main", "main", 3)
    assert {one["status"] for one in found["changes"]} == {
        "added",
        "modified",
        "deleted",
    }
    assert [one["text"] for one in found["pending"]] == ["sqlite"]
    shown = run_gitcp(repo, "status").stdout
    assert b"3 files changed" in shown
    assert b"1 reason waits" in shown
    assert b"sqlite" in run_gitcp(repo, "-v", "status").stdout
    assert b"\x1b" not in shown
    run_gitcp(repo, "save")
    assert document(repo, "status")["changed"] == 0


def test_status_writes_no_object(repo):
    run_gitcp(repo, "save")
    write_files(repo, {f"file{number}": b"%d" % number for number in range(30)})
    before = tree_bytes(repo / ".git" / "objects")
    assert b"30 files changed" in run_gitcp(repo, "status").stdout
    assert b"file29" in run_gitcp(repo, "-v", "status").stdout
    assert tree_bytes(repo / ".git" / "objects") == before


# --- du and gc


def test_du_counts_what_only_checkpoints_hold(repo):

    run_gitcp(repo, "save")
    small = document(repo, "du")
    write_files(repo, {"big": os.urandom(100_000)})
    run_gitcp(repo, "save", "-s", "second")
    found = document(repo, "du")
    assert small["only"] < 20_000
    assert 100_000 < found["only"] < 130_000
    names = [one["name"] for one in found["sessions"]]
    assert names == ["main", "second"]
    assert found["packs"]["count"] == 2
    assert b"second" in run_gitcp(repo, "du").stdout


def test_du_of_nothing_is_nothing(repo):
    assert document(repo, "du")["only"] == 0


def test_gc_merges_packs_and_loses_nothing(repo):
    for number in range(5):
        write_files(repo, {"a": b"%d" % number})
        run_gitcp(repo, "save")
    found = document(repo, "gc")
    assert (found["packs"]["before"], found["packs"]["after"]) == (5, 1)
    assert run_gitcp(repo, "verify").returncode == 0
    git(repo, "fsck", "--strict")
    assert run_gitcp(repo, "gc").stdout == b"nothing to merge or remove\n"


# --- doctor


def test_doctor_finds_a_sound_repository_well(repo):
    run_gitcp(repo, "save")
    done = run_gitcp(repo, "doctor")
    assert done.returncode == 0, done.stdout
    assert b"!!" not in done.stdout


def test_doctor_names_a_mirror_remote(repo):
    git(repo, "remote", "add", "--mirror=fetch", "copy", "/nowhere")
    found = check(repo, "mirrors")
    assert not found["ok"]
    assert "copy" in found["detail"]
    assert run_gitcp(repo, "doctor").returncode == 1


def test_doctor_tells_of_a_ref_lock_and_leaves_it(repo):
    run_gitcp(repo, "save")
    lock = lock_of(repo, "refs/gitcp/s/main/main")
    lock.write_bytes(b"")
    found = check(repo, "ref-locks")
    assert not found["ok"]
    assert str(lock) in found["detail"]
    assert lock.exists()


def test_doctor_clears_what_a_dead_process_left(repo):
    run_gitcp(repo, "save")
    dead = repo / ".git" / "gitcp" / "tmp" / "0123456789abcdef"
    dead.mkdir()
    (dead / "owner").write_bytes(b"")
    assert "1 killed" in check(repo, "left-over")["detail"]
    assert not dead.exists()


def test_doctor_outside_of_a_repository_says_so(tmp_path):
    done = run_gitcp(tmp_path, "doctor")
    assert done.returncode == 1
    assert b"git init" in done.stdout


# --- config


def test_config_is_gits_own(repo):
    assert run_gitcp(repo, "config", "MAXFILESIZE", "3m").returncode == 0
    assert git_line(repo, "config", "gitcp.maxFileSize") == "3m"
    assert run_gitcp(repo, "config", "maxFileSize").stdout == b"3m\n"
    listed = document(repo, "config")["settings"]
    (size,) = [one for one in listed if one["name"] == "maxFileSize"]
    assert (size["origin"], size["values"]) == ("config", ["3m"])
    env = {"GITCP_MAX_FILE_SIZE": "7k"}
    assert run_gitcp(repo, "config", "maxFileSize", env=env).stdout == b"7k\n"
    assert run_gitcp(repo, "config", "maxFileSize", "--unset").returncode == 0
    assert run_gitcp(repo, "config", "maxFileSize").stdout == b"2g\n"


def test_config_takes_many_globs(repo):
    run_gitcp(repo, "config", "include", "*.log")
    run_gitcp(repo, "config", "--add", "include", "build/*")
    assert run_gitcp(repo, "config", "include").stdout == b"*.log\nbuild/*\n"


def test_config_refuses_what_makes_no_sense(repo):
    done = run_gitcp(repo, "config", "maxFileSiz")
    assert done.returncode == 2
    assert b"did you mean `maxFileSize`" in done.stderr
    assert run_gitcp(repo, "config", "maxFileSize", "big").returncode == 2
    assert run_gitcp(repo, "config", "maxFileSize", "--unset").returncode == 2


def test_config_can_mend_a_setting_that_makes_no_sense(repo):
    git(repo, "config", "gitcp.maxFileSize", "nonsense")
    assert run_gitcp(repo, "save").returncode == 2
    assert run_gitcp(repo, "config", "maxFileSize", "1m").returncode == 0
    assert run_gitcp(repo, "save").returncode == 0


# --- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(tmp_path, shell):
    done = run_gitcp(tmp_path, "completion", shell)
    assert done.returncode == 0
    assert b"_GITCP_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("gitcp veri", b"verify"),
        ("gitcp save --lab", b"--label"),
        ("gitcp nope x", b""),
    ],
)
def test_commands_and_options_are_completed(tmp_path, words, expected):
    env = {
        "_GITCP_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        gitcp_argv(),
        cwd=tmp_path,
        env=gitcp_environment(env),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert expected in done.stdout
    assert done.stderr == b""


def test_the_bash_script_is_bash(tmp_path):
    script = run_gitcp(tmp_path, "completion", "bash").stdout
    assert subprocess.run(["bash", "-n"], input=script, check=False).returncode == 0


def test_status_works_before_the_first_commit(tmp_path):
    repo = make_repo(tmp_path / "fresh")
    write_files(repo, {"a": b"1"})
    assert b"Nothing was saved here yet" in run_gitcp(repo, "status").stdout


def test_packs_are_merged_after_a_save_that_does_not_wait_for_it(repo):
    env = {"GITCP_BACKGROUND": "true"}
    directory = repo / ".git" / "objects" / "pack"
    for number in range(AT_MOST):
        write_files(repo, {"a": b"%d" % number})
        run_gitcp(repo, "save", env=env)
    assert len(list(directory.glob("*.pack"))) == AT_MOST
    write_files(repo, {"a": b"last"})
    run_gitcp(repo, "save", env=env)
    note = repo / ".git" / "gitcp" / "upkeep.json"
    until = time.monotonic() + 100
    while b"left" not in note.read_bytes():
        assert time.monotonic() < until
        time.sleep(0.01)
    # It ends with its lock.
    with durable.locked(note.with_suffix(".lock"), what="the run", timeout=100):
        assert len(list(directory.glob("*.pack"))) < AT_MOST // 2
    assert document(repo, "verify")["problems"] == []
