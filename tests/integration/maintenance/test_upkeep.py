"""A repository stays small by itself: packs are merged, old automatic checkpoints go."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from gitcp import durable
from gitcp.git import consolidate, registry
from gitcp.maintenance import auto_gc, size_limit, upkeep
from gitcp.project.settings import KNOWN
from gitcp.project.workspace import open_workspace
from gitcp.store.store import Store
from gitcp.worktree.journal import Journal, write
from tests.fault.harness import fsck
from tests.support.forge import Forge
from tests.support.gitrepo import (
    git,
    git_directory,
    gitcp_argv,
    gitcp_environment,
    make_repo,
)
from tests.support.inprocess import invoke, ok

DAY = 86_400.0


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"file": b"0\n"})


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    times = [1_000_000_000.0]
    original = Store.__init__

    def with_clock(self, repository, **given):
        original(self, repository, clock=lambda: times[0], **given)

    monkeypatch.setattr(Store, "__init__", with_clock)
    # Fewer checkpoints will do.
    monkeypatch.setattr(size_limit, "DEFAULT_LAST", 2)
    return times


def save(repo: Path, *args: str, size: int = 30_000) -> dict:
    (repo / "file").write_bytes(os.urandom(size))
    return ok(repo, "save", *args)["checkpoint"]


def turns(repo: Path, count: int) -> None:
    for _ in range(count):
        save(repo, "--trigger", "turn-end")


def numbers(repo: Path) -> list[int]:
    return [one["number"] for one in ok(repo, "log", "--full")["checkpoints"]]


def packs(repo: Path) -> list[int]:
    return [one.stat().st_size for one in repo.glob(".git/objects/pack/*.pack")]


def size_row(document: dict) -> dict:
    (row,) = [one for one in document["checks"] if one["name"] == "size"]
    return row


# --- merging


def test_merging_finds_what_versions_of_a_large_file_share(repo):
    git(repo, "config", "gitcp.chunkAbove", "64k")
    chance = random.Random(1)
    data = bytearray(chance.randbytes(1_000_000))
    for _ in range(5):
        # As a linker does: parts are put in, and addresses anywhere change.
        for _ in range(2):
            at = chance.randrange(len(data))
            data[at:at] = chance.randbytes(20_000)
        for _ in range(40):
            at = chance.randrange(len(data))
            data[at : at + 4] = chance.randbytes(4)
        (repo / "file").write_bytes(data)
        ok(repo, "save")
    assert sum(packs(repo)) > 3 * len(data)
    repository = open_workspace(repo).repository
    assert consolidate.consolidate(repository, force=True) == 4
    assert sum(packs(repo)) < 1.2 * len(data)
    fsck(repo)
    assert ok(repo, "verify")["problems"] == []


def test_a_merge_that_takes_too_long_leaves_all_and_next_time_takes_less(
    repo, monkeypatch
):
    monkeypatch.setattr(consolidate, "AT_MOST", 4)
    monkeypatch.setenv("GITCP_BACKGROUND", "true")
    monkeypatch.setattr(upkeep, "start_gitcp", lambda *_: None)
    turns(repo, 6)
    monkeypatch.setattr(auto_gc, "BUDGET", 0.0)
    assert ok(repo, "gc", "--auto")["packs"] == {"before": 6, "after": 6}
    largest = upkeep.read_note(open_workspace(repo).repository).largest
    assert largest is not None
    assert largest == sum(packs(repo)) // 2
    monkeypatch.setattr(auto_gc, "BUDGET", 1_000.0)
    # Three of six fit into half.
    assert ok(repo, "gc", "--auto")["packs"] == {"before": 6, "after": 4}
    ok(repo, "gc")
    assert upkeep.read_note(open_workspace(repo).repository).largest is None
    fsck(repo)


def test_a_merge_makes_way_for_a_command_that_waits_for_the_store(
    repo, tmp_path, monkeypatch
):
    monkeypatch.setenv("GITCP_BACKGROUND", "true")
    monkeypatch.setattr(upkeep, "start_gitcp", lambda *_: None)
    for _ in range(registry.AT_MOST + 1):
        save(repo, size=100)
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(
        '#!/bin/sh\ncase " $* " in *" pack-objects "*) exec sleep 600 ;; esac\n'
        f'exec {git_directory()}/git "$@"\n'
    )
    slow.chmod(0o755)
    path = f"{slow.parent}:{os.environ['PATH']}"
    store = repo / ".git" / "gitcp" / "store.lock"
    merge = subprocess.Popen(
        gitcp_argv("gc", "--auto"),
        cwd=repo,
        env=gitcp_environment({"PATH": path}),
        start_new_session=True,
    )
    try:
        assert durable.until(lambda: durable.is_locked(store) or None, timeout=60)
        assert ok(repo, "gc")["packs"]["after"] == 1
        assert merge.wait(60) == 0
    finally:
        # Its git as well, if it is still there.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(merge.pid, signal.SIGKILL)
        merge.wait()
    # It was not too long: the next one takes as much.
    assert upkeep.read_note(open_workspace(repo).repository).largest is None
    assert not durable.is_locked(store.with_name("store.wanted"))
    fsck(repo)


def test_a_run_is_started_where_one_is_due_and_none_is_at_work(repo, monkeypatch):
    monkeypatch.setattr(consolidate, "AT_MOST", 4)
    monkeypatch.setattr(upkeep, "AT_MOST", 4)
    monkeypatch.setattr(upkeep, "_BETWEEN", 2)
    monkeypatch.setenv("GITCP_BACKGROUND", "true")
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(upkeep, "start_gitcp", lambda *words: started.append(words))
    turns(repo, 4)
    assert started == []
    lock = upkeep.upkeep_lock(open_workspace(repo).repository)
    assert lock is not None
    turns(repo, 1)
    assert started == []
    os.close(lock)
    turns(repo, 1)
    assert started == [("-C", str(repo), "gc", "--auto", "--quiet")]
    assert len(packs(repo)) == 6
    ok(repo, "gc", "--auto")
    left = len(packs(repo))
    assert left < 4
    started.clear()
    turns(repo, 4 - left)
    assert started == []


# --- gitcp.maxSize


def test_only_old_automatic_checkpoints_go_the_oldest_first(repo, clock):
    save(repo, "-m", "by hand")
    save(repo, "--trigger", "turn-end", "--label", "kept")
    turns(repo, 6)
    ok(repo, "label", "4", "later")
    clock[0] += 31 * DAY
    turns(repo, 3)
    git(repo, "config", "gitcp.maxSize", "320k")
    turns(repo, 1)
    # Labelled, made by hand, younger than 30 days; and of the others no more than must.
    assert numbers(repo) == [12, 11, 10, 9, 8, 7, 4, 2, 1]
    assert 250_000 < ok(repo, "du")["only"] < 320 * 1024
    assert ok(repo, "verify")["problems"] == []
    fsck(repo)
    row = size_row(ok(repo, "doctor"))
    assert row["ok"]
    assert "3 old automatic checkpoints were removed" in row["detail"]


def test_what_is_young_stays_and_status_says_so(repo, clock):
    git(repo, "config", "gitcp.maxSize", "50k")
    turns(repo, 4)
    assert numbers(repo) == [4, 3, 2, 1]
    said = invoke(repo, "status").stderr.decode()
    assert "more than gitcp.maxSize (50.0 KB)" in said
    assert "newer than 30 days" in said
    assert ok(repo, "status")["size"]["over"]
    assert not size_row(ok(repo, "doctor", status=1))["ok"]


def test_a_default_prunes_only_where_no_older_gitcp_was_in_use(
    repo, clock, monkeypatch
):
    other = make_repo(repo.with_name("other"), {"file": b"0\n"})
    smaller = KNOWN["maxSize"]._replace(default="50k")
    monkeypatch.setitem(KNOWN, "maxSize", smaller)
    with monkeypatch.context() as older:
        older.setattr(upkeep, "begin", lambda _: None)
        turns(other, 1)
    turns(other, 3)
    turns(repo, 4)
    clock[0] += 31 * DAY
    turns(repo, 1)
    turns(other, 1)
    assert numbers(repo) == [5, 4]
    assert numbers(other) == [5, 4, 3, 2, 1]
    assert (
        "until you set `gitcp config maxSize`"
        in invoke(other, "status").stderr.decode()
    )
    git(other, "config", "gitcp.maxSize", "50k")
    clock[0] += DAY
    ok(other, "gc", "--auto")
    assert numbers(other) == [5, 4]


def test_a_hook_never_prunes(repo, clock):
    turns(repo, 4)
    clock[0] += 31 * DAY
    git(repo, "config", "gitcp.maxSize", "50k")
    workspace = open_workspace(repo)
    workspace.deadline = 1e9
    auto_gc.after(workspace)
    assert len(numbers(repo)) == 4
    workspace.deadline = None
    auto_gc.after(workspace)
    assert len(numbers(repo)) == 2


def test_what_the_refs_of_a_remote_hold_stays(repo, clock, tmp_path):
    turns(repo, 4)
    git(tmp_path, "init", "-q", "--bare", tmp_path / "remote.git")
    git(repo, "remote", "add", "origin", tmp_path / "remote.git")
    ok(repo, "push", "origin")
    clock[0] += 31 * DAY
    git(repo, "config", "gitcp.maxSize", "50k")
    ok(repo, "gc", "--auto")
    # It would free nothing.
    assert len(numbers(repo)) == 4


def test_what_was_made_elsewhere_does_not_use_up_the_limit(repo, clock, tmp_path):
    """Else everyone who may push could have one's own removed."""
    turns(repo, 6)
    clock[0] += 31 * DAY
    forge = Forge()
    tip = forge.checkpoint([(b"100644", b"file", forge.blob(os.urandom(400_000)))])
    bundle = forge.bundle(tmp_path / "evil.bundle", {"refs/gitcp/s/evil/main": tip})
    ok(repo, "import", bundle)
    git(repo, "config", "gitcp.maxSize", "320k")
    turns(repo, 1)
    assert len(ok(repo, "log", "-s", "main")["checkpoints"]) == 7
    assert "made elsewhere" in invoke(repo, "status").stderr.decode()


def test_an_open_restore_keeps_what_it_needs(repo, clock):
    turns(repo, 5)
    clock[0] += 31 * DAY
    found = {one["number"]: one for one in ok(repo, "log", "--full")["checkpoints"]}
    write(
        repo / ".git" / "gitcp",
        Journal(
            checkpoint="0123456789ab", session="main", branch="main",
            target=found[2]["commit"], before=found[3]["commit"], files=True,
            conversation=True, paths=(), sparse=(), note=None,
        ),
    )  # fmt: skip
    git(repo, "config", "gitcp.maxSize", "50k")
    ok(repo, "gc", "--auto")
    assert numbers(repo) == [5, 4, 3, 2]


# --- du


def test_du_says_what_turns_cost_what_holds_the_space_and_what_to_exclude(repo):
    git(repo, "config", "gitcp.chunkAbove", "64k")
    (repo / "out[1]").mkdir()
    for number in range(2):
        data = random.Random(number).randbytes(1_500_000)
        (repo / "out[1]" / "program").write_bytes(data)
        save(repo, "--trigger", "turn-end")
    found = ok(repo, "du")
    assert [one["number"] for one in found["turns"]] == [2, 1]
    newest = found["turns"][0]
    assert 1_530_000 < newest["bytes"] < 1_600_000
    assert newest["most"]["path"] == "out[1]/program"
    first, second = found["paths"]
    assert (first["path"], first["versions"]) == ("out[1]/program", 2)
    assert (second["path"], second["versions"]) == ("file", 2)
    assert 3_000_000 < first["bytes"] < 3_100_000
    (pattern,) = found["exclude"]
    assert pattern["path"] == "/out\\[1]/"
    text = invoke(repo, "du", env={"COLUMNS": "80"}).stdout.decode()
    assert "gitcp config --add exclude '/out\\[1]/'" in text
    assert "#2  1.4 MB of it out[1]/program" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    ok(repo, "config", "--add", "exclude", pattern["path"])
    save(repo)
    assert [one["path"] for one in ok(repo, "files")["files"]] == ["file"]
