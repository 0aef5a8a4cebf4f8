"""`git refs migrate` beside savers that are killed: what was acknowledged is there."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.gitrepo import (
    commit_all,
    git,
    gitcp_argv,
    gitcp_environment,
    run_gitcp,
    write_files,
)
from tests.support.needs import needs_migrate

SECONDS = float(os.environ.get("SECONDS") or 30)


def save(top: Path, session: str) -> subprocess.Popen:
    return subprocess.Popen(
        gitcp_argv("save", "-s", session, "--allow-empty", "--json"),
        cwd=top,
        env=gitcp_environment({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_eight_savers_and_migrations_without_end(tmp_path, form):
    needs_migrate()
    chance = random.Random(os.environ.get("SEED"))
    top = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", f"--object-format={form}", top)
    write_files(top, {"f": b"0"})
    commit_all(top)
    until = time.monotonic() + SECONDS
    acknowledged: dict[str, list[str]] = defaultdict(list)
    wrong: list[str] = []

    def saver(number: int) -> None:
        session = f"s{number % 4}"
        while time.monotonic() < until:
            process = save(top, session)
            if chance.random() < 0.3:
                try:
                    process.wait(chance.random())
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            if process.returncode == 0:
                ident = json.loads(out)["checkpoint"]["id"]
                acknowledged[session].append(ident)
            elif process.returncode > 0 and b"git refs migrate" not in err:
                wrong.append(err.decode())

    def reader() -> None:
        while time.monotonic() < until:
            done = run_gitcp(top, "log", "--all", "--json")
            read.append(done.returncode)
            if done.returncode:
                wrong.append(done.stderr.decode())

    read: list[int] = []
    savers = [threading.Thread(target=saver, args=(number,)) for number in range(8)]
    savers.append(threading.Thread(target=reader))
    for thread in savers:
        thread.start()
    migrations = 0
    while time.monotonic() < until:
        time.sleep(chance.random())
        storage = "files" if migrations % 2 else "reftable"
        git(top, "refs", "migrate", f"--ref-format={storage}")
        migrations += 1
    for thread in savers:
        thread.join()
    assert migrations > 1
    assert read
    assert wrong == []
    assert acknowledged
    for session, idents in acknowledged.items():
        told = git(top, "log", "--format=%B", f"refs/gitcp/s/{session}/main").decode()
        there = re.findall(r"^Gitcp-Checkpoint: (\w+)$", told, re.MULTILINE)
        assert set(idents) <= set(there)
    done = run_gitcp(top, "verify")
    assert done.returncode == 0, done.stdout
    git(top, "fsck", "--strict", "--no-dangling")
