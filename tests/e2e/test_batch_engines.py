"""The examples for Ray and Prefect: killed in between, and started again."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gitcp
from tests.support.gitrepo import gitcp_environment

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"
RECORDS = 300


def start(engine: str, repo: Path, log: Path) -> subprocess.Popen[bytes]:
    with (log.parent / "errors").open("ab") as errors:
        return subprocess.Popen(
            [
                *(sys.executable, EXAMPLES / f"{engine}_batch.py", repo, log),
                *("--records", str(RECORDS), "--workers", "2"),
            ],
            env=os.environ
            | gitcp_environment()
            | {
                "PREFECT_HOME": str(log.parent / "prefect"),
                "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
                "DO_NOT_TRACK": "1",
            },
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )


def charged(log: Path) -> list[int]:
    return [int(one) for one in log.read_text().split()] if log.exists() else []


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["ray", "prefect"])
def test_a_killed_program_goes_on_and_repeats_no_effect(repo, tmp_path, engine):
    if importlib.util.find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed: pip install {engine}")
    log = tmp_path / "log"
    program = start(engine, repo, log)
    while len(charged(log)) < RECORDS // 3:
        assert program.poll() is None, (tmp_path / "errors").read_text()
        time.sleep(0.01)
    # All at once, as on a machine that goes down.
    os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    before = len(charged(log))
    again = start(engine, repo, log)
    status = again.wait(timeout=120)
    found = charged(log)
    assert len(found) == len(set(found))
    assert before < RECORDS
    lines = {line.split(",")[0] for line in (repo / "squares.csv").read_text().split()}
    last = gitcp.open(repo).session(engine).last
    assert last is not None
    if status == 0:
        assert sorted(found) == list(range(RECORDS))
        assert lines == set(map(str, range(RECORDS)))
        assert last.position == {"offset": RECORDS}
    else:
        # A step that the kill interrupted is left out, and reported.
        assert "left out" in (tmp_path / "errors").read_text()
        assert RECORDS - 4 <= len(lines) < RECORDS
