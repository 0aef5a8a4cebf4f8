"""Files that survive a crash, and what a crash leaves beside them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitcp import durable
from gitcp.errors import StorageError


def test_what_a_killed_install_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone = [f".post-commit.gitcp-{ended.pid}", f"settings.json.{ended.pid}.tmp"]
    stays = [
        f".post-commit.gitcp-{os.getppid()}",
        f"settings.json.{os.getppid()}.tmp",
        f"other.json.{ended.pid}.tmp",
        "settings.json.tmp",
        "post-commit",
    ]
    for name in (*gone, *stays):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1, 1))
    young = tmp_path / f"settings.json.{ended.pid}0.tmp"
    young.write_text("x")
    durable.clear_temporaries(tmp_path, "settings.json")
    assert {path.name for path in tmp_path.iterdir()} == {*stays, young.name}


def test_a_file_of_gitcps_own_is_for_those_whom_its_directory_is_open_to(
    tmp_path: Path,
) -> None:
    before = os.umask(0o077)
    try:
        for mode, expected in ((0o700, 0o600), (0o770, 0o660), (0o750, 0o640)):
            place = tmp_path / oct(mode)
            place.mkdir()
            place.chmod(mode)
            durable.replace(place / "a", b"")
            durable.append(place / "b", b"x")
            for path in place.iterdir():
                assert path.stat().st_mode & 0o777 == expected
    finally:
        os.umask(before)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_disk_without_hard_links_is_named_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "a").write_text("x")
    monkeypatch.setattr(os, "link", refuse)
    with (
        pytest.raises(StorageError, match="without hard links"),
        durable.storage("moving a ref"),
    ):
        durable.link(tmp_path / "a", tmp_path / "b")


def test_waiting_is_short_at_first_and_longer_the_longer_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, pauses = 0.0, list[tuple[float, float]]()

    def sleep(seconds: float) -> None:
        nonlocal now
        pauses.append((now, seconds))
        now += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "sleep", sleep)
    assert durable.until(lambda: None, timeout=2) is None
    assert now == pytest.approx(2)
    assert all(pause <= max(0.001, waited / 8) for waited, pause in pauses)
    assert max(pause for _, pause in pauses) <= 0.05
    # As long as others hold it for moments only, it is tried all the time.
    assert sum(waited < 0.016 for waited, _ in pauses) >= 8
