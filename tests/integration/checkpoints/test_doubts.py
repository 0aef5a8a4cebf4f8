"""What older versions may have made wrong is named, as far as it shows."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from unittest import mock

from gitcp.format.tree import FILE, Entry
from gitcp.git.discover import discover
from gitcp.git.transaction import transaction
from gitcp.maintenance import doubts as upkeep
from gitcp.project.workspace import open_workspace
from gitcp.store.append import append_checkpoint
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, FilesState
from gitcp.store.store import Store
from tests.support.gitrepo import git, git_line, write_files
from tests.support.inprocess import invoke, ok


def found(repo: Path) -> list[tuple[str, str, str]]:
    """Kind, checkpoint and path of each doubt; it changes no exit status."""
    done = invoke(repo, "verify", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (0, True)
    assert document["doubts"]["found"] == len(document["problems"])
    return sorted(
        (one["kind"], one["checkpoint"], one["path"]) for one in document["problems"]
    )


def append(repo: Path, files: dict[str, bytes], **draft) -> Checkpoint:
    """A checkpoint with files as an older gitcp left them, one level deep."""
    repository = discover(repo)
    at = draft.pop("at", time.time())
    store = Store(repository, clock=lambda: at)
    with transaction(repository) as opened:
        entries = {
            name.encode(): Entry(FILE, opened.add_blob(data))
            for name, data in files.items()
        }
        tree = opened.add_tree(entries)
        made = append_checkpoint(
            store,
            opened,
            "main",
            "main",
            Draft(
                draft.pop("trigger", "manual"),
                files=FilesState(tree),
                allow_empty=True,
                **draft,
            ),
        )
    return made.checkpoint


def folding():
    return mock.patch.object(upkeep, "folds_case", return_value=True)


def test_a_sound_history_raises_no_doubts(repo):
    for text in (b"1", b"2"):
        write_files(repo, {"a": text, "A": text})
        ok(repo, "save")
    ok(repo, "restore", "-y", "1")
    ok(repo, "undo", "-y")
    assert found(repo) == []


def test_both_spellings_of_one_name_are_named_on_a_disk_that_folds(repo):
    write_files(repo, {"a": b"1"})
    one = append(repo, {"a": b"1"})
    two = append(repo, {"a": b"1", "A": b"1"})
    three = append(repo, {"a": b"1", "é".encode().decode(): b"1", "e\u0301": b"2"})
    assert found(repo) == []
    with folding():
        assert found(repo) == sorted(
            [
                ("two-spellings", two.id, "A"),
                ("two-spellings", three.id, "e\u0301"),
            ]
        )
        said = invoke(repo, "verify")
        assert said.returncode == 0
        assert b"one file for A and a" in said.stderr
        checks = json.loads(invoke(repo, "doctor", "--json").stdout)["checks"]
        (history,) = [one for one in checks if one["name"] == "history"]
        assert history["ok"]
        assert two.id in history["detail"]
        assert one.id not in history["detail"]


def test_both_spellings_that_git_tracks_are_no_doubt(repo):
    write_files(repo, {"a": b"1", "A": b"2"})
    git(repo, "add", "--all")
    git(repo, "-c", "user.name=t", "-c", "user.email=t@x", "commit", "-q", "-m", "both")
    ok(repo, "save")
    with folding():
        assert found(repo) == []


def test_what_a_restore_deleted_though_its_target_left_it_out_is_named(repo):
    write_files(repo, {".gitignore": b".env\n", "a": b"1", "big": b"1" * 2000})
    git(repo, "config", "gitcp.maxFileSize", "1k")
    target = ok(repo, "save")["checkpoint"]
    files = {".gitignore": b".env\n", "a": b"2", "big": b"2", ".env": b"3", "x": b"4"}
    before = append(repo, files)
    done = append(
        repo,
        {".gitignore": b".env\n", "a": b"1"},
        trigger="restore",
        restored_from=target["id"],
        replaced=before.id,
    )
    assert found(repo) == sorted(
        [
            ("wrongly-deleted", done.id, "big"),
            ("wrongly-deleted", done.id, ".env"),
        ]
    )
    way = f"`gitcp restore {before.number} PATH`".encode()
    assert way in invoke(repo, "verify").stderr


def test_what_an_undo_took_away_again_is_no_doubt(repo):
    write_files(repo, {".gitignore": b".env\n", "a": b"1"})
    target = ok(repo, "save")["checkpoint"]
    files = {".gitignore": b".env\n", "a": b"2", ".env": b"3"}
    other = append(repo, files)
    brought = append(
        repo, files, trigger="restore", restored_from=other.id, replaced=target["id"]
    )
    append(
        repo,
        {".gitignore": b".env\n", "a": b"1"},
        trigger="restore",
        restored_from=target["id"],
        replaced=brought.id,
    )
    assert found(repo) == []


def coarse():
    return mock.patch.object(upkeep._Look, "_is_coarse", return_value=True)


def test_an_edit_that_a_coarse_clock_hid_is_named(repo):
    write_files(repo, {"a": b"1", "b": b"1"})
    ok(repo, "save")
    write_files(repo, {"a": b"2"})
    os.utime(repo / "a", ns=(10**18, 10**18))
    stale = append(
        repo,
        {"a": b"1", "b": b"1", "README.md": (repo / "README.md").read_bytes()},
        at=time.time() + 5,
    )
    assert found(repo) == []
    with coarse():
        found_now = found(repo)
    assert ("missed-edit", stale.id, "a") in found_now
    assert {path for _, _, path in found_now} == {"a"}


def test_a_disk_with_fine_time_stamps_is_not_read(repo):
    write_files(repo, {"a": b"1"})
    ok(repo, "save")
    with mock.patch.object(upkeep._Look, "_holds", side_effect=AssertionError):
        assert found(repo) == []


def test_it_ends_when_its_time_is_over(repo):
    ok(repo, "save")
    workspace = open_workspace(repo)
    assert not upkeep.doubts(workspace, -1).complete
    assert upkeep.doubts(workspace, 60) == ((), True)
    assert git_line(repo, "rev-parse", "HEAD")
