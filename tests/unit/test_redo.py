"""The write-ahead log: what a power cut leaves, what a flipped bit leaves, what is hostile."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import gitcp
from gitcp.errors import CorruptError
from gitcp.format import layout
from gitcp.git.discover import discover
from gitcp.git.pack import entry
from gitcp.git.repository import Repository
from gitcp.ledger.join import join
from gitcp.project.recovery import logs_set_aside
from gitcp.wal import log_file
from gitcp.wal.drain import drain
from gitcp.wal.log_file import DamagedLogError, LogFile, LogRecord, RefMove
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import invoke

REF = layout.ledger_ref("main")
OID = "c33a9c10ba24b6051d8298dc014d22849db87aa9"
SECTOR = 512


@pytest.fixture
def repository(repo: Path) -> Repository:
    return discover(repo)


def written(
    repository: Repository, *sizes: int, sync: bool = True
) -> tuple[Path, list[int]]:
    """A log with records of about these sizes; returns it and where each ends."""
    log = LogFile(repository, "fx.main")
    ends = []
    with log.locked(timeout=1):
        for number, size in enumerate(sizes):
            body = bytes(1 + (number + at) % 255 for at in range(size))
            record = LogRecord((RefMove(REF, None, OID),), ((bytes(20), body),))
            ends.append(log.append(record))
            if sync:
                log.sync()
    log.close()
    return log.path, ends


def read(repository: Repository) -> int:
    log = LogFile(repository, "fx.main")
    with log.locked(timeout=1):
        count = len(list(log.news()))
    log.close()
    return count


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_anywhere_is_told_from_a_torn_end(repository, bit):
    path, ends = written(repository, 30, 900, 30)
    whole = path.read_bytes()
    for at in range(bit, len(whole), 23):
        raw = bytearray(whole)
        raw[at] ^= 1 << bit
        path.write_bytes(raw)
        with pytest.raises(DamagedLogError):
            read(repository)
    path.write_bytes(whole)
    assert read(repository) == len(ends)


def test_a_torn_end_is_cut_at_every_length(repository):
    path, ends = written(repository, 30, 900)
    whole = path.read_bytes()
    for length in range(ends[0], ends[1]):
        path.write_bytes(whole[:length])
        assert read(repository) == 1
        assert path.stat().st_size == ends[0]


def test_sectors_that_did_not_reach_the_disk_are_a_torn_end(repository):
    path, ends = written(repository, 30, 3000)
    whole = path.read_bytes()
    for start in range(-ends[0] % SECTOR + ends[0], ends[1], SECTOR):
        raw = bytearray(whole)
        lost = range(start, min(start + SECTOR, ends[1]))
        raw[start : lost.stop] = bytes(len(lost))
        path.write_bytes(raw)
        assert read(repository) == 1
    path.write_bytes(whole[: ends[0]] + bytes(ends[1] - ends[0]))
    assert read(repository) == 1


def test_records_that_were_never_synced_may_be_lost_in_any_order(repository):
    """The first of two lost its sectors, the second did not: neither was acknowledged."""
    path, ends = written(repository, 3000, 3000, sync=False)
    raw = bytearray(path.read_bytes())
    raw[SECTOR : 2 * SECTOR] = bytes(SECTOR)
    path.write_bytes(raw)
    assert read(repository) == 0
    assert ends


def test_sectors_lost_before_an_acknowledged_record_are_damage(repository):
    path, _ = written(repository, 3000, 30)
    raw = bytearray(path.read_bytes())
    raw[SECTOR : 2 * SECTOR] = bytes(SECTOR)
    path.write_bytes(raw)
    with pytest.raises(DamagedLogError):
        read(repository)


def test_a_record_without_the_new_field_is_read(repository):
    vector = bytes.fromhex(
        "47435231000000446b9c2c38929193b4726566732f67697463702f66782f25346461696ec0d928"
        "6333336139633130626132346236303531643832393864633031346432323834396462383761"
        "613990"
    )
    directory = log_file.directory(repository)
    repository.make_directory(directory)
    (directory / "fx.main.redo").write_bytes(vector)
    log = LogFile(repository, "fx.main")
    with log.locked(timeout=1):
        (found,) = log.news()
    log.close()
    assert found.record == LogRecord(
        (RefMove("refs/gitcp/fx/%4dain", None, OID),), (), 0
    )


# --- what a stranger's log may do -------------------------------------------------------


@pytest.mark.parametrize(
    ("ref", "new"),
    [
        ("/tmp/gitcp-precious", OID),
        ("refs/heads/main", OID),
        ("refs/gitcp/../heads/main", OID),
        ("refs/gitcp/s/a/../../../heads/main", OID),
        ("refs/gitcp/s/main/main/more", OID),
        ("refs/gitcp/s/main", OID),
        ("refs/gitcp/r/origin/main/main", OID),
        ("refs/gitcp/fx/a/b", OID),
        ("HEAD", OID),
        (REF, OID[:8]),
        (REF, OID.upper()),
        (REF, f"{OID}0"),
        (REF, ""),
    ],
)
def test_only_gitcps_own_refs_are_moved_and_to_whole_ids(repo, ref, new):
    before = git_line(repo, "for-each-ref")
    repository = discover(repo)
    log = LogFile(repository, "evil")
    with log.locked(timeout=1):
        log.append(LogRecord((RefMove(REF, None, OID), RefMove(ref, None, new)), ()))
        log.sync()
        with pytest.raises(CorruptError, match="never does"):
            drain(repository, [log], join)
    assert git_line(repo, "for-each-ref") == before
    assert not Path("/tmp/gitcp-precious").exists()
    assert not log.exists()
    # Nothing is in the way of the next command.
    assert gitcp.open(repo).session("main").save(note="one").seq == 1


def test_a_log_that_nothing_uses_any_more_is_not_held_open(repository):
    log = LogFile(repository, "f.a")
    with log.locked(timeout=1):
        number = log._fd
    assert os.fstat(number)
    del log
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_what_is_before_the_damage_is_saved_and_the_log_is_kept(repo):
    made = git_line(repo, "rev-parse", "HEAD")
    repository = discover(repo)
    log = LogFile(repository, "main")
    blob = entry("blob", b"x" * 900)
    with log.locked(timeout=1):
        log.append(
            LogRecord((RefMove(layout.branch_ref("t", "main"), None, made),), ())
        )
        log.sync()
        end = log.append(LogRecord((), ((bytes(20), blob),)))
        log.sync()
    raw = bytearray(log.path.read_bytes())
    raw[end - 5] ^= 4
    log.path.write_bytes(raw)
    with pytest.raises(DamagedLogError, match="damaged at byte"):
        gitcp.open(repo)
    assert git_line(repo, "rev-parse", layout.branch_ref("t", "main")) == made
    (kept,) = (repository.store_dir / "damaged").iterdir()
    assert kept.read_bytes() == raw
    gitcp.open(repo)

    def verified() -> dict[str, object]:
        found: dict[str, object] = json.loads(invoke(repo, "verify", "--json").stdout)
        return found

    # It is not forgotten: what is behind the damage may have been acknowledged.
    assert logs_set_aside(repository) == [kept]
    assert verified()["set_aside"] == [str(kept)]
    looked = json.loads(invoke(repo, "doctor", "--json").stdout)
    checks = {one["name"]: one["detail"] for one in looked["checks"]}
    assert str(kept) in checks["damaged-logs"]
    kept.unlink()
    assert verified()["set_aside"] == []


def moved(repository: Repository, *moves: RefMove) -> LogFile:
    """A write-ahead log of this process that moves refs, not drained yet."""
    log = LogFile(repository, "main")
    with log.locked(timeout=1):
        log.append(LogRecord(moves, ()))
        log.sync()
    return log


def test_a_log_whose_moves_git_has_already_is_removed_and_changes_nothing(repo):
    """As after a power cut that brought a drained log back."""
    made = git_line(repo, "rev-parse", "HEAD")
    ref = layout.branch_ref("t", "main")
    git(repo, "update-ref", ref, made)
    repository = discover(repo)
    log = moved(repository, RefMove(ref, None, made))
    conflicts: list[object] = []
    with log.locked(timeout=1):
        drain(repository, [log], lambda *conflict: conflicts.append(conflict))
    assert conflicts == []
    assert not log.exists()
    assert git_line(repo, "rev-parse", ref) == made


@pytest.mark.ref_files
@pytest.mark.parametrize("known", [True, False])
def test_a_damaged_ref_is_written_again_only_if_the_log_knows_what_it_held(repo, known):
    made = git_line(repo, "rev-parse", "HEAD")
    ref = layout.branch_ref("t", "main")
    repository = discover(repo)
    log = moved(repository, RefMove(ref, made if known else None, made))
    path = repo / ".git" / ref
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(41))
    with log.locked(timeout=1):
        if known:
            drain(repository, [log], join)
            assert git_line(repo, "rev-parse", ref) == made
        else:
            with pytest.raises(CorruptError, match="does not name a commit"):
                drain(repository, [log], join)
            assert path.read_bytes() == bytes(41)
    assert log.exists() is not known
