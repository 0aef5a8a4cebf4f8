"""A write-ahead log that was copied from another repository: it is put aside, unused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import gitcp
from gitcp.git.discover import discover
from gitcp.wal.log_file import LogFile, LogRecord
from tests.integration.ledger.test_ledger_log import REF, killed, log_of
from tests.support.gitrepo import git, make_repo
from tests.support.inprocess import invoke, ok


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A repository with a log that goes on from a ledger in git."""
    repo = make_repo(tmp_path / "theirs", {"theirs": b"1"})
    killed(repo, "a")
    ok(repo, "steps", "-s", "work")
    killed(repo, "b")
    return repo


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "mine", {"mine": b"1"})
    ok(repo, "save", "-s", "work")
    return repo


def copy(theirs: Path, mine: Path) -> None:
    log_of(mine).parent.mkdir(exist_ok=True)
    shutil.copy(log_of(theirs), log_of(mine))


def put_aside(mine: Path) -> list[Path]:
    assert not log_of(mine).exists()
    return list((mine / ".git/gitcp/damaged").iterdir())


def test_it_makes_no_ref_that_leads_to_nothing(theirs, mine):
    copy(theirs, mine)
    done = invoke(mine, "steps", "-s", "work")
    assert done.returncode == 15
    assert b"is not of this repository" in done.stderr
    assert not git(mine, "for-each-ref", REF)
    assert len(put_aside(mine)) == 1
    assert gitcp.open(mine).session("work").step("b", lambda: 7) == 7
    git(mine, "gc", "-q", "--prune=now")
    git(mine, "fsck", "--strict")
    ok(mine, "gc")
    assert ok(mine, "verify")["ok"]


def test_our_own_ledger_stays_as_it_is(theirs, mine):
    run = gitcp.open(mine).session("work")
    run.step("own", lambda: 1)
    run.flush()
    before = git(mine, "for-each-ref", REF)
    copy(theirs, mine)
    assert invoke(mine, "steps", "-s", "work").returncode == 15
    assert git(mine, "for-each-ref", REF) == before
    assert len(put_aside(mine)) == 1
    names = [one["name"] for one in ok(mine, "steps", "-s", "work")["steps"]]
    assert names == ["own"]


def test_what_another_process_of_this_repository_wrote_is_used(theirs):
    names = [one["name"] for one in ok(theirs, "steps", "-s", "work")["steps"]]
    assert names == ["a", "b"]


@pytest.mark.parametrize("how", ["renamed", "cut"])
def test_an_object_that_is_not_what_its_name_says_is_refused(theirs, how):
    repository = discover(theirs)
    log = LogFile(repository, "fx.work")
    with log.locked(timeout=1):
        (record, *_) = [read.record for read in log.news()]
        log.cut(0)
        (oid, body), *others = record.objects
        false = (bytes(20), body) if how == "renamed" else (oid, body[:-3])
        log.append(LogRecord(record.moves, (false, *others)))
        log.sync()
    log.close()
    before = git(theirs, "for-each-ref", REF)
    done = invoke(theirs, "steps", "-s", "work", "--json")
    assert json.loads(done.stderr)["error"]["exit"] == 15
    assert git(theirs, "for-each-ref", REF) == before
    assert len(put_aside(theirs)) == 1
    git(theirs, "fsck", "--strict")
