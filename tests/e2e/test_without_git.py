"""A folder without git: from its first save to the day when it becomes a repository."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gitrepo import (
    git,
    gitcp_argv,
    gitcp_environment,
    run_gitcp,
    tree_bytes,
    write_files,
)


@pytest.fixture
def folder(tmp_path):
    top = tmp_path / "notes"
    write_files(top, {"plan.txt": b"one\n", "src/a.py": b"a = 1\n"})
    return top


def log(cwd: Path) -> dict[int, tuple[str, str | None]]:
    done = run_gitcp(cwd, "log", "--full", "--json")
    rows = json.loads(done.stdout)["checkpoints"]
    return {row["number"]: (row["id"], row["note"]) for row in rows}


def test_from_a_folder_to_a_repository(folder, sealed):
    run_gitcp(folder, "save", "--init", "-m", "first")
    write_files(folder, {"plan.txt": b"two\n"})
    run_gitcp(folder / "src", "save", "-m", "second", "--decision", "two, not one")
    before = tree_bytes(folder)
    (folder / "plan.txt").unlink()
    run_gitcp(folder, "restore", "2", "--yes")
    assert tree_bytes(folder) == before
    known = log(folder)
    assert known[1][1] == "first"
    assert known[2][1] == "second"

    git(folder, "init", "--quiet")
    said = run_gitcp(folder, "log").stderr
    assert b"`gitcp adopt`" in said
    run_gitcp(folder, "adopt")
    assert log(folder) == known
    assert not any((sealed / ".local/state/gitcp/folders").glob("[0-9a-f]*"))
    assert run_gitcp(folder, "log").stderr == b""
    run_gitcp(folder, "undo", "--yes")
    assert not (folder / "plan.txt").exists()
    run_gitcp(folder, "restore", "1", "--yes")
    assert (folder / "plan.txt").read_bytes() == b"one\n"
    origins = json.loads(run_gitcp(folder, "show", "1", "--json").stdout)
    # The key came along: nothing of it counts as made elsewhere.
    assert not any(origins["checkpoint"]["origin"].values())
    run_gitcp(folder, "verify")


def test_a_terminal_is_asked(folder, sealed):
    assert "gitcp puts nothing into" in answered(folder, b"n\n", "save")
    assert not (sealed / ".local/state/gitcp/folders").exists()
    answered(folder, b"y\n", "save", "-m", "first")
    assert log(folder)[1][1] == "first"
    moved = folder.rename(folder.with_name("moved"))
    assert "Use its checkpoints" in answered(moved, b"y\n", "log")
    assert log(moved)[1][1] == "first"


def answered(cwd: Path, answer: bytes, *args: str) -> str:
    """Runs gitcp at a terminal, and answers its question; returns what it shows."""
    main, other = os.openpty()
    process = subprocess.Popen(
        gitcp_argv(*args),
        cwd=cwd,
        env={**gitcp_environment(), "COLUMNS": "200"},
        stdin=other,
        stdout=other,
        stderr=other,
    )
    os.close(other)
    shown = b""
    sent = False
    while True:
        ready, _, _ = select.select([main], [], [], 60)
        assert ready, shown
        try:
            block = os.read(main, 4096)
        except OSError:
            # Linux says so where the other end was closed.
            break
        if not block:
            break
        shown += block
        if not sent and b"[y/N]" in shown:
            os.write(main, answer)
            sent = True
    os.close(main)
    process.wait()
    return shown.decode().replace("\r\n", " ")


def test_hooks_do_nothing_before_the_first_save(folder, sealed):
    event = {"session_id": "s-1", "cwd": str(folder), "hook_event_name": "Stop"}
    call = ("hook", "claude-code", "Stop")
    run_gitcp(folder, *call, input=json.dumps(event).encode())
    assert not (sealed / ".local/state/gitcp/folders").exists()
    run_gitcp(folder, "save", "--init", "-m", "first")
    write_files(folder, {"plan.txt": b"two\n"})
    run_gitcp(folder, *call, input=json.dumps(event).encode())
    assert len(log(folder)) == 2


def test_install_says_that_hooks_do_nothing_here(folder):
    said = run_gitcp(folder, "install", "claude-code").stderr
    assert b"`gitcp save --init`" in said
    run_gitcp(folder, "save", "--init")
    assert b"save --init" not in run_gitcp(folder, "install", "claude-code").stderr
    done = run_gitcp(folder, "install", "git-hooks")
    assert done.returncode == 10
    assert b"git init" in done.stderr


def test_python_opens_the_store_of_a_folder(folder):
    script = """
import gitcp
try:
    gitcp.open(".")
except gitcp.NotARepositoryError:
    store = gitcp.open(".", init=True)
session = store.session("notes")
first = session.save(note="from Python")
open("plan.txt", "w").write("changed")
session.restore(session.plan_restore(first))
print(open("plan.txt").read(), end="")
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=gitcp_environment(),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"one\n"
