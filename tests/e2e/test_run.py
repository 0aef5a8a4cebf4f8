"""`gitcp run`: what a command breaks is kept, and can be taken back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.gitrepo import (
    gitcp_argv,
    gitcp_environment,
    run_gitcp,
    tree_bytes,
)


def log(repo):
    done = run_gitcp(repo, "log", "--json")
    return json.loads(done.stdout)["checkpoints"]


def decisions(repo, what):
    done = run_gitcp(repo, "show", what, "--json")
    return json.loads(done.stdout)["decisions"]


def test_a_command_that_succeeds_leaves_one_checkpoint(repo):
    (repo / "new").write_bytes(b"x")
    done = run_gitcp(repo, "run", "--", "sh", "-c", "echo out; echo err >&2; touch y")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")
    (one,) = log(repo)
    assert one["trigger"] == "before-run"


def test_a_failure_is_kept_with_status_and_end_of_output(repo):
    script = (
        "seq 1 5000; printf 'last \\377 words\\n' >&2; echo broken > README.md; exit 7"
    )
    done = run_gitcp(repo, "run", "-m", "the suite", "--", "sh", "-c", script)
    assert done.returncode == 7
    assert done.stdout == b"".join(b"%d\n" % n for n in range(1, 5001))
    assert b"last \xff words\n" in done.stderr
    failed, before = log(repo)
    assert before["note"] == "the suite"
    assert failed["trigger"] == "test-failure"
    assert "7" in failed["note"]
    (tried,) = decisions(repo, failed["id"])
    assert tried["kind"] == "tried"
    assert tried["why"].endswith("last \N{REPLACEMENT CHARACTER} words")
    assert "\n4999\n5000\n" in tried["why"]
    assert len(tried["why"].encode()) < 2200
    assert (repo / "README.md").read_bytes() == b"broken\n"


def test_rollback_puts_the_files_back_and_keeps_the_lesson(repo):
    run_gitcp(repo, "save")
    before = tree_bytes(repo)
    done = run_gitcp(
        repo,
        "run",
        "--rollback-on-failure",
        "--",
        "sh",
        "-c",
        "rm -rf src; echo no > new; false",
    )
    assert done.returncode == 1
    assert tree_bytes(repo) == before
    back, failed, *_ = log(repo)
    assert (back["trigger"], failed["trigger"]) == ("restore", "test-failure")
    context = run_gitcp(repo, "context").stdout
    assert b"exit status 1" in context
    assert run_gitcp(repo, "undo", "--yes").returncode == 0
    assert (repo / "new").read_bytes() == b"no\n"


def test_what_is_said_of_a_failure_names_numbers(repo):
    (repo / "README.md").write_text("before\n")
    failed = run_gitcp(repo, "run", "--", "sh", "-c", "echo bad >README.md; exit 1")
    assert b"`gitcp restore 1` restores the state before it" in failed.stderr
    run_gitcp(repo, "restore", "1", "-y")
    bad = ("sh", "-c", "echo worse >README.md; exit 1")
    back = run_gitcp(repo, "run", "--rollback-on-failure", "--", *bad)
    assert b"`gitcp undo` restores what the command left" in back.stderr
    assert (repo / "README.md").read_text() == "before\n"
    assert run_gitcp(repo, "undo", "-y").returncode == 0
    assert (repo / "README.md").read_text() == "worse\n"


def test_json_keeps_stdout_for_the_document(repo):
    done = run_gitcp(repo, "run", "--json", "--", "sh", "-c", "echo loud; exit 3")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit"]) == (3, 3)
    assert document["failed"]["trigger"] == "test-failure"
    assert document["restored"] is None
    assert b"loud" in done.stderr


def test_options_of_the_command_are_its_own(repo):
    done = run_gitcp(repo, "run", "--", "echo", "--json", "-m", "x")
    assert (done.returncode, done.stdout) == (0, b"--json -m x\n")


def test_stdin_is_the_commands(repo):
    done = run_gitcp(repo, "run", "--", "cat", input=b"handed through")
    assert done.stdout == b"handed through"


@pytest.mark.parametrize("how", [(), ("--step", "one")])
def test_a_command_that_does_not_start_has_the_status_a_shell_gives_it(repo, how):
    (repo / "not-executable").write_text("text")
    for name, status in (
        ("no-such-command-here", 127),
        ("./no-such-file", 127),
        ("./not-executable", 126),
        (".git", 126),
    ):
        word = f"./{name}" if name == ".git" else name
        done = run_gitcp(repo, "run", *how, "--", word)
        assert done.returncode == status, (word, done)
        assert name.encode() in done.stderr


def test_a_killed_command_has_the_status_a_shell_gives_it(repo):
    done = run_gitcp(repo, "run", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 128 + signal.SIGKILL


def test_a_background_process_is_not_waited_for(repo):
    started = time.monotonic()
    done = run_gitcp(repo, "run", "--", "sh", "-c", "sleep 30 & echo started")
    assert (done.returncode, done.stdout) == (0, b"started\n")
    assert time.monotonic() - started < 20


def test_an_interrupt_reaches_the_command_and_its_failure_is_kept(repo):
    process = subprocess.Popen(
        gitcp_argv(
            "run", "--", "sh", "-c", "trap 'exit 9' INT; echo up; sleep 20 & wait"
        ),
        cwd=repo,
        env=gitcp_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 9
    assert log(repo)[0]["trigger"] == "test-failure"


def started(repo: Path, *args: str) -> subprocess.Popen[bytes]:
    """A gitcp whose command says `up` when it is at work."""
    # Under nohup, tests begin with a signal that is ignored, and so would gitcp.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        process = subprocess.Popen(
            gitcp_argv("run", *args),
            cwd=repo,
            env=gitcp_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_ends_gitcp_ends_the_command(repo, number):
    """As `timeout` and service managers do: nothing goes on unseen behind it."""
    process = started(
        repo, "--", "sh", "-c", "trap 'exit 9' TERM HUP; echo up; sleep 60 & wait"
    )
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 9
    assert log(repo)[0]["trigger"] == "test-failure"


@pytest.mark.parametrize(
    ("signals", "status"), [("INT", 130), ("TERM", 143), ("KILL", 137)]
)
def test_a_step_whose_command_a_signal_ended_is_not_run_again_without_asking(
    repo, signals, status
):
    """The mail may have left before Ctrl-C."""
    mails = repo.with_name("mails")
    act = f'echo mail >> "{mails}"; kill -{signals} $$'
    words = ("run", "--step", "mail", "--", "sh", "-c", act)
    done = run_gitcp(repo, *words)
    assert done.returncode == status
    assert (
        b"whether it took effect: `gitcp steps answer mail done|failed|again`"
        in done.stderr
    )
    again = run_gitcp(repo, *words)
    assert again.returncode == 23, again.stderr
    assert mails.read_text() == "mail\n"
    assert run_gitcp(repo, "steps", "answer", "mail", "done").returncode == 0
    assert run_gitcp(repo, *words).returncode == 0
    assert mails.read_text() == "mail\n"
    # What only computes is run again, as usual.
    count = ("run", "--step", "count", "--effect", "none", *words[3:])
    assert [run_gitcp(repo, *count).returncode for _ in range(2)] == [status] * 2


def test_a_step_that_is_told_to_end_is_recorded(repo):
    process = started(
        repo, "--step", "mail", "--", "sh", "-c", "echo up; exec sleep 60"
    )
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    done = run_gitcp(repo, "steps", "--json")
    (step,) = json.loads(done.stdout)["steps"]
    assert (step["state"], step["error"]) == (
        "unknown",
        "CommandKilledError: exit status 143: up",
    )
