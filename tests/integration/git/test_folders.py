"""Folders without git: which of them has which private store, and who is asked."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import gitcp
from gitcp.git import area, private_stores
from gitcp.git import folder as folders
from tests.support.gitrepo import (
    git,
    gitcp_environment,
    make_repo,
    run_gitcp,
    tree_bytes,
    write_files,
)
from tests.support.inprocess import fails, invoke, ok

FILES = {"a.txt": b"one\n", "src/b.txt": b"two\n", ".gitignore": b"*.log\n"}


@pytest.fixture
def folder(tmp_path):
    top = tmp_path / "notes"
    write_files(top, FILES)
    return top


@pytest.fixture(params=["versions", "names"])
def told_by(request, monkeypatch):
    """Both kinds of disks: one tells the version of an inode, one does not."""
    if request.param == "versions":
        monkeypatch.setattr(folders, "_version", lambda top: f"{os.stat(top).st_ino}")
    else:
        monkeypatch.setattr(folders, "_version", lambda top: None)
    return request.param


def stores(home: Path) -> list[Path]:
    root = home / ".local" / "state" / "gitcp" / "folders"
    return sorted(one for one in root.glob("*") if one.is_dir())


def listed(cwd: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = ok(cwd, "folders")["folders"]
    return found


def notes(cwd: Path) -> list[str]:
    return [row["note"] for row in ok(cwd, "log", "--full")["checkpoints"]]


def test_a_save_without_a_store_is_refused_and_names_the_way_out(folder, sealed):
    said = fails(folder, 10, "save")
    assert "gitcp save --init" in said
    assert stores(sealed) == []


def test_nothing_is_put_into_the_folder(folder, sealed):
    before = tree_bytes(folder)
    ok(folder, "save", "--init", "-m", "first")
    ok(folder, "save", "--allow-empty")
    assert tree_bytes(folder) == before
    assert len(stores(sealed)) == 1


def test_the_store_is_closed_to_others(folder, sealed):
    os.umask(0o022)
    ok(folder, "save", "--init")
    (store,) = stores(sealed)
    for directory in (store, store.parent, store.parent.parent):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_subfolder_a_link_and_the_option_c_find_the_store(folder, tmp_path):
    ok(folder, "save", "--init", "-m", "first")
    assert notes(folder / "src") == ["first"]
    (tmp_path / "link").symlink_to(folder)
    assert notes(tmp_path / "link") == ["first"]
    done = invoke(tmp_path, "-C", folder, "log", "--json")
    assert json.loads(done.stdout)["checkpoints"][0]["note"] == "first"


def test_what_gitignore_names_is_left_out(folder):
    write_files(folder, {"x.log": b"noise"})
    ok(folder, "save", "--init")
    paths = [row["path"] for row in ok(folder, "files", "last")["files"]]
    assert paths == [".gitignore", "a.txt", "src/b.txt"]


def test_the_nearest_folder_counts(folder):
    ok(folder, "save", "--init", "-m", "outer")
    private_stores.make(folder / "src")
    ok(folder / "src", "save", "-m", "inner")
    assert notes(folder / "src") == ["inner"]
    assert notes(folder) == ["outer"]


def test_a_repository_in_the_folder_is_its_own(folder):
    ok(folder, "save", "--init", "-m", "outer")
    nested = make_repo(folder / "nested", {"c.txt": b"three\n"})
    ok(nested, "save", "-m", "nested")
    assert notes(nested) == ["nested"]
    assert notes(folder) == ["outer"]


def test_a_broken_git_directory_is_not_taken_for_a_folder_without_git(folder):
    ok(folder, "save", "--init")
    (folder / ".git").write_text(f"gitdir: {folder}/gone\n")
    fails(folder, 10, "log")


@pytest.mark.usefixtures("told_by")
def test_a_moved_folder_goes_on_after_one_question(folder, tmp_path):
    ok(folder, "save", "--init", "-m", "first")
    moved = folder.rename(tmp_path / "moved")
    said = fails(moved, 10, "log")
    (row,) = listed(moved)
    assert f"gitcp folders --use {row['store']}" in said
    assert not row["there"]
    ok(moved, "folders", "--use", str(row["store"]))
    assert notes(moved) == ["first"]
    assert listed(moved)[0]["there"]


@pytest.mark.usefixtures("told_by")
def test_a_copied_folder_has_no_store(folder, tmp_path):
    ok(folder, "save", "--init", "-m", "first")
    shutil.copytree(folder, tmp_path / "copy")
    assert "gitcp save --init" in fails(tmp_path / "copy", 10, "log")
    ok(tmp_path / "copy", "save", "--init", "-m", "of the copy")
    assert notes(folder) == ["first"]


@pytest.mark.usefixtures("told_by")
def test_a_folder_made_again_is_not_mixed_with_the_old_one(folder, tmp_path):
    ok(folder, "save", "--init", "-m", "old")
    # Kept, so that its inode is not used again.
    folder.rename(tmp_path / "away")
    write_files(folder, {"other.txt": b"new\n"})
    assert "is not the directory" in fails(folder, 10, "save")
    ok(folder, "save", "--init", "-m", "new")
    assert notes(folder) == ["new"]


def test_below_a_folder_in_doubt_the_way_out_names_it(folder, tmp_path):
    ok(folder, "save", "--init", "-m", "old")
    moved = folder.rename(tmp_path / "moved")
    (row,) = listed(moved)
    below = moved / "src"
    assert f"-C {moved} folders --use {row['store']}" in fails(below, 10, "log")
    ok(below, "save", "--init", "-m", "of src")
    assert notes(below) == ["of src"]
    ok(moved, "folders", "--use", str(row["store"]))
    assert notes(moved) == ["old"]


def test_an_inode_that_was_used_again_is_not_the_folder(folder, tmp_path, monkeypatch):
    ok(folder, "save", "--init", "-m", "old")
    inode = os.stat(folder).st_ino
    shutil.rmtree(folder)
    other = tmp_path / "other"
    write_files(other, {"unlike.txt": b"new\n"})
    real = os.stat

    def reused(path, **kwargs):
        found = real(path, **kwargs)
        if os.fspath(path) == os.fspath(other):
            return os.stat_result((found.st_mode, inode, *found[2:]))
        return found

    monkeypatch.setattr(os, "stat", reused)
    monkeypatch.setattr(folders, "_version", lambda top: None)
    assert private_stores.find(other) is None
    write_files(other, {"a.txt": b"any\n"})
    found = private_stores.find(other)
    assert found is not None
    assert found.how == private_stores.MOVED


def test_an_emptied_folder_is_still_the_same(folder, monkeypatch):
    monkeypatch.setattr(folders, "_version", lambda top: None)
    ok(folder, "save", "--init", "-m", "first")
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    ok(folder, "restore", "1", "--yes")
    assert (folder / "src" / "b.txt").read_bytes() == b"two\n"


def test_a_restore_to_other_names_leaves_the_folder_the_same(folder, monkeypatch):
    monkeypatch.setattr(folders, "_version", lambda top: None)
    ok(folder, "save", "--init")
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    ok(folder, "save", "-m", "empty")
    write_files(folder, {"new.txt": b"new\n"})
    ok(folder, "save", "-m", "new")
    ok(folder, "restore", "1", "--yes")
    ok(folder, "log")


def test_another_device_number_for_the_same_path_is_the_same_folder(folder):
    ok(folder, "save", "--init", "-m", "first")
    (store,) = private_stores.every_store()
    entry = store.directory / "folder.json"
    told = json.loads(entry.read_bytes())
    entry.write_text(json.dumps({**told, "device": told["device"] + 1}))
    assert notes(folder) == ["first"]


@pytest.mark.parametrize("where", ["home", "above"])
def test_the_home_and_what_contains_it_are_refused(sealed, where):
    top = sealed if where == "home" else sealed.parent
    assert "home directory" in fails(top, 17, "save", "--init")
    assert stores(sealed) == []


def test_a_folder_with_the_state_directory_in_it_is_refused(folder):
    done = invoke(
        folder, "save", "--init", env={"XDG_STATE_HOME": str(folder / "state")}
    )
    assert done.returncode == 17
    assert not (folder / "state").exists()


def test_two_that_make_a_store_at_once_make_one(folder, sealed):
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(private_stores.make(folder)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores(sealed)) == 1
    assert len({one.store.ident for one in made}) == 1


def test_what_a_killed_init_left_goes_with_the_next(folder, sealed, monkeypatch):
    def killed(where):
        (where / "refs").mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(private_stores, "make_bare_store", killed)
        private_stores.make(folder)
    assert private_stores.every_store() == []
    assert len(stores(sealed)) == 1
    ok(folder, "save", "--init")
    assert [one.name for one in stores(sealed)] == [
        one.ident for one in private_stores.every_store()
    ]


def test_a_store_is_removed_when_the_user_says_so(folder, sealed):
    ok(folder, "save", "--init")
    (row,) = listed(folder)
    fails(folder, 23, "folders", "--remove", str(row["store"]))
    ok(folder, "folders", "--remove", str(row["store"]), "--yes")
    assert stores(sealed) == []
    fails(folder, 10, "log")


def test_a_store_is_read_by_its_own_path_when_the_folder_is_gone(folder):
    ok(folder, "save", "--init", "-m", "first")
    (row,) = listed(folder)
    shutil.rmtree(folder)
    done = run_gitcp(Path("/"), "-C", str(row["git_dir"]), "log", "--json")
    assert json.loads(done.stdout)["checkpoints"][0]["note"] == "first"
    done = run_gitcp(Path("/"), "-C", str(row["git_dir"]), "cat", "1", "a.txt")
    assert done.stdout == b"one\n"


def test_git_does_not_find_the_store_from_the_folder(folder):
    ok(folder, "save", "--init")
    done = subprocess.run(
        ["git", "status"], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode == 128


def test_a_quiet_folders_command_prints_what_it_lists_only(folder, tmp_path):
    ok(folder, "save", "--init")
    (row,) = listed(folder)
    moved = folder.rename(tmp_path / "moved")
    assert invoke(moved, "-q", "folders").stdout != b""
    assert invoke(moved, "-q", "folders", "--use", str(row["store"])).stdout == b""
    done = invoke(moved, "folders", "-q", "--remove", str(row["store"]), "--yes")
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_store_is_not_taken_for_a_repository(folder, repo):
    ok(folder, "save", "--init")
    (row,) = listed(folder)
    assert "gitcp adopt" in fails(
        repo, 2, "folders", "--use", str(row["store"]), "--yes"
    )


def test_the_option_c_makes_a_store_where_a_file_is_called_head(folder, tmp_path):
    write_files(folder, {"HEAD": b"a headline\n"})
    assert invoke(tmp_path, "-C", folder, "save", "--init").returncode == 0
    assert invoke(tmp_path, "-C", folder, "log").returncode == 0


def test_a_git_directory_gets_no_store(repo, sealed):
    fails(repo / ".git", 10, "save", "--init")
    assert stores(sealed) == []


def test_a_broken_git_directory_gets_no_store(folder, sealed):
    (folder / ".git").write_text(f"gitdir: {folder}/gone\n")
    fails(folder, 10, "save", "--init")
    assert stores(sealed) == []


def test_status_and_doctor_name_the_store(folder):
    ok(folder, "save", "--init")
    (row,) = listed(folder)
    assert ok(folder, "status")["private_store"] == row["store"]
    assert str(row["store"]).encode() in invoke(folder, "status").stdout
    assert str(row["store"]).encode() in invoke(folder, "doctor").stdout


def test_doctor_names_stores_whose_folder_is_gone(folder, repo):
    ok(folder, "save", "--init")
    (row,) = listed(folder)
    shutil.rmtree(folder)
    checks = json.loads(invoke(repo, "doctor", "--json").stdout)["checks"]
    (found,) = [one for one in checks if one["name"] == "folders"]
    assert found["ok"]
    assert str(row["store"]) in found["detail"]
    assert f"gitcp folders --remove {row['store']}" in found["hint"]


def test_a_folder_that_has_become_a_repository_is_marked(folder):
    ok(folder, "save", "--init")
    assert b"gitcp adopt" not in invoke(folder, "folders").stdout
    git(folder, "init", "--quiet")
    assert b"`gitcp adopt` there" in invoke(folder, "folders").stdout


def test_everything_is_uninstalled_with_the_store(folder, sealed):
    ok(folder, "install", "claude-code")
    ok(folder, "save", "--init")
    before = tree_bytes(folder)
    ok(folder, "uninstall", "--everything", "--scope", "project", "--yes")
    assert stores(sealed) == []
    assert tree_bytes(folder) == before


def test_a_fork_into_a_worktree_is_refused_with_a_reason(folder, tmp_path):
    ok(folder, "save", "--init")
    said = fails(folder, 17, "fork", "1", "try", "--worktree", str(tmp_path / "try"))
    assert "no git repository" in said
    ok(folder, "fork", "1", "try", "--yes")


def test_a_push_without_a_remote_says_what_to_do(folder):
    ok(folder, "save", "--init")
    assert "gitcp export" in fails(folder, 2, "push")


def test_a_repository_is_served_where_the_state_directory_is_another_users(
    repo, monkeypatch
):
    def refuse(root):
        raise gitcp.UnsupportedRepositoryError("another user's")

    area.private_stores().mkdir(parents=True)
    monkeypatch.setattr(private_stores, "_check_owner", refuse)
    ok(repo, "save")
    ok(repo, "log")


def test_a_repository_loads_nothing_of_this(repo):
    run_gitcp(repo, "save")
    for command in ("save", "log", "status"):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-P", "-m", "gitcp", command],
            cwd=repo,
            env=gitcp_environment(),
            capture_output=True,
            check=True,
        )
        assert b"gitcp.git.repository" in done.stderr
        for module in (b"private_stores", b"private_folder", b"gitcp.project.folders"):
            assert module not in done.stderr, command
