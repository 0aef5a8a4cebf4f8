"""Capture on disks with odd habits: one state of disk and index gives one tree."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from gitcp.worktree import state
from tests.integration.worktree.test_capture import LARGE, Chaos, check
from tests.support.gitrepo import git, make_repo, write_files
from tests.support.odddisk import needs_fuse, odd_disk, stop_clock
from tests.support.snapshots import capture, captured, on_disk, reads

pytestmark = needs_fuse

FILES = {"a": b"1", "d/x": b"x", "d/e/y": b"y", "f/z": b"z"}


def same(repo: Path) -> None:
    """A capture is what the disk lists, learnt or fresh."""
    assert captured(repo, check(repo)) == on_disk(repo)


@pytest.mark.parametrize("still", [False, True])
def test_names_that_change_their_case(tmp_path: Path, still: bool):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", FILES)
        same(repo)

        def rename(old: str, new: str) -> None:
            above = (repo / old).parent
            before = os.stat(above)
            os.rename(repo / old, repo / new)
            if still:
                os.utime(above, ns=(before.st_atime_ns, before.st_mtime_ns))

        rename("a", "A")
        same(repo)
        rename("d", "D")
        same(repo)
        rename("D/e", "D/E")
        rename("D/E/y", "D/E/Y")
        same(repo)
        rename("D", "d")
        rename("d/E", "d/e")
        (repo / "d/e/Y").write_bytes(b"changed")
        same(repo)
        rename("f/z", "f/Z")
        (repo / "A").unlink()
        (repo / "F/Z").write_bytes(b"changed as well")
        same(repo)


def test_a_rename_that_the_directory_does_not_show(tmp_path: Path, monkeypatch):
    """Its stat stays as it was: only the listing tells."""
    for module in ("scan", "listing"):
        monkeypatch.setattr(
            f"gitcp.worktree.{module}.signature", lambda found: (found.st_ino, 1, 1)
        )
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", {**FILES, "empty/inner/f": b""})
        (repo / "empty/inner/f").unlink()
        same(repo)
        time.sleep(0.05)
        same(repo)
        os.rename(repo / "d/e", repo / "d/E")
        os.rename(repo / "empty/inner", repo / "empty/Inner")
        same(repo)


def test_another_file_under_another_case_in_place_of_one_that_was_too_large(tmp_path):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", {"d/x": b"x"})
        (repo / "A").write_bytes(bytes(LARGE + 1))
        assert check(repo).skipped
        (repo / "A").unlink()
        (repo / "a").symlink_to("d/x")
        same(repo)


def test_tracked_in_a_repository_inside_under_another_case(tmp_path: Path):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", {"d/e/x": b"1", "\u00e9/y": b"2", "dd/z": b"3"})
        (repo / "dd/new").write_bytes(b"4")
        os.rename(repo / "d", repo / "D")
        os.rename(repo / "\u00e9", repo / "\u00c9")
        for name in ("D", "dd", "\u00c9"):
            git(repo, "init", "-q", name)
        found = captured(repo, check(repo)).keys()
        assert found == {b"D/e/x", "\u00c9/y".encode(), b"dd/z"}


@pytest.mark.parametrize("directory", ["A", "a"])
@pytest.mark.parametrize("name", ["A", "a"])
def test_tracked_though_ignored_after_a_directory_of_another_case(
    tmp_path: Path, directory: str, name: str
):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", {"a": b"1", "b": b"2"})
        (repo / ".git/info/exclude").write_text("a\n")

        def learnt() -> dict[bytes, Any]:
            # Without a fresh capture beside it, which would list the user's index again.
            return captured(repo, capture(repo))

        assert learnt() == on_disk(repo)
        (repo / "a").unlink()
        (repo / directory).mkdir()
        assert learnt().keys() == {b"b"}
        (repo / directory).rmdir()
        (repo / name).write_bytes(b"3")
        assert learnt() == on_disk(repo)


def test_tracked_though_ignored_under_another_case(tmp_path: Path):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", {".gitignore": b"*.log\n", "d/x.log": b"1"})
        git(repo, "add", "-f", "d/x.log")
        os.rename(repo / "d", repo / "D")
        os.rename(repo / "D/x.log", repo / "D/X.log")
        same(repo)
        (repo / "D/X.log").unlink()
        same(repo)
        (repo / "D/X.LOG").write_bytes(b"2")
        same(repo)
        git(repo, "rm", "-qf", "--cached", "d/x.log")
        assert captured(repo, check(repo)).keys() == {b".gitignore"}


@pytest.mark.parametrize("fold", [0, 1_000])
def test_tracked_though_ignored_that_changes_its_case_later(
    tmp_path: Path, monkeypatch, fold: int
):
    """Nothing but the name changes: neither the index nor the rules."""
    monkeypatch.setattr(state, "_FOLD_AT", fold)
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        files = {".gitignore": b"*.log\n", "x.log": b"1", "d/e/y.log": b"2"}
        repo = make_repo(disk / "repo", files)
        git(repo, "add", "-f", "x.log", "d/e/y.log")
        same(repo)
        os.rename(repo / "x.log", repo / "X.log")
        same(repo)
        os.rename(repo / "d", repo / "D")
        same(repo)
        os.rename(repo / "D/e/y.log", repo / "D/e/Y.LOG")
        (repo / "X.log").write_bytes(b"changed")
        same(repo)


def test_names_in_another_unicode_form(tmp_path: Path):
    with odd_disk(tmp_path / "disk", normalise=True) as disk:
        repo = make_repo(disk / "repo", {"a": b"1"})
        (repo / "\u00e9").mkdir()
        (repo / "\u00e9/\u00fc").write_bytes(b"1")
        (repo / "\u00f6.log").write_bytes(b"1")
        same(repo)
        (repo / ".gitignore").write_bytes(b"*.log\n")
        git(repo, "update-index", "--add", "\u00f6.log")
        same(repo)
        (repo / "\u00e9/\u00fc").write_bytes(b"2")
        os.rename(repo / "\u00e9/\u00fc", repo / "\u00e9/\u00fb")
        same(repo)
        same(repo)


@pytest.mark.parametrize("fold", [0, 1_000])
def test_edits_within_one_step_of_the_disk_are_seen(
    tmp_path: Path, monkeypatch, fold: int
):
    """The clock stands still: all that happens is within one step."""
    monkeypatch.setattr(state, "_FOLD_AT", fold)
    with odd_disk(tmp_path / "disk", clock=True) as disk:
        stop_clock(disk, int(time.time()) - 60)
        repo = make_repo(disk / "repo", {**FILES, ".gitignore": b"q\n"})
        for number in range(3):
            (repo / "a").write_bytes(b"%d" % number)
            (repo / f"d/new{number}").write_bytes(b"")
            (repo / "link").unlink(missing_ok=True)
            (repo / "link").symlink_to(str(number))
            same(repo)
        (repo / ".gitignore").write_bytes(b"a\n")
        git(repo, "rm", "-q", "--cached", "a")
        assert b"a" not in captured(repo, check(repo))
        (repo / ".gitignore").write_bytes(b"b\n")
        same(repo)


def test_no_step_is_waited_for(tmp_path: Path):
    """Once its clock has moved, nothing is read again."""
    with odd_disk(tmp_path / "disk", clock=True) as disk:
        now = int(time.time())
        stop_clock(disk, now)
        repo = make_repo(disk / "repo", FILES)
        same(repo)
        stop_clock(disk, now + 1)
        same(repo)
        with reads() as noted:
            same_again = capture(repo)
        assert noted == []
        assert captured(repo, same_again) == on_disk(repo)


@pytest.mark.parametrize("back", [30, 3600])
@pytest.mark.parametrize("step", [0, 1])
def test_a_clock_that_is_set_back(tmp_path: Path, monkeypatch, back: int, step: int):
    """The second in which a file was changed comes again, and so does a change."""
    monkeypatch.setattr(state, "_FOLD_AT", 0)
    with odd_disk(tmp_path / "disk", clock=True, coarse=step) as disk:
        repo = make_repo(disk / "repo", FILES)
        now = int(time.time())
        stop_clock(disk, now + 0.25)
        (repo / "a").write_bytes(b"11")
        stop_clock(disk, now + back)
        same(repo)
        same(repo)
        # In git's index there are whole seconds only.
        stop_clock(disk, now + (0.25 if step else 0.75))
        (repo / "a").write_bytes(b"22")
        same(repo)
        (repo / "a").write_bytes(b"33")
        stop_clock(disk, now + 2 * back)
        same(repo)


def test_a_step_that_no_clock_of_gitcp_shows(tmp_path: Path):
    """The git directory is on another disk: its clock says nothing about this one."""
    with odd_disk(tmp_path / "disk", coarse=2) as disk:
        repo = disk / "repo"
        git(tmp_path, "init", "-q", "--separate-git-dir", tmp_path / "git", repo)
        write_files(repo, FILES)
        time.sleep(2 - time.time() % 2 + 0.01)
        for number in range(3):
            (repo / "a").write_bytes(b"%d" % number)
            (repo / f"new{number}").write_bytes(b"")
            snapshot = check(repo)
            wanted = {path: e for path, e in on_disk(repo).items() if path != b".git"}
            assert captured(repo, snapshot) == wanted


HABITS = [{"fold": True}, {"coarse": 1}, {"normalise": True}, {"unsteady": True}]


@pytest.mark.slow
@pytest.mark.parametrize("habits", HABITS, ids=lambda habits: next(iter(habits)))
@pytest.mark.parametrize("seed", range(3))
def test_learning_never_shows_on_odd_disks(
    tmp_path: Path, sealed: Path, monkeypatch, habits, seed: int
):
    monkeypatch.setattr(state, "_FOLD_AT", 8 if seed % 2 else 1_000)
    with odd_disk(tmp_path / "disk", **habits) as disk:
        repo = disk / "repo"
        # gitcp refuses a git directory without steady inodes.
        elsewhere = (
            ("--separate-git-dir", tmp_path / "git") if "unsteady" in habits else ()
        )
        git(tmp_path, "init", "-q", *elsewhere, repo)
        write_files(repo, FILES)
        git(repo, "add", ".")
        git(repo, "commit", "-q", "-m", "first")
        chaos = Chaos(repo, seed, sealed)
        chaos.names += ["A", "B", "e\u0301", "\u00e9", "C.LOG"]
        done: list[str] = []
        for number in range(60):
            done += [chaos.step() for _ in range(chaos.random.choice([1, 1, 2, 5]))]
            try:
                check(repo)
            except AssertionError as exc:
                raise AssertionError(f"step {number}, {done[-8:]}: {exc}") from exc
