"""Threads of LangGraph under kills, torn records and writers at the same time."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed")

from gitcp.errors import StorageError
from gitcp.wal import log_file
from tests.fault.harness import (
    calls,
    copy,
    fresh,
    fsck,
    in_parallel,
    inject,
    needs_strace,
    nothing_left,
    spread,
)
from tests.support.gitrepo import gitcp_environment, make_repo, run_gitcp
from tests.support.graphs import at, chain, everything, opened, put

ROOT = Path(__file__).parents[2]

# Puts until it is killed; says what was acknowledged. Settling comes every few puts.
WRITER = """
import sys
from gitcp.wal import background as settling
settling.QUIET, settling.OLDEST = 0.002, 0.02
from tests.support.graphs import GitcpSaver, at, put
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
saver = GitcpSaver(path)
found = saver.get_tuple(at("t"))
config = found.config if found and name != "alone" else at("t")
words = []
print("ready", flush=True)
sys.stdin.readline()
for step in range(count):
    words.append(f"{name} {step} " + "word " * 40)
    if step:
        saver.put_writes(config, [("words", words[-1])], f"{name}-{step}")
        print("wrote", config["configurable"]["checkpoint_id"], flush=True)
    config = put(saver, config, {"words": words}, step)
    print("put", config["configurable"]["checkpoint_id"], flush=True)
saver.close()
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, path, name, str(count)],
        env=gitcp_environment({"PYTHONPATH": str(ROOT)}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def go(*processes: subprocess.Popen[str]) -> None:
    """Lets writers begin, once every one of them has found what there is."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def killed_rounds(store: Path, rounds: int) -> None:
    acked: set[str] = set()
    written: set[str] = set()
    rng = random.Random(5)
    for number in range(rounds):
        process = writer(store, f"r{number}", 10_000)
        go(process)
        assert process.stdout is not None
        for _ in range(rng.randrange(2, 40)):
            kind, _, ident = process.stdout.readline().strip().partition(" ")
            (acked if kind == "put" else written).add(ident)
        process.kill()
        rest, err = process.communicate(timeout=60)
        assert err == "", err
        # The last line may be cut; what is whole was acknowledged too.
        for line in rest.splitlines(keepends=True):
            if line.endswith("\n"):
                kind, _, ident = line.strip().partition(" ")
                (acked if kind == "put" else written).add(ident)
    with opened(store) as saver:
        found = {
            one.config["configurable"]["checkpoint_id"]: one for one in saver.list(None)
        }
        assert acked - {""} <= set(found)
        for ident in written - {""}:
            assert found[ident].pending_writes
        put(saver, saver.get_tuple(at("t")).config, {"words": []}, 1)
    fsck(store)
    # The transaction that the last kill left is swept by the next.
    assert not list((store / "gitcp" / "redo").iterdir())
    assert not list((store / "refs").rglob("*.lock"))


def test_nothing_acknowledged_is_lost_to_kills(tmp_path):
    killed_rounds(tmp_path / "s", 3)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_to_thirty_kills(tmp_path):
    killed_rounds(tmp_path / "s", 30)


def test_two_processes_on_one_thread_both_have_all_listed(tmp_path):
    store = tmp_path / "s"
    with opened(store) as saver:
        put(saver, at("t"), {"words": []}, 0)
    both = [writer(store, name, 50) for name in ("one", "two")]
    go(*both)
    acked = []
    for process in both:
        out, err = process.communicate(timeout=250)
        assert process.returncode == 0, err
        acked.append(
            [line.split()[1] for line in out.splitlines() if line.startswith("put")]
        )
    assert [len(one) for one in acked] == [50, 50]
    with opened(store) as saver:
        listed = [
            one.config["configurable"]["checkpoint_id"] for one in saver.list(at("t"))
        ]
        assert {*acked[0], *acked[1]} <= set(listed)
        assert len(listed) == 101
        # Each followed its own: the second of the two is a branch with a name.
        lines = saver._threads.thread("t").index.lines
        assert len(lines) == 2
        assert any(name.startswith("fork-") for name in lines)
    fsck(store)


@pytest.fixture
def pending(tmp_path) -> tuple[Path, list[Any]]:
    """A repository with a thread in git, and more of it in the redo log alone."""
    repo = make_repo(tmp_path / "repo", {"a.txt": b"a\n"})
    with opened(repo) as saver:
        made = chain(saver, "t", 2)
    saver = opened(repo)
    saver._threads.drainer.note = lambda thread: None
    put(saver, made[-1], {"n": "only in the log"}, 2)
    put(saver, made[0], {"n": "a fork, only in the log"}, 1)
    saver.put_writes(made[-1], [("late", 1)], "task")
    wanted = everything(opened(copy(repo, tmp_path / "twin")))
    assert len(wanted) == 4
    return repo, wanted


@needs_strace
@pytest.mark.parametrize("count", [5, pytest.param(None, marks=pytest.mark.slow)])
def test_settling_can_be_killed_at_any_point(pending, count):
    repo, wanted = pending
    args = ("log", "-s", "langgraph-t")
    points = spread(calls(fresh(repo), *args), count)
    assert len(points) > 3

    def one(point):
        twin = fresh(repo)
        inject(twin, point, "signal=KILL", *args)
        fsck(twin)
        done = run_gitcp(twin, *args)
        assert done.returncode == 0, done.stderr
        assert run_gitcp(twin, "verify").returncode == 0
        with opened(twin) as saver:
            assert everything(saver) == wanted
            put(saver, saver.get_tuple(at("t")).config, {"n": "goes on"}, 3)
        fsck(twin)
        nothing_left(twin)
        shutil.rmtree(twin)

    in_parallel(one, points)


def test_a_settled_log_that_comes_back_changes_nothing(pending, tmp_path):
    """A power cut may bring back a file whose removal was not synced."""
    repo, wanted = pending
    log = next((repo / ".git" / "gitcp" / "redo").iterdir())
    kept = log.read_bytes()
    assert run_gitcp(repo, "log", "-s", "langgraph-t").returncode == 0
    assert not log.exists()
    with opened(repo) as saver:
        assert everything(saver) == wanted
        more = put(saver, saver.get_tuple(at("t")).config, {"n": "later"}, 9)
    log.write_bytes(kept)
    with opened(repo) as saver:
        assert len(everything(saver)) == len(wanted) + 1
        assert saver.get_tuple(at("t")).config == more
        put(saver, more, {"n": "and on"}, 10)
    assert run_gitcp(repo, "verify").returncode == 0
    with opened(repo) as saver:
        assert len(everything(saver)) == len(wanted) + 2
        assert len(saver._threads.thread("t").index.lines) == 2


@pytest.mark.parametrize("cut", [1, 7, 30, 200])
def test_a_torn_record_is_removed_and_those_before_it_stay(pending, cut):
    repo, wanted = pending
    log = next((repo / ".git" / "gitcp" / "redo").iterdir())
    whole = log.read_bytes()
    log.write_bytes(whole[:-cut])
    with opened(repo) as saver:
        found = everything(saver)
        # The last record held pending writes: those were not acknowledged.
        assert [one.checkpoint for one in found] == [one.checkpoint for one in wanted]
        assert not any(
            write[1] == "late" for one in found for write in one.pending_writes
        )
        config = saver.get_tuple(at("t")).config
        put(saver, config, {"n": "after the tear"}, 5)
    with opened(repo) as saver:
        assert saver.get_tuple(at("t")).checkpoint["channel_values"] == {
            "n": "after the tear"
        }
    fsck(repo)


def test_a_flipped_bit_is_reported_and_what_is_before_it_stays(pending):
    repo, wanted = pending
    log = next((repo / ".git" / "gitcp" / "redo").iterdir())
    raw = bytearray(log.read_bytes())
    raw[-50] ^= 1
    log.write_bytes(raw)
    done = run_gitcp(repo, "log")
    assert done.returncode == 15
    assert b"damaged at byte" in done.stderr
    with opened(repo) as saver:
        assert len(everything(saver)) == len(wanted)
    fsck(repo)


def test_a_disk_that_refuses_the_record_stores_nothing(tmp_path, monkeypatch):
    with opened(tmp_path / "s") as saver:
        made = chain(saver, "t", 3)
        before = everything(saver)

        def refuse(fd: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(log_file, "fdatasync", refuse)
            patch.setattr(os, "fsync", refuse)
            with pytest.raises(StorageError):
                put(saver, made[-1], {"n": 1}, 3)
            with pytest.raises(StorageError):
                saver.put_writes(made[-1], [("a", 1)], "task")
        assert everything(saver) == before
        put(saver, made[-1], {"n": "fits"}, 3)
    with opened(tmp_path / "s") as other:
        assert len(everything(other)) == len(before) + 1
    fsck(tmp_path / "s")
