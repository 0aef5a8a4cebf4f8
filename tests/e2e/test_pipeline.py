"""docs/examples/million.py, killed at random: every record once."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import gitcp
from tests.support.gitrepo import gitcp_environment, make_repo
from tests.support.inprocess import ok

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "million.py"


def start(repo: Path, records: int, every: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            sys.executable,
            "-P",
            EXAMPLE,
            repo,
            repo.with_name("world.db"),
            f"--records={records}",
            f"--every={every}",
        ],
        env=gitcp_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def killed_five_times(repo: Path, records: int, every: int, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        process = start(repo, records, every)
        assert process.stdout is not None
        for _ in range(chance.randrange(1, max(2, records // every // 8))):
            process.stdout.readline()
        try:
            # Anywhere within what takes about this long.
            process.wait(chance.random() * 0.1)
        except subprocess.TimeoutExpired:
            process.kill()
        _, err = process.communicate(timeout=60)
        assert b"Traceback" not in err, err
    process = start(repo, records, every)
    _, err = process.communicate(timeout=3000)
    assert process.returncode == 0, err
    database = sqlite3.connect(repo.with_name("world.db"))
    asked = "select count(*), count(distinct id), min(id), max(id) from done"
    row = database.execute(asked).fetchone()
    database.close()
    assert row == (records, records, 0, records - 1)
    lines = [
        line
        for path in sorted((repo / "squares").iterdir())
        for line in path.read_text().splitlines()
    ]
    assert lines == [f"{number},{number * number}" for number in range(records)]
    last = gitcp.open(repo).session("million").last
    assert last is not None
    assert last.position == {"offset": -(-records // every)}
    assert ok(repo, "verify")["ok"]


def test_a_pipeline_killed_five_times_processes_every_record_once(tmp_path):
    repo = make_repo(tmp_path / "repo", {"a": b"a"})
    killed_five_times(repo, 3_000, 75, seed=7)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_pipeline_of_a_million_records_killed_five_times(tmp_path):
    repo = make_repo(tmp_path / "repo", {"a": b"a"})
    killed_five_times(repo, 1_000_000, 5_000, seed=7)
