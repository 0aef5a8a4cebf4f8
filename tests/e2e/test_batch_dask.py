"""A batch on Dask, with a cluster of processes, one of which is killed, and the parent."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gitcp
from tests.support.gitrepo import gitcp_environment

distributed = pytest.importorskip("distributed", reason="dask[distributed] is missing")
# Dask closes its sockets when the interpreter ends, and reports workers that die.
pytestmark = pytest.mark.filterwarnings("ignore")
SCRIPT = Path(__file__).resolve().parents[2] / "docs/examples/dask_batch.py"


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as made:
        yield made


def run(repo: Path, log: Path, address: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, SCRIPT, repo, log),
            *("--records", "60", "--scheduler", address),
        ],
        env=os.environ | gitcp_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_program_goes_on_and_repeats_no_effect(repo, tmp_path, cluster):
    log = tmp_path / "log"
    program = run(repo, log, cluster.scheduler_address)
    assert program.stdout is not None
    for _ in range(15):
        assert program.stdout.readline()
    program.kill()
    program.communicate(timeout=60)
    again = run(repo, log, cluster.scheduler_address)
    _, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert sorted(map(int, log.read_text().split())) == list(range(60))
    last = gitcp.open(repo).session("dask").last
    assert last is not None
    assert last.position == {"offset": 60}
    lines = (repo / "squares.csv").read_text().split()
    assert set(lines) == {f"{number},{number * number}" for number in range(60)}


def dies(of: gitcp.Session, log: Path, number: int) -> int:
    """A worker dies once before its effect, and once behind it."""
    if number == 3:
        die_once(log.with_name("before"))
    of.step("charge", charge, log, number)
    return number


def charge(log: Path, number: int) -> None:
    with log.open("a") as file:
        file.write(f"{number}\n")
    if number == 7:
        die_once(log.with_name("behind"))


def die_once(flag: Path) -> None:
    with contextlib.suppress(FileExistsError):
        flag.touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_dask_runs_again_by_itself_repeats_no_effect(repo, tmp_path, cluster):
    log = tmp_path / "log"
    session = gitcp.open(repo).session("kills")
    with (
        distributed.Client(cluster) as client,
        pytest.raises(gitcp.StepUnknownError, match=r"1 record left out \(7\)"),
        session.batch(range(12), executor=client.get_executor()) as batch,
    ):
        list(batch.map(functools.partial(dies, session, log), chunksize=2))
    assert sorted(map(int, log.read_text().split())) == list(range(12))
    assert session.last is not None
    assert session.last.position == {"offset": 7, "done": [[8, 12]]}


class Unread:
    """A record that Dask is not to look at by itself, as it is dear with a thousand."""

    def __dask_tokenize__(self) -> str:
        raise AssertionError("Dask goes through the records")


def test_dask_does_not_go_through_the_records(repo, cluster):
    with (
        distributed.Client(cluster) as client,
        gitcp.open(repo)
        .session("unread")
        .batch([Unread(), Unread()], executor=client.get_executor()) as batch,
    ):
        assert len(list(batch.map(id, chunksize=2))) == 2


def test_a_function_without_steps_runs_where_the_repository_is_not(
    repo, tmp_path, cluster, monkeypatch
):
    """Workers on another machine: a step there is refused before its effect."""
    log = tmp_path / "log"
    monkeypatch.setattr("gitcp.steps.reopened._machine", lambda: "another")
    session = gitcp.open(repo).session("far")
    with distributed.Client(cluster) as client:
        executor = client.get_executor()
        with session.batch(range(6), executor=executor) as batch:
            assert sorted(batch.map(str)) == [
                (number, f"{number}") for number in range(6)
            ]
        with (
            pytest.raises(gitcp.UsageError, match="cannot reach the repository"),
            gitcp.open(repo)
            .session("steps")
            .batch(range(6), executor=executor) as batch,
        ):
            list(batch.map(functools.partial(dies, session, log)))
    assert not log.exists()
