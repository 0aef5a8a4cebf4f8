"""The mirrors of odd disks have the habits that tests rely on."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.gitrepo import make_repo
from tests.support.inprocess import fails, invoke
from tests.support.odddisk import needs_fuse, odd_disk, set_clock

pytestmark = needs_fuse


def test_names_without_case(tmp_path: Path):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        (disk / "d").mkdir()
        (disk / "d/a").write_bytes(b"1")
        assert (disk / "D/A").read_bytes() == b"1"
        os.rename(disk / "d/a", disk / "d/A")
        os.rename(disk / "d", disk / "D")
        assert os.listdir(disk) == ["D"]
        assert os.listdir(disk / "d") == ["A"]
        (disk / "d/a").write_bytes(b"2")
        assert os.listdir(disk / "D") == ["A"]
        assert os.stat(disk / "d/a").st_ino == os.stat(disk / "D/A").st_ino
        with pytest.raises(FileExistsError):
            os.link(disk / "d/A", disk / "d/a")
        (disk / "other").write_bytes(b"3")
        os.rename(disk / "other", disk / "d/a")
        assert os.listdir(disk / "D") == ["A"]


def test_names_are_stored_decomposed(tmp_path: Path):
    with odd_disk(tmp_path / "disk", normalise=True) as disk:
        (disk / "\u00e9").write_bytes(b"1")
        assert os.listdir(disk) == ["e\u0301"]
        assert (disk / "\u00e9").read_bytes() == (disk / "e\u0301").read_bytes() == b"1"
        (disk / "a").write_bytes(b"")
        assert not (disk / "A").exists()
        odd = os.fsencode(disk) + b"/\xff"
        with open(odd, "wb"):
            pass
        assert os.path.exists(odd)


@pytest.mark.parametrize("step", [1, 2, 0.5])
def test_coarse_time_stamps(tmp_path: Path, step: float):
    whole = int(step * 1e9)
    with odd_disk(tmp_path / "disk", coarse=step) as disk:
        (disk / "a").write_bytes(b"1")
        os.utime(disk / "a", ns=(10**9, 3 * 10**9 + 5))
        found = os.stat(disk / "a")
        assert found.st_mtime_ns == (3 * 10**9 + 5) // whole * whole
        assert found.st_ctime_ns % whole == 0
        assert abs(found.st_ctime_ns - time.time_ns()) < 60 * 10**9
        os.utime(disk / "a")
        assert abs(os.stat(disk / "a").st_mtime_ns - time.time_ns()) < 60 * 10**9


def test_no_links_and_unsteady_inodes(tmp_path: Path):
    with odd_disk(tmp_path / "disk", nolinks=True, unsteady=True) as disk:
        (disk / "a").write_bytes(b"1")
        with pytest.raises(PermissionError):
            os.link(disk / "a", disk / "b")
        assert os.stat(disk / "a").st_ino != os.stat(disk / "a").st_ino


@pytest.mark.timeout(60)
def test_a_repository_without_steady_inodes_is_refused(tmp_path: Path):
    """Each save would try again for ever: its lock never looks like its own."""
    with odd_disk(tmp_path / "disk", unsteady=True) as disk:
        repo = make_repo(disk / "repo", {"a": b"1"})
        for command in (["save"], ["gc"]):
            assert "a new inode number each time" in fails(repo, 20, *command)
        assert invoke(repo, "log").returncode == 0
        assert not list((repo / ".git/gitcp").glob("tmp/*"))


def test_a_clock_that_moves(tmp_path: Path):
    with odd_disk(tmp_path / "disk", clock=True) as disk:
        (disk / "a").write_bytes(b"1")
        before = os.stat(disk / "a")
        set_clock(disk, -3600)
        (disk / "a").write_bytes(b"2")
        after = os.stat(disk / "a")
        assert before.st_ctime_ns - after.st_ctime_ns > 3000 * 10**9
        os.utime(disk / "a", ns=(1, 7))
        assert os.stat(disk / "a").st_mtime_ns == 7
        assert os.stat(disk / "a").st_ctime_ns < before.st_ctime_ns


def test_an_open_file_outlives_its_name(tmp_path: Path):
    with odd_disk(tmp_path / "disk") as disk:
        fd = os.open(disk / "a", os.O_RDWR | os.O_CREAT)
        os.unlink(disk / "a")
        assert os.listdir(disk) == []
        os.write(fd, b"still here")
        assert os.fstat(fd).st_size == 10
        os.ftruncate(fd, 5)
        assert os.pread(fd, 20, 0) == b"still"
        os.close(fd)


def test_git_works_there(tmp_path: Path):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        subprocess.run(["git", "init", "-q", disk / "r"], check=True)
        folds = subprocess.run(
            ["git", "-C", disk / "r", "config", "core.ignorecase"],
            capture_output=True,
            check=True,
        )
        assert folds.stdout == b"true\n"
