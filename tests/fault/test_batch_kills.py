"""Batches whose workers and whose program are killed, on processes and on Dask."""

from __future__ import annotations

import compileall
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gitcp
from tests.support.gitrepo import gitcp_environment

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
LEFT_OUT = 23
# Executors give up where nothing comes back between kills; the next run goes on.
ENDINGS = ("BrokenProcessPool", "KilledWorker", "BusyError", "CancelledError")


def children(of: int) -> list[int]:
    with suppress(OSError):
        found = Path(f"/proc/{of}/task/{of}/children").read_text().split()
        return [int(one) for one in found]
    return []


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """Each start finds the package as an installed one is, in bytecode."""
    compileall.compile_dir(ROOT / "gitcp", quiet=1)
    compileall.compile_dir(ROOT / "tests/support", quiet=1)


class Killed:
    """Runs the program again and again, and kills it or one of its workers."""

    def __init__(
        self, repo: Path, records: int, *more: str, workers: Any = None
    ) -> None:
        self.repo, self.records, self.more = repo, records, more
        self.workers: Callable[[int], list[int]] = workers or self.announced
        self.chance = random.Random(18)
        self.parents = self.others = 0

    def start(self, unknown: str = "leave") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.support.charging"),
                *(str(self.repo), str(self.records), *self.more),
            ],
            env=os.environ
            | gitcp_environment({"PYTHONPATH": str(ROOT), "UNKNOWN": unknown}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lines(self, name: str) -> list[str]:
        path = self.repo.parent / name
        return path.read_text().splitlines() if path.exists() else []

    def announced(self, program: int) -> list[int]:
        """Returns its workers; git is a child of it, too, and its death ends a save."""
        workers = set(map(int, self.lines("workers")))
        return [child for child in children(program) if child in workers]

    def kill(self, program: subprocess.Popen[str]) -> None:
        workers = self.workers(program.pid)
        if workers and self.chance.randrange(4):
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(workers), signal.SIGKILL)
            self.others += 1
        else:
            program.kill()
            self.parents += 1

    def run(self, due: Callable[[], bool]) -> set[int]:
        """Kills whenever it is due; returns the numbers of the records left out."""
        program = self.start()
        while True:
            try:
                out, err = program.communicate(timeout=0.02)
            except subprocess.TimeoutExpired:
                if due():
                    self.kill(program)
                continue
            if program.returncode == 0:
                return set()
            if program.returncode == LEFT_OUT:
                return set(map(int, out.split()))
            if program.returncode != -signal.SIGKILL:
                assert any(name in err for name in ENDINGS), err
            program = self.start()

    def check(self, unknown: set[int]) -> None:
        """Nothing is repeated; what was left out is asked about, and then all is there."""
        everything = set(range(self.records))
        charged = list(map(int, self.lines("charged")))
        assert len(charged) == len(set(charged))
        assert everything - set(charged) <= unknown
        squares = {f"{number} {number * number}" for number in everything - unknown}
        assert set(self.lines("results")) == squares
        last = self.start("ask")
        _, err = last.communicate(timeout=300)
        assert last.returncode == 0, err
        assert sorted(map(int, self.lines("charged"))) == sorted(everything)
        squares = {f"{number} {number * number}" for number in everything}
        assert set(self.lines("results")) == squares
        found = gitcp.open(self.repo).session("charging").last
        assert found is not None
        assert found.position == {"offset": self.records}


def by_progress(killed: Killed, every: int) -> Callable[[], bool]:
    """Due each time as many effects more were made."""
    seen = 0

    def due() -> bool:
        nonlocal seen
        now = len(killed.lines("charged"))
        if now - seen < every:
            return False
        seen = now
        return True

    return due


def each_second(killed: Killed) -> Callable[[], bool]:
    """Due each second by the clock, if that is long enough to start the program.

    A busy machine needs longer to start it. There, three times in four, it is due after
    twice the time that the next effect took.
    """
    chance = random.Random(19)
    log = killed.repo.parent / "charged"
    last, made = time.monotonic(), 0
    took: float | None = None
    patient = True

    def due() -> bool:
        nonlocal last, made, took, patient
        passed = time.monotonic() - last
        now = log.stat().st_size if log.exists() else 0
        if took is None and now > made:
            took = passed
        if passed < 1 or (patient and (took is None or passed < 2 * took)):
            return False
        last, made, took = time.monotonic(), now, None
        patient = chance.randrange(4) > 0
        return True

    return due


def test_kills_of_workers_and_of_the_program_repeat_no_effect(repo):
    killed = Killed(repo, 400)
    unknown = killed.run(by_progress(killed, 60))
    assert killed.parents + killed.others >= 2
    killed.check(unknown)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kills_each_second_repeat_no_effect_of_20000(repo):
    killed = Killed(repo, 20_000)
    unknown = killed.run(each_second(killed))
    assert killed.parents >= 2
    assert killed.others >= 2
    killed.check(unknown)


@pytest.fixture
def cluster():
    """Dask's eight workers, set for a machine where they are killed all the time.

    By itself Dask gives a worker up for good that is not there 15 seconds after it died,
    even if another was started in its place and killed as well. Forked from a process
    that has imported everything, a worker starts in less processor time.
    """
    distributed = pytest.importorskip("distributed", reason="dask[distributed]")
    dask = pytest.importorskip("dask")
    with dask.config.set(
        {
            "distributed.deploy.lost-worker-timeout": "1h",
            "distributed.worker.multiprocessing-method": "forkserver",
        }
    ):
        context = distributed.utils.get_mp_context()
        context.set_forkserver_preload(
            ["distributed", "gitcp.steps.worker", "tests.support.charging"]
        )
        with distributed.LocalCluster(
            n_workers=8, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as made:
            yield made


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore")
def test_kills_each_second_on_dask_repeat_no_effect_of_20000(repo, cluster):
    def workers(_: int) -> list[int]:
        # One that has not started yet is not at work on a record.
        return [
            one.pid
            for one in cluster.workers.values()
            if one.pid and one.process and one.process.status.name == "running"
        ]

    killed = Killed(repo, 20_000, cluster.scheduler_address, workers=workers)
    unknown = killed.run(each_second(killed))
    assert killed.parents + killed.others >= 20
    assert len(cluster.workers) == 8
    killed.check(unknown)
