"""Restoring on disks that take two spellings of a name for one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.support.gitrepo import make_repo
from tests.support.inprocess import ok
from tests.support.odddisk import needs_fuse, odd_disk
from tests.support.snapshots import on_disk

pytestmark = needs_fuse


def test_a_name_that_changed_its_case_goes_back_and_forth(tmp_path: Path):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", {"a": b"1", "d/x": b"x", "d/e/y": b"y"})
        ok(repo, "save")
        before = on_disk(repo)
        os.rename(repo / "a", repo / "A")
        os.rename(repo / "d", repo / "D")
        os.rename(repo / "D/e", repo / "D/E")
        (repo / "A").write_bytes(b"edited")
        ok(repo, "save")
        renamed = on_disk(repo)
        ok(repo, "restore", "1", "--yes")
        assert on_disk(repo) == before
        ok(repo, "undo", "--yes")
        assert on_disk(repo) == renamed
        assert ok(repo, "verify")["ok"]


def test_a_directory_replaces_a_file_in_another_spelling(tmp_path):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", {"a": b"1"})
        ok(repo, "save")
        before = on_disk(repo)
        (repo / "a").unlink()
        (repo / "A").mkdir()
        (repo / "A/inner").write_bytes(b"2")
        ok(repo, "save")
        after = on_disk(repo)
        ok(repo, "restore", "1", "--yes")
        assert on_disk(repo) == before
        ok(repo, "undo", "--yes")
        assert on_disk(repo) == after


def test_a_repository_in_another_spelling_keeps_no_file(tmp_path: Path):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", {"b": b"1"})
        make_repo(repo / "A", {"inner": b"2"})
        ok(repo, "save")
        shutil.rmtree(repo / "A")
        before = on_disk(repo)
        (repo / "a").write_bytes(b"3")
        ok(repo, "save")
        after = on_disk(repo)
        restored = ok(repo, "restore", "1", "--yes")
        assert [left["path"] for left in restored["left"]] == ["A"]
        assert on_disk(repo) == before
        ok(repo, "undo", "--yes")
        assert on_disk(repo) == after


def test_two_unicode_forms_that_a_disk_without_case_keeps_apart(tmp_path: Path):
    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo", {"\u00e9": b"composed"})
        ok(repo, "save")
        before = on_disk(repo)
        (repo / "e\u0301").write_bytes(b"decomposed")
        ok(repo, "save")
        both = on_disk(repo)
        ok(repo, "restore", "1", "--yes")
        assert on_disk(repo) == before
        ok(repo, "undo", "--yes")
        assert on_disk(repo) == both
