"""A restore of 22,500 files by the bulk path: killed at random moments.

SEED=1 KILLS=50 pytest -m slow tests/fault/test_full_size.py
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.gitrepo import (
    git,
    gitcp_argv,
    gitcp_environment,
    make_repo,
    run_gitcp,
    write_files,
)

SEED = int(os.environ.get("SEED") or 1)
# Of each part; ten parts make 500.
KILLS = int(os.environ.get("KILLS") or 50)
FILES = 22_500
# Seconds for a restore that is not killed, on any machine.
LIMIT = 300


def content(number: int) -> bytes:
    return b"line %d\n" % number * (1 + number % 40)


def whole() -> dict[str, bytes]:
    return {f"d{n % 150}/e{n % 7}/f{n}.txt": content(n) for n in range(FILES)}


def must(repo: Path, *args: str) -> None:
    done = run_gitcp(repo, *args)
    assert done.returncode == 0, (args, done.stderr)


def wreck(repo: Path) -> None:
    for number in range(150):
        shutil.rmtree(repo / f"d{number}", ignore_errors=True)


def there(repo: Path) -> dict[str, bytes]:
    return {
        os.path.relpath(os.path.join(above, name), repo): Path(above, name).read_bytes()
        for above, _, names in os.walk(repo)
        if ".git" not in Path(above).relative_to(repo).parts
        for name in names
    }


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    make_repo(repo, {"kept.txt": b"kept\n"})
    write_files(repo, whole())
    must(repo, "save", "-m", "whole")
    return repo


def lasted(repo: Path, after: float) -> float | None:
    """Starts the restore and kills it; returns its seconds if it ended before that."""
    began = time.monotonic()
    process = subprocess.Popen(
        gitcp_argv("restore", "1", "--yes"),
        cwd=repo,
        env=gitcp_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(10))
def test_a_full_size_restore_that_is_killed_can_be_ended_both_ways(saved, part):
    repo, chance = saved, random.Random(f"{SEED} {part}")
    full = whole() | {"kept.txt": b"kept\n"}
    bare = {"kept.txt": b"kept\n"}
    wreck(repo)
    takes = lasted(repo, LIMIT)
    assert takes is not None
    assert there(repo) == full
    met = opened = 0
    for number in range(KILLS):
        wreck(repo)
        seconds = lasted(repo, chance.uniform(0.05, takes * 1.1))
        if seconds is None:
            met += 1
        else:
            # Another process may have slowed the first one down.
            takes = seconds
        if (repo / ".git/gitcp/restore.json").exists():
            opened += 1
            how = chance.choice(("--continue", "--abort"))
            must(repo, "restore", how)
            found = there(repo)
            # Past the commit point nothing is taken back.
            assert found == full or (how == "--abort" and found == bare), (number, how)
        else:
            assert there(repo) in (full, bare), number
    print(f"SEED={SEED}, part {part}: {met} of {KILLS} killed, {opened} left open")
    assert met > KILLS // 3
    must(repo, "verify")
    git(repo, "fsck", "--strict")
