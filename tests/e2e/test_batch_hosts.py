"""A batch whose workers are on two hosts, which lose each other while it runs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import gitcp
from tests.support.gitrepo import PATIENCE, gitcp_environment
from tests.support.hosts import Cable, two_hosts
from tests.support.servers import Host

RECORDS = 400
PORT = 8786

# `charge` says which host it ran on. It reaches outside of the project: once for each record.
PROGRAM = """
import functools, sys, time
from pathlib import Path
from distributed import Client, get_worker
import gitcp

def charge(log, number):
    with log.open("a") as file:
        file.write(f"{number} {get_worker().address}\\n")
    time.sleep(0.02)
    return number * number

def work(session, log, number):
    return session.step("charge", charge, log, number)

repo, log, records = Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
session = gitcp.open(repo).session("hosts")
with (
    Client(sys.argv[1]) as client,
    session.batch(range(records), executor=client.get_executor()) as batch,
    (repo / "squares.csv").open("a") as file,
):
    for number, square in batch.map(functools.partial(work, session, log), chunksize=4):
        file.write(f"{number},{square}\\n")
"""


@pytest.fixture
def cable() -> Iterator[Cable]:
    with two_hosts() as cable:
        yield cable


class Cluster:
    """A scheduler and a worker on one host, and a worker on the other."""

    def __init__(self, cable: Cable, directory: Path, stack: ExitStack) -> None:
        self.address = f"tcp://{cable.near.address}:{PORT}"
        self._directory = directory
        self._stack = stack
        self.start(
            cable.near,
            *("-m", "distributed.cli.dask_scheduler", "--no-dashboard"),
            *("--host", cable.near.address, "--port", str(PORT)),
        )
        for host in (cable.near, cable.far):
            self.start(
                host,
                *("-m", "distributed.cli.dask_worker", self.address, "--no-dashboard"),
                *("--host", host.address, "--nworkers", "1", "--nthreads", "1"),
                *("--local-directory", str(directory / host.address)),
            )

    def start(self, host: Host, *args: str) -> subprocess.Popen[bytes]:
        output = self._stack.enter_context((self._directory / "output").open("ab"))
        process = subprocess.Popen(
            [*host.prefix, sys.executable, *args],
            env=gitcp_environment(
                {
                    # A host that is away is given up after a time that a test can wait.
                    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s",
                    "HOME": str(self._directory),
                }
            ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process


def charged(log: Path) -> list[tuple[int, str]]:
    """The records that were charged, each with the host that did it."""
    lines = log.read_text().splitlines() if log.exists() else []
    pairs = (line.split() for line in lines)
    return [(int(number), address.split(":")[1][2:]) for number, address in pairs]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_host_that_is_unreachable_costs_no_record_and_repeats_no_effect(
    repo, tmp_path, cable
):
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("dask[distributed] is not installed")
    log, script = tmp_path / "log", tmp_path / "program.py"
    script.write_text(PROGRAM)
    hosts = {cable.near.address, cable.far.address}
    with ExitStack() as stack:
        cluster = Cluster(cable, tmp_path, stack)
        program = cluster.start(
            cable.near,
            *(str(script), cluster.address, str(repo), str(log), str(RECORDS)),
        )

        def wait_for(what: str, *, cut: int = 0) -> None:
            end = time.monotonic() + PATIENCE
            while True:
                found = charged(log)[cut:]
                if what == "both" and {host for _, host in found} == hosts:
                    return
                if what == "near" and found and found[-1][1] == cable.near.address:
                    return
                assert program.poll() is None, (tmp_path / "output").read_text()
                assert time.monotonic() < end, (tmp_path / "output").read_text()
                time.sleep(0.01)

        wait_for("both")
        cable.cut()
        before = len(charged(log))
        assert before < RECORDS
        wait_for("near", cut=before + 8)
        status = program.wait(timeout=PATIENCE)
        assert status == 0, (tmp_path / "output").read_text()
        cable.mend()
    numbers = [number for number, _ in charged(log)]
    assert sorted(numbers) == list(range(RECORDS))
    lines = (repo / "squares.csv").read_text().split()
    assert sorted(lines) == sorted(f"{n},{n * n}" for n in range(RECORDS))
    last = gitcp.open(repo).session("hosts").last
    assert last is not None
    assert last.position == {"offset": RECORDS}
