"""Many agents in many clones, and a remote that refuses the seventh push of a minute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench" / "fleet.py"
# A minute is six intervals: of the remote's limit, and between checkpoints of an agent.
SIZE = ("--clones", "2", "--agents", "8", "--rounds", "1", "--interval", "2")


@pytest.mark.slow
@pytest.mark.parametrize(
    "trouble", [(), ("--kill", "5", "--away", "4")], ids=["none", "killed-and-away"]
)
def test_every_acknowledged_checkpoint_arrives_in_its_line(trouble):
    done = subprocess.run(
        [sys.executable, BENCH, *SIZE, *trouble],
        cwd=BENCH.parent,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "checkpoints: 8; arrived: 8" in done.stdout
