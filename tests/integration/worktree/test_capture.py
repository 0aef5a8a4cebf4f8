"""Capture: what is in, what is out, and that learning from the last never shows."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from gitcp.errors import GitFailedError
from gitcp.format import index as indexes
from gitcp.git import process
from gitcp.git.discover import discover
from gitcp.git.transaction import transaction
from gitcp.worktree import clock, state
from gitcp.worktree.capture import Capture
from gitcp.worktree.files import Root
from gitcp.worktree.scan import Rules
from tests.conftest import GitRunner
from tests.support.gitrepo import commit_all, git_line, make_repo, write_files
from tests.support.gitrepo import git as run_git
from tests.support.inprocess import ok
from tests.support.snapshots import (
    capture,
    captured,
    empty_on_disk,
    on_disk,
    publish,
    reads,
    skipped,
)

LARGE = 100 << 20


def check(repo: Path, rules: Rules = Rules(limit=LARGE)):  # noqa: B008
    """Captures with what was learnt, and requires that a fresh capture says the same."""
    quick = capture(repo, rules)
    whole = capture(repo, rules, fresh=True, remember=False)
    assert quick.empty == whole.empty
    assert quick.skipped == whole.skipped
    if quick.tree != whole.tree:
        with_learning = captured(repo, quick)
        again = captured(repo, capture(repo, rules, fresh=True))
        assert with_learning == again
    assert quick.tree == whole.tree
    return quick


def test_the_first_capture_is_the_work_tree(repo: Path):
    (repo / "empty/inner").mkdir(parents=True)
    snapshot = capture(repo)
    assert captured(repo, snapshot) == on_disk(repo)
    assert set(snapshot.empty) == empty_on_disk(repo) == {b"empty/inner"}
    assert snapshot.skipped == ()


def test_nothing_changed_means_nothing_is_read(repo: Path):
    first = capture(repo)
    time.sleep(0.03)
    capture(repo)
    with reads() as noted:
        second = capture(repo)
    assert second.tree == first.tree
    assert noted == []


def test_only_what_changed_is_read(repo: Path):
    capture(repo)
    time.sleep(0.03)
    capture(repo)
    write_files(repo, {"src/pkg/main.py": b"print('three')\n"})
    with reads() as noted:
        snapshot = capture(repo)
    assert noted == [b"src/pkg/main.py"]
    assert captured(repo, snapshot) == on_disk(repo)


def test_changes_of_every_kind(repo: Path):
    check(repo)
    src = repo / "src"

    def same() -> None:
        snapshot = check(repo)
        assert captured(repo, snapshot) == on_disk(repo)
        assert set(snapshot.empty) == empty_on_disk(repo)

    (repo / "README.md").write_bytes(b"edited")
    (src / "pkg/data.bin").unlink()
    same()
    (src / "pkg/main.py").rename(src / "moved.py")
    same()
    (src / "pkg").rmdir()
    (src / "pkg").write_bytes(b"a file now")
    same()
    (src / "pkg").unlink()
    (src / "pkg").symlink_to("nowhere")
    same()
    (src / "pkg").unlink()
    (src / "pkg/a/b/c").mkdir(parents=True)
    same()
    (src / "pkg/a/b/c/f").write_bytes(b"deep")
    same()
    (src / "moved.py").chmod(0o755)
    (repo / "bin/run").chmod(0o644)
    same()
    shutil.move(src, repo / "lib")
    os.symlink("lib", src)
    same()
    shutil.rmtree(repo / "lib")
    same()


def test_rewriting_a_file_at_once_is_seen(repo: Path):
    file = repo / "README.md"
    for number in range(40):
        with file.open("r+b") as handle:
            handle.write(b"%4d" % number)
        assert captured(repo, capture(repo)) == on_disk(repo)


def test_replacing_a_link_at_once_is_seen(repo: Path):
    link = repo / "latest"
    for number in range(40):
        link.unlink()
        link.symlink_to(f"{number:4}")
        assert captured(repo, capture(repo)) == on_disk(repo)


def test_a_name_that_comes_at_once_is_seen(repo: Path):
    for number in range(40):
        (repo / f"new{number}").write_bytes(b"")
        assert captured(repo, capture(repo)) == on_disk(repo)


# --- what is in and what is out ------------------------------------------------


def test_ignored_is_out_and_tracked_is_in(repo: Path, git: GitRunner):
    write_files(repo, {"a.log": b"1", "build/x": b"2", "b.log": b"3", "l/c.log": b""})
    git("add", "-f", "b.log")
    paths = captured(repo, check(repo)).keys()
    assert b"b.log" in paths
    assert not paths & {b"a.log", b"build/x", b"l/c.log"}
    git("add", "-f", "build/x", "l/c.log")
    snapshot = check(repo)
    assert captured(repo, snapshot).keys() == paths | {b"build/x", b"l/c.log"}
    assert snapshot.empty == ()
    git("rm", "-q", "--cached", "b.log", "l/c.log")
    snapshot = check(repo)
    assert captured(repo, snapshot).keys() == paths - {b"b.log"} | {b"build/x"}
    assert snapshot.empty == (b"l",)


def test_a_tracked_file_that_becomes_ignored_stays(repo: Path):
    check(repo)
    (repo / ".gitignore").write_bytes(b"*.md\n")
    assert b"README.md" in captured(repo, check(repo))


def test_an_ignore_file_that_is_ignored_counts(repo: Path):
    (repo / ".git/info/exclude").write_bytes(b".gitignore\n")
    write_files(repo, {"d/x": b"", "d/y": b""})
    check(repo)
    (repo / "d/.gitignore").write_bytes(b"x\n")
    assert b"d/x" not in captured(repo, check(repo))
    (repo / "d/.gitignore").write_bytes(b"y\n")
    paths = captured(repo, check(repo)).keys()
    assert b"d/x" in paths
    assert b"d/y" not in paths


def test_excludes_outside_the_tree_count(repo: Path, git: GitRunner, sealed: Path):
    write_files(repo, {"x": b"", "y": b"", "z": b""})
    check(repo)
    git("config", "core.excludesFile", ".git/mine")
    (repo / ".git/mine").write_bytes(b"x\n")
    assert b"x" not in captured(repo, check(repo))
    (repo / ".git/info/exclude").write_bytes(b"y\n")
    assert not captured(repo, check(repo)).keys() & {b"x", b"y"}
    git("config", "--unset", "core.excludesFile")
    (sealed / ".config/git").mkdir(parents=True)
    (sealed / ".config/git/ignore").write_bytes(b"z\n")
    paths = captured(repo, check(repo)).keys()
    assert b"x" in paths
    assert not paths & {b"y", b"z"}


def test_settings_include_and_exclude(repo: Path):
    write_files(
        repo, {"a.log": b"1", "build/x": b"2", ".gitcp/a.log": b"", "secret": b""}
    )
    write_files(make_repo(repo / "nested"), {"a.log": b""})
    rules = Rules(LARGE, ("*.log", "build/x"), ("secret", "README.md"))
    paths = captured(repo, check(repo, rules)).keys()
    assert {b"a.log", b"build/x"} <= paths
    assert not paths & {b"secret", b"README.md", b".gitcp/a.log", b"nested/a.log"}
    write_files(repo, {"a.log": b"changed", "README.md": b"changed", "new.log": b""})
    assert captured(repo, check(repo, rules)).keys() == paths | {b"new.log"}
    (repo / "a.log").unlink()
    (repo / "build/x").unlink()
    check(repo, rules)
    assert b"README.md" in captured(repo, check(repo))


def test_an_included_file_stays_out_once_its_directory_is_a_repository(repo: Path):
    """No listing leads there: git ignores the directory."""
    (repo / ".git/info/exclude").write_bytes(b"/build/\n")
    write_files(repo, {"build/a.log": b"1", "build/deep/b.log": b"2"})
    rules = Rules(LARGE, ("*.log",))
    paths = captured(repo, check(repo, rules)).keys()
    assert {b"build/a.log", b"build/deep/b.log"} <= paths
    make_repo(repo / "build" / "deep")
    assert captured(repo, check(repo, rules)).keys() == paths - {b"build/deep/b.log"}
    make_repo(repo / "build")
    shutil.rmtree(repo / "build" / "deep" / ".git")
    left = paths - {b"build/a.log", b"build/deep/b.log"}
    assert captured(repo, check(repo, rules)).keys() == left
    shutil.rmtree(repo / "build" / ".git")
    assert captured(repo, check(repo, rules)).keys() == paths


def test_the_size_limit(repo: Path):
    rules = Rules(limit=100)
    file = repo / "f"
    file.write_bytes(b"a" * 100)
    assert b"f" in captured(repo, check(repo, rules))
    with file.open("ab") as handle:
        handle.write(b"b")
    snapshot = check(repo, rules)
    assert skipped(snapshot) == {b"f": "too-large"}
    assert b"f" not in captured(repo, snapshot)
    os.truncate(file, 50)
    assert captured(repo, check(repo, rules)) == on_disk(repo)


def test_special_files_are_named(repo: Path):
    os.mkfifo(repo / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        where = os.getcwd()
        os.chdir(repo)
        listener.bind("sock")
        os.chdir(where)
        named = {b"fifo": "special-file", b"sock": "special-file"}
        assert skipped(check(repo)) == named
    (repo / "fifo").unlink()
    (repo / "README.md").unlink()
    os.mkfifo(repo / "README.md")
    named = {b"README.md": "special-file", b"sock": "special-file"}
    assert skipped(check(repo)) == named


@pytest.mark.parametrize("rule", ["pipe", "/d/", "ign/*"])
def test_special_files_are_not_named_where_they_are_excluded(repo: Path, rule: str):
    """Also in place of tracked files, one of which an ignore rule hides."""
    paths = {"pipe": b"1", "d/pipe": b"2", "ign/pipe": b"3"}
    write_files(repo, paths)
    commit_all(repo)
    write_files(repo, {".gitignore": b"ign/\n"})
    check(repo, Rules(LARGE))
    for path in paths:
        (repo / path).unlink()
        os.mkfifo(repo / path)
    excluded = {
        "pipe": {b"pipe", b"d/pipe", b"ign/pipe"}, "/d/": {b"d/pipe"},
        "ign/*": {b"ign/pipe"},
    }[rule]  # fmt: skip
    every = {path.encode(): "special-file" for path in paths}
    assert skipped(check(repo, Rules(LARGE))) == every
    some = {path: why for path, why in every.items() if path not in excluded}
    for _ in range(2):
        assert skipped(check(repo, Rules(LARGE, exclude=(rule,)))) == some
    (repo / "new").touch()
    assert skipped(check(repo, Rules(LARGE, exclude=(rule,)))) == some
    assert skipped(check(repo, Rules(LARGE))) == every


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_unreadable_is_named():
    with tempfile.TemporaryDirectory() as base:
        repo = make_repo(
            Path(base, "repo"), {"f": b"1", "d/x": b"2", "e/y": b"", "g/h/z": b""}
        )
        os.chmod(base, 0o755)
        subprocess.run(["chown", "-R", "65534:65534", base], check=True)
        os.setresuid(65534, 65534, 0)
        try:
            check(repo)
            (repo / "f").chmod(0)
            (repo / "d").chmod(0)
            (repo / "e").chmod(0o111)
            (repo / "g").chmod(0o444)
            snapshot = check(repo)
            assert skipped(snapshot).keys() >= {b"f", b"d", b"e"}
            assert set(skipped(snapshot).values()) == {"unreadable"}
            assert captured(repo, snapshot) == {}
            check(repo)
            for name in "dge":
                (repo / name).chmod(0o755)
            (repo / "f").chmod(0o644)
            snapshot = check(repo)
            assert snapshot.skipped == ()
            assert captured(repo, snapshot) == on_disk(repo)
        finally:
            os.setresuid(0, 0, 0)


def test_names_of_every_kind(repo: Path):
    names = [b":", b":(glob)*", b":!x", b"-n", b"!x", b"#x", b"a\nb", b"\xff\xfe", b"*"]
    names += [
        b" ",
        b"a ",
        b"\\",
        b"d/:x",
        b"d/-",
        b"\xc3\xa9",
        b"x" * 255,
        b'"q"',
        b"~",
    ]
    top = os.fsencode(repo)
    os.mkdir(top + b"/d")
    for name in names:
        Path(os.fsdecode(top + b"/" + name)).write_bytes(name)
    assert captured(repo, check(repo)) == on_disk(repo)
    for name in names:
        Path(os.fsdecode(top + b"/" + name)).write_bytes(b"again " + name)
    assert captured(repo, check(repo)) == on_disk(repo)


def test_names_like_git_are_named(repo: Path):
    write_files(repo, {"d/.GIT": b"", "git~1/x": b""})
    found = skipped(check(repo))
    assert found == {b"d/.GIT": "unsafe-path", b"git~1": "unsafe-path"}


def test_the_reserved_name(repo: Path, git: GitRunner):
    write_files(repo, {".gitcp/x": b"", "d/.gitcp/y": b"", ".gitcp/z.log": b""})
    git("add", "-f", ".")
    snapshot = check(repo)
    assert skipped(snapshot) == {b".gitcp": "reserved-name"}
    assert b"d/.gitcp/y" in captured(repo, snapshot)
    assert not any(path.startswith(b".gitcp") for path in captured(repo, snapshot))
    shutil.rmtree(repo / ".gitcp")
    assert check(repo).skipped == ()


def test_a_very_deep_tree(repo: Path):
    path = repo
    for _ in range(240):
        path /= "d"
    path.mkdir(parents=True)
    (path / "f").write_bytes(b"1")
    (path / "g").write_bytes(b"1")
    assert captured(repo, check(repo)) == on_disk(repo)
    (path / "f").write_bytes(b"2")
    (path / "g").unlink()
    assert captured(repo, check(repo)) == on_disk(repo)


# --- nested repositories, sparse checkouts, attributes ----------------------------


def test_nested_repositories_come_and_go(repo: Path):
    check(repo)
    nested = make_repo(repo / "d/nested", {"f": b"1"})
    unborn = make_repo(repo / "unborn")
    (unborn / "f").write_bytes(b"")
    snapshot = check(repo)
    kind = "nested-repository"
    assert skipped(snapshot) == {b"d/nested": kind, b"unborn": kind}
    head = git_line(nested, "rev-parse", "HEAD")
    assert captured(repo, snapshot)[b"d/nested"] == (0o160000, head)
    assert b"unborn" not in captured(repo, snapshot)
    head = commit_all(nested)
    assert captured(repo, check(repo))[b"d/nested"] == (0o160000, head)
    shutil.rmtree(nested / ".git")
    shutil.rmtree(unborn)
    snapshot = check(repo)
    assert snapshot.skipped == ()
    assert captured(repo, snapshot) == on_disk(repo)


def test_a_captured_directory_becomes_a_repository(repo: Path, git: GitRunner):
    write_files(repo, {"src/pkg/a.log": b"", "src/pkg/new.py": b"not tracked"})
    git("add", "-f", "src/pkg/a.log")
    whole = captured(repo, check(repo))
    inner = repo / "src/pkg"
    git("-C", inner, "init", "-q")
    snapshot = check(repo)
    assert skipped(snapshot) == {b"src/pkg": "nested-repository"}
    own = {path: entry for path, entry in whole.items() if path != b"src/pkg/new.py"}
    assert captured(repo, snapshot) == own
    write_files(repo, {"src/pkg/main.py": b"changed inside"})
    snapshot = check(repo)
    changed = captured(repo, snapshot)
    assert {path for path in own if own[path] != changed[path]} == {b"src/pkg/main.py"}
    (inner / "main.py").unlink()
    assert captured(repo, check(repo)).keys() == own.keys() - {b"src/pkg/main.py"}
    write_files(repo, {"src/pkg/main.py": b"back again"})
    assert captured(repo, check(repo)).keys() == own.keys()
    git("add", "src/pkg/new.py")
    assert captured(repo, check(repo)).keys() == whole.keys()
    # A repository of its own with a commit: its HEAD has no place beside these files.
    git("-C", inner, "commit", "-q", "--allow-empty", "-m", "inner")
    assert captured(repo, check(repo)).keys() == whole.keys()
    git("rm", "-rq", "--cached", "src/pkg")
    head = (0o160000, git_line(inner, "rev-parse", "HEAD"))
    assert captured(repo, check(repo))[b"src/pkg"] == head
    git("reset", "-q")
    (inner / "a.log").unlink()
    shutil.rmtree(inner / ".git")
    assert captured(repo, check(repo)) == on_disk(repo)


def test_many_repositories_in_tracked_directories(repo: Path, git: GitRunner):
    names = [f"m{number}/[x]*?" for number in range(5)]
    write_files(repo, {f"{name}/f": name.encode() for name in names})
    commit_all(repo)
    for name in names:
        git("-C", repo / name, "init", "-q")
    assert captured(repo, check(repo)) == on_disk_but_git(repo)


def test_a_directory_that_changes_as_the_one_above_becomes_a_repository_is_left_alone(
    repo: Path, git: GitRunner
):
    """Both are listed again by the same scan."""
    write_files(repo, {"m/d/f": b"1", "m/g": b"2"})
    check(repo)
    git("-C", repo / "m", "init", "-q")
    (repo / "m/d/f").rename(repo / "m/f")
    snapshot = check(repo)
    assert snapshot.empty == ()
    assert skipped(snapshot) == {b"m": "nested-repository"}
    (repo / "m/new").mkdir()
    assert check(repo).empty == ()


def test_what_git_tracks_stays_captured_once_the_repository_above_it_is_gone(
    repo: Path, git: GitRunner
):
    """Its index changes after the listing that found the file again."""
    write_files(repo, {"d/a": b"1", "b": b"2"})
    git("add", "-A")
    git("-C", repo / "d", "init", "-q")
    check(repo)
    shutil.rmtree(repo / "d")
    check(repo)
    write_files(repo, {"d/a": b"1"})
    time.sleep(0.03)
    check(repo)
    write_files(repo, {"c": b"3"})
    time.sleep(0.03)
    check(repo)
    git("add", "-A")
    assert b"d/a" in captured(repo, check(repo))


def test_a_tracked_file_that_is_ignored_comes_back_in_place_of_a_pipe(
    repo: Path, git: GitRunner
):
    write_files(repo, {"a": b"1", "other": b"2", ".git/info/exclude": b"a\n"})
    git("add", "-f", "a")
    (repo / "a").unlink()
    os.mkfifo(repo / "a")
    assert skipped(check(repo)) == {b"a": "special-file"}
    time.sleep(0.03)
    (repo / "other").rename(repo / "a")
    snapshot = check(repo)
    assert b"a" in captured(repo, snapshot)
    assert skipped(snapshot) == {}


def test_what_was_too_large_is_no_longer_listed_once_git_does_not_track_it(
    repo: Path, git: GitRunner
):
    rules = Rules(limit=1000)
    write_files(repo, {"a": b"x" * 2000, ".git/info/exclude": b"a\n"})
    git("add", "-f", "a")
    assert skipped(check(repo, rules)) == {b"a": "too-large"}
    time.sleep(0.03)
    git("rm", "-q", "--cached", "a")
    assert skipped(check(repo, rules)) == {}


def on_disk_but_git(repo: Path):
    return {path: e for path, e in on_disk(repo).items() if b"/.git/" not in path}


def test_submodules(repo: Path, git: GitRunner, tmp_path: Path):
    other = make_repo(tmp_path / "other", {"f": b"1"})
    check(repo)
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", other, "sub")
    git("commit", "-qm", "submodule")
    head = (0o160000, git_line(other, "rev-parse", "HEAD"))
    snapshot = check(repo)
    assert skipped(snapshot) == {b"sub": "submodule"}
    assert captured(repo, snapshot)[b"sub"] == head
    git("submodule", "deinit", "-q", "-f", "sub")
    for _ in range(2):
        snapshot = check(repo)
        assert captured(repo, snapshot)[b"sub"] == head
        assert snapshot.empty == ()


def test_a_submodule_at_an_ignored_path_is_recorded_while_git_tracks_it(
    repo: Path, git: GitRunner, tmp_path: Path
):
    other = make_repo(tmp_path / "other", {"f": b"1"})
    write_files(repo, {"d/a": b"1"})
    (repo / ".git/info/exclude").write_text("/d/*\n")
    git("add", "-f", "d/a")
    head = (0o160000, git_line(other, "rev-parse", "HEAD"))

    def recorded() -> bool:
        snapshot = check(repo)
        listed = skipped(snapshot).get(b"d/sub")
        assert captured(repo, snapshot).get(b"d/sub") == (head if listed else None)
        assert snapshot.empty == ()
        return listed is not None

    assert not recorded()
    submodule = ("-c", "protocol.file.allow=always", "submodule", "-q")
    git(*submodule, "add", "--force", other, "d/sub")
    git("commit", "-qm", "submodule")
    assert recorded()
    git(*submodule, "deinit", "-f", "d/sub")
    assert not recorded()
    git(*submodule, "update", "--init", "d/sub")
    assert recorded()
    git("rm", "-q", "--cached", "d/sub")
    assert not recorded()
    git("add", "-f", "d/sub")
    assert recorded()
    git("init", "-q", "d")
    assert not recorded()
    shutil.rmtree(repo / "d/.git")
    assert recorded()
    (repo / ".git/info/exclude").write_text("")
    assert recorded()
    (repo / ".git/info/exclude").write_text("/d/*\n")
    assert recorded()
    shutil.rmtree(repo / "d/sub")
    assert not recorded()


def test_a_repository_in_place_of_an_ignored_tracked_file_is_recorded(
    repo: Path, git: GitRunner
):
    write_files(repo, {"a": b"1"})
    git("add", "a")
    (repo / ".git/info/exclude").write_text("/a\n")

    def recorded() -> bool:
        snapshot = check(repo)
        listed = skipped(snapshot).get(b"a") == "nested-repository"
        assert (captured(repo, snapshot).get(b"a", (0,))[0] == 0o160000) == listed
        return listed

    assert not recorded()
    (repo / "a").unlink()
    make_repo(repo / "a", {"f": b"1"})
    assert recorded()
    git("commit", "-q", "--allow-empty", "-m", "another index")
    assert recorded()
    (repo / "a/.git").rename(repo / "a/git")
    assert not recorded()
    (repo / "a/git").rename(repo / "a/.git")
    assert recorded()
    git("rm", "-q", "--cached", "a")
    assert not recorded()
    (repo / ".git/info/exclude").write_text("")
    assert recorded()


def test_a_file_written_where_a_sparse_checkout_omits_an_ignored_one_is_captured(
    repo: Path, git: GitRunner
):
    write_files(repo, {"e/a": b"1", "lib/b": b"1"})
    commit_all(repo)
    git("sparse-checkout", "set", "--no-cone", "/README.md", "/.gitignore")
    (repo / ".git/info/exclude").write_text("/e/\n")
    git("init", "-q", "lib")
    omitted = captured(repo, check(repo))
    assert omitted[b"e/a"] == omitted[b"lib/b"]
    written = {"e/a": b"2", "lib/b": b"3"}
    write_files(repo, written)
    found = captured(repo, check(repo))
    here = on_disk_but_git(repo)
    assert {path: found[path] for path in here} == here
    (repo / "e/a").unlink()
    (repo / "lib/b").unlink()
    check(repo)
    write_files(repo, written)
    assert captured(repo, check(repo)) == found


def test_what_a_sparse_checkout_omits_is_not_captured_where_it_is_excluded(
    repo: Path, git: GitRunner
):
    write_files(repo, {"e/a": b"1", "lib/b": b"1"})
    commit_all(repo)
    git("sparse-checkout", "set", "--no-cone", "/README.md", "/.gitignore")
    assert {b"e/a", b"lib/b"} <= captured(repo, check(repo)).keys()
    without = captured(repo, check(repo, Rules(LARGE, exclude=("/e/",))))
    assert b"lib/b" in without
    assert b"e/a" not in without
    write_files(repo, {"README.md": b"2"})
    assert b"e/a" not in captured(repo, check(repo, Rules(LARGE, exclude=("/e/",))))
    assert b"e/a" in captured(repo, check(repo))


def test_a_file_in_place_of_an_ignored_submodule_is_captured(
    repo: Path, git: GitRunner
):
    """git tracks what is at that path, whatever it is by now."""
    where = repo / "d/sub"
    make_repo(where, {"f": b"1"})
    (repo / ".git/info/exclude").write_text("/d/\n")
    git("add", "-f", "d/sub")
    assert skipped(check(repo)) == {b"d/sub": "nested-repository"}
    where.rename(repo.parent / "away")
    where.write_bytes(b"a file")
    for content in (b"a file", b"edited"):
        where.write_bytes(content)
        snapshot = check(repo)
        assert captured(repo, snapshot)[b"d/sub"] == on_disk(repo)[b"d/sub"]
        assert skipped(snapshot) == {}
    where.unlink()
    assert b"d/sub" not in captured(repo, check(repo))
    where.write_bytes(b"again")
    assert captured(repo, check(repo))[b"d/sub"] == on_disk(repo)[b"d/sub"]
    where.unlink()
    (repo.parent / "away").rename(where)
    assert skipped(check(repo)) == {b"d/sub": "nested-repository"}
    git("rm", "-q", "-f", "--cached", "d/sub")
    assert skipped(check(repo)) == {}


def test_an_ignored_tracked_file_where_head_has_a_submodule_is_captured(
    repo: Path, git: GitRunner
):
    make_repo(repo / "d", {"f": b"1"})
    git("add", "d")
    git("commit", "-qm", "submodule")
    shutil.rmtree(repo / "d")
    git("rm", "-q", "--cached", "d")
    write_files(repo, {"d/a.log": b"1"})
    git("add", "-f", "d/a.log")
    snapshot = check(repo)
    assert b"d/a.log" in captured(repo, snapshot)
    assert skipped(snapshot) == {}


def test_a_submodule_that_a_sparse_checkout_omits_hides_no_nested_repository(
    repo: Path, git: GitRunner
):
    make_repo(repo / "d/e", {"f": b"1"})
    git("add", "-A")
    git("commit", "-qm", "submodule")
    git("sparse-checkout", "set", "--no-cone", "/README.md", "/.gitignore")
    shutil.rmtree(repo / "d", ignore_errors=True)
    inner = make_repo(repo / "d", {"g": b"1"})
    head = (0o160000, git_line(inner, "rev-parse", "HEAD"))
    assert captured(repo, check(repo))[b"d"] == head


def test_what_came_in_place_of_an_omitted_directory_is_captured(
    repo: Path, git: GitRunner
):
    write_files(repo, {"e/a": b"1", "lib/b/c": b"2"})
    commit_all(repo)
    git("sparse-checkout", "set", "--no-cone", "/README.md", "/.gitignore")
    omitted = captured(repo, check(repo))
    assert {b"e/a", b"lib/b/c"} <= omitted.keys()
    (repo / "e").symlink_to("README.md")
    write_files(repo, {"lib/b": b"a file"})
    found = captured(repo, check(repo))
    here = on_disk(repo)
    assert {path: found[path] for path in here} == here
    assert {b"e/a", b"lib/b/c"}.isdisjoint(found)
    (repo / "e").unlink()
    shutil.rmtree(repo / "lib")
    assert captured(repo, check(repo)) == omitted


def test_an_ignored_file_that_git_let_go_of_and_that_changed_is_not_captured(
    repo: Path, git: GitRunner
):
    names = ("conf.log", "d/x", "e/x")
    write_files(repo, dict.fromkeys(names, b"1"))
    git("add", "-f", *names)
    git("init", "-q", "d")
    git("init", "-q", "e")
    assert {b"conf.log", b"d/x", b"e/x"} <= captured(repo, check(repo)).keys()
    git("rm", "-q", "--cached", *names)
    shutil.rmtree(repo / "e/.git")
    write_files(repo, dict.fromkeys(names, b"22"))
    found = captured(repo, check(repo))
    assert {b"conf.log", b"d/x"}.isdisjoint(found)
    # A listing leads to this one.
    assert b"e/x" in found


def test_a_sparse_checkout_loses_nothing(repo: Path, git: GitRunner):
    write_files(repo, {"lib/a": b"1", "lib/b": b"2", "doc/c": b"3"})
    commit_all(repo)
    everything = on_disk(repo)
    assert captured(repo, check(repo)) == everything
    git("sparse-checkout", "set", "--cone", "src")
    assert not (repo / "lib").exists()
    for _ in range(2):
        snapshot = check(repo)
        assert captured(repo, snapshot) == everything
        assert b"lib/a" in snapshot.sparse
    write_files(repo, {"lib/a": b"by hand"})
    snapshot = check(repo)
    assert captured(repo, snapshot) == {**everything, **on_disk(repo)}
    shutil.rmtree(repo / "lib")
    assert captured(repo, check(repo)) == everything
    git("sparse-checkout", "disable")
    write_files(repo, {"lib/b": b"changed"})
    snapshot = check(repo)
    assert captured(repo, snapshot) == on_disk(repo)
    assert snapshot.sparse == frozenset()


@pytest.mark.parametrize("top", [False, True])
def test_ignore_files_that_only_the_index_holds_count(
    repo: Path, git: GitRunner, top: bool
):
    rules = b".env\n/node_modules/\n!keep.env\n"
    if top:
        (repo / ".gitignore").write_bytes(rules)
        write_files(repo, {"lib/a": b"1"})
    else:
        write_files(repo, {"lib/.gitignore": rules, "lib/a": b"1"})
    commit_all(repo)
    check(repo)
    if top:
        git("sparse-checkout", "set", "--no-cone", "/src/")
        place = ""
    else:
        git("sparse-checkout", "set", "--cone", "src")
        place = "lib/"
    unwanted = {f"{place}.env": b"SECRET", f"{place}node_modules/m": b""}
    write_files(repo, {**unwanted, f"{place}new": b"", f"{place}keep.env": b""})
    status = git("status", "--porcelain", "-uall").splitlines()
    assert not set(status) & {b"?? " + os.fsencode(name) for name in unwanted}
    paths = captured(repo, check(repo)).keys()
    assert not paths & set(map(os.fsencode, unwanted))
    assert {os.fsencode(place) + name for name in (b"new", b"keep.env")} <= paths
    # The rules change in the index alone.
    blob = git("hash-object", "-w", "--stdin", input=b"new\n").decode().strip()
    entry = f"100644,{blob},{place}.gitignore"
    git("update-index", "--cacheinfo", entry)
    git("update-index", "--skip-worktree", f"{place}.gitignore")
    paths = captured(repo, check(repo)).keys()
    assert os.fsencode(place) + b"new" not in paths
    assert os.fsencode(place) + b".env" in paths


def test_a_repository_where_a_sparse_checkout_left_files_out(
    repo: Path, git: GitRunner
):
    write_files(repo, {"docs/r.md": b"r"})
    commit_all(repo)
    git("sparse-checkout", "set", "--no-cone", "/src/")
    first = captured(repo, check(repo))
    make_repo(repo / "docs", {"inner": b""})
    for _ in range(3):
        snapshot = check(repo)
        assert captured(repo, snapshot) == first
        assert skipped(snapshot) == {b"docs": "nested-repository"}


def test_settings_that_ignore_rules_depend_on(repo: Path, git: GitRunner):
    write_files(repo, {"x": b"", ".gitignore": b"X\n"})
    git("config", "core.ignoreCase", "true")
    assert b"x" not in captured(repo, check(repo))
    git("config", "core.ignoreCase", "false")
    assert b"x" in captured(repo, check(repo))


def test_rules_and_names_in_two_unicode_forms(repo: Path, git: GitRunner, monkeypatch):
    """On macOS git composes the names that it reads before it looks at the rules."""
    write_files(repo, {"e\u0301": b"", ".gitignore": "\u00e9\n".encode()})
    assert "e\u0301".encode() in captured(repo, check(repo))
    git("config", "core.precomposeUnicode", "true")
    monkeypatch.setattr("sys.platform", "darwin")
    assert "e\u0301".encode() not in captured(repo, check(repo))


def test_names_like_those_of_temporary_files(repo: Path):
    write_files(repo, {".gitcp-tmp-mine": b"1", "d/.gitcp-tmp-x-0": b"2"})
    ours = {f"d/.gitcp-tmp-0123456789ab-{end}": b"" for end in ("0", "abc123", "7.old")}
    write_files(repo, ours)
    snapshot = check(repo)
    assert skipped(snapshot) == {os.fsencode(path): "reserved-name" for path in ours}
    paths = captured(repo, snapshot).keys()
    assert {b".gitcp-tmp-mine", b"d/.gitcp-tmp-x-0"} <= paths
    assert not paths & set(map(os.fsencode, ours))


@pytest.mark.parametrize("what", ["HEAD", "HEAD^{tree}", "HEAD:src/pkg"])
def test_a_damaged_head_is_no_obstacle(repo: Path, git: GitRunner, what: str):
    oid = git("rev-parse", what).decode().strip()
    damaged = repo / ".git/objects" / oid[:2] / oid[2:]
    damaged.chmod(0o644)
    damaged.write_bytes(b"")
    write_files(repo, {"src/pkg/main.py": b"changed"})
    assert captured(repo, check(repo)) == on_disk(repo)


def test_bytes_are_as_they_lie_on_disk(repo: Path, git: GitRunner, tmp_path: Path):
    mark = tmp_path / "mark"
    git("config", "core.autocrlf", "true")
    git("config", "core.eol", "crlf")
    git("config", "filter.x.clean", f"touch {mark}; tr a-z A-Z")
    git("config", "filter.x.process", f"touch {mark}; false")
    git("config", "filter.x.required", "true")
    attributes = b"* text filter=x ident eol=crlf\n*.u working-tree-encoding=UTF-16\n"
    content = {"a.txt": b"a\r\nb\n$Id: $\n", "b.u": b"\xff\xfea\0", "c": b"x\n"}
    write_files(repo, {".gitattributes": attributes, **content})
    assert captured(repo, check(repo)) == on_disk(repo)
    write_files(repo, {"a.txt": b"a\nb\r\n$Id: $\n"})
    assert captured(repo, check(repo)) == on_disk(repo)
    assert not mark.exists()


# --- files that change while they are read -----------------------------------------


@pytest.mark.parametrize("size", [4_000, 9 << 20])
@pytest.mark.parametrize("how", ["in-place", "truncate", "rename", "append"])
def test_a_torn_file_is_never_passed_off_as_whole(repo: Path, how: str, size: int):
    file = repo / "busy"
    file.write_bytes(b"a" * size)
    stop = threading.Event()

    def write() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            data = (b"%c" % (97 + turn % 26)) * size
            if how == "rename":
                (repo / "busy.log").write_bytes(data)
                (repo / "busy.log").rename(file)
            elif how == "append":
                with file.open("ab") as handle:
                    handle.write(data[:100])
            else:
                flags = os.O_WRONLY | (os.O_TRUNC if how == "truncate" else 0)
                fd = os.open(file, flags)
                # In one call: between two the file would lie there half written, and
                # capturing that is right.
                os.write(fd, data)
                os.close(fd)
            if turn % 3 == 0:
                time.sleep(random.random() * 0.02)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(4 if size < 5_000 else 2):
            snapshot = capture(repo)
            if skipped(snapshot).get(b"busy") == "changed-while-reading":
                continue
            paths = captured(repo, snapshot)
            if b"busy" in paths:
                data = run_git(repo, "cat-file", "blob", paths[b"busy"][1])
                assert how == "append" or len(set(data)) <= 1
    finally:
        stop.set()
        writer.join()
    snapshot = check(repo)
    assert snapshot.skipped == ()
    assert captured(repo, snapshot) == on_disk(repo)


# --- what was learnt -----------------------------------------------------------------


def scan_directory(repo: Path) -> Path:
    return repo / ".git/gitcp/scan"


def settle(repo: Path) -> None:
    """Waits for the next second, so that files go to the index."""
    time.sleep(1.15 - time.time() % 1)
    assert repo.exists()


def test_many_changes_go_to_the_index(repo: Path):
    write_files(repo, {f"many/{n % 7}/f{n}": b"%d" % n for n in range(1_200)})
    settle(repo)
    snapshot = check(repo)
    learnt = state.load(scan_directory(repo))
    assert learnt.index
    assert len(learnt.overlay) < 100
    raw = (scan_directory(repo) / "index").read_bytes()
    entries = list(indexes.decode(raw, discover(repo).form))
    assert {e.path: (e.stat.mode, e.oid.hex()) for e in entries} == captured(
        repo, snapshot
    )
    private = {"GIT_DIR": str(scan_directory(repo)), "GIT_WORK_TREE": str(repo)}
    assert run_git(repo, "diff-files", "--name-only", env=private) == b""
    with reads() as noted:
        assert capture(repo).tree == snapshot.tree
    assert noted == []
    for number in range(0, 1_200, 3):
        (repo / f"many/{number % 7}/f{number}").unlink()
    (repo / "many/1/f1").write_bytes(b"one")
    assert captured(repo, check(repo)) == on_disk(repo)
    shutil.rmtree(repo / "many")
    (repo / "many").write_bytes(b"")
    settle(repo)
    assert captured(repo, check(repo)) == on_disk(repo)
    assert len(state.load(scan_directory(repo)).overlay) < 100


def test_a_rewrite_between_reading_and_folding_is_seen(repo: Path, monkeypatch):
    """Git compares whole seconds: what changed in this one must not go to the index."""
    monkeypatch.setattr(state, "_FOLD_AT", 0)
    time.sleep(1.05 - time.time() % 1)
    file = repo / "src/pkg/main.py"
    file.write_bytes(b"11")
    time.sleep(0.05)
    found = discover(repo)
    with transaction(found) as opened, Root(repo) as root:
        capturing = Capture(found, root, Rules(LARGE))
        snapshot = capturing.take(opened)
        publish(found, opened, snapshot)
        with file.open("r+b") as handle:
            handle.write(b"22")
        settle(repo)
        capturing.remember(snapshot)
    assert captured(repo, capture(repo)) == on_disk(repo)


@pytest.mark.parametrize("name", ["state", "index", "config", "HEAD", "info/exclude"])
@pytest.mark.parametrize("how", ["delete", "truncate", "flip", "garbage"])
def test_damaged_scan_state_costs_only_time(repo: Path, monkeypatch, how, name):
    monkeypatch.setattr(state, "_FOLD_AT", 0)
    monkeypatch.setattr(clock, "QUIET_NS", 8_000_000)
    for file in repo.rglob("*"):
        if ".git" not in file.parts and file.is_file():
            os.utime(file, (1, 1))
    check(repo)
    file = scan_directory(repo) / name
    if file.exists():
        raw = bytearray(file.read_bytes())
        if how == "delete":
            file.unlink()
        elif how == "truncate":
            file.write_bytes(raw[: len(raw) // 2])
        elif how == "flip" and raw:
            raw[len(raw) // 2] ^= 0x55
            file.write_bytes(raw)
        elif how == "garbage":
            file.write_bytes(b"garbage")
    write_files(repo, {"src/pkg/main.py": b"print('changed')\n"})
    assert captured(repo, check(repo)) == on_disk(repo)
    with reads() as noted:
        capture(repo)
        capture(repo)
    assert len(noted) <= 8


# --- the differential test -----------------------------------------------------------


def remove_directory(top: Path) -> None:
    """Removes all of a directory; shutil refuses where inode numbers change."""
    for above, directories, files in os.walk(top, topdown=False):
        for name in (*directories, *files):
            path = Path(above, name)
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
    top.rmdir()


class Chaos:
    """Random steps in a work tree."""

    def __init__(self, repo: Path, seed: int, sealed: Path) -> None:
        self.repo = repo
        self.random = random.Random(seed)
        self.excludes = sealed / "excludes"
        found = run_git(repo, "rev-parse", "--path-format=absolute", "--git-dir")
        self.git_dir = Path(os.fsdecode(found.strip()))
        self.names = ["a", "b", "c.log", "d.tmp", ".gitignore", "e", ":f", "g\nh"]
        self.counter = 0

    def path(self) -> Path:
        depth = self.random.choice([0, 1, 1, 2, 3])
        parts = [self.random.choice(["p", "q", "r.log", "a"]) for _ in range(depth)]
        return Path(self.repo, *parts, self.random.choice(self.names))

    def existing(self, *, directory: bool = False) -> Path | None:
        # `find` gives up where inode numbers change.
        found: list[Path] = []
        for above, directories, files in os.walk(self.repo):
            names = [name for name in (*directories, *files) if name != ".git"]
            directories[:] = [name for name in directories if name != ".git"]
            for name in names:
                path = Path(above, name)
                wanted = path.is_dir() if directory else path.is_file()
                if wanted and not path.is_symlink():
                    found.append(path)
        return self.random.choice(sorted(found)) if found else None

    def data(self) -> bytes:
        self.counter += 1
        return b"%06d" % self.counter

    def clear(self, path: Path) -> None:
        for above in reversed(path.relative_to(self.repo).parents):
            place = self.repo / above
            # A pipe is no file, and as much in the way.
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                place.unlink()
        if path.is_symlink() or path.exists():
            if path.is_dir() and not path.is_symlink():
                remove_directory(path)
            else:
                path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)

    def rules(self) -> bytes:
        lines = ["*.log", "*.tmp", "p/", "/q", "!c.log", "a", "!a", ".gitignore", "e"]
        return "\n".join(self.random.sample(lines, 2)).encode() + b"\n"

    def git(self, *args: str | bytes | Path) -> None:
        run_git(self.repo, *args, check=False)

    def step(self) -> str:
        kinds = [name for name in dir(self) if name.startswith("do_")]
        weights = [5 if name in self.OFTEN else 1 for name in kinds]
        kind = self.random.choices(kinds, weights)[0]
        getattr(self, kind)()
        return kind

    OFTEN = ("do_write", "do_rewrite", "do_delete")

    def do_write(self):
        path = self.path()
        self.clear(path)
        path.write_bytes(self.rules() if path.name == ".gitignore" else self.data())

    def do_rewrite(self):
        if path := self.existing():
            data = self.rules() if path.name == ".gitignore" else self.data()
            with path.open("r+b") as file:
                file.write(data)

    def do_touch(self):
        if path := self.existing():
            os.utime(path, ns=(0, self.random.randrange(10**18)))

    def do_delete(self):
        if path := self.existing():
            path.unlink()

    def do_delete_directory(self):
        if path := self.existing(directory=True):
            remove_directory(path)

    def do_make_directory(self):
        path = self.path()
        self.clear(path)
        path.mkdir()

    def do_link(self):
        path = self.path()
        self.clear(path)
        path.symlink_to(self.random.choice(["p", "../q", "nowhere", "."]))

    def do_chmod(self):
        if path := self.existing():
            path.chmod(self.random.choice([0o644, 0o755]))

    def do_rename(self):
        old, new = self.existing(directory=self.random.random() < 0.5), self.path()
        if old and old not in new.parents and new not in old.parents and old != new:
            self.clear(new)
            if old.exists():
                old.rename(new)

    def do_ignore(self):
        (self.repo / ".gitignore").unlink(missing_ok=True) if not (
            self.repo / ".gitignore"
        ).is_dir() else None
        if not (self.repo / ".gitignore").exists():
            (self.repo / ".gitignore").write_bytes(self.rules())

    def do_info_exclude(self):
        (self.git_dir / "info/exclude").write_bytes(self.rules())

    def do_global_excludes(self):
        self.git("config", "core.excludesFile", self.excludes)
        self.excludes.write_bytes(self.rules())

    def do_untrack(self):
        self.git("rm", "-rq", "--cached", "--ignore-unmatch", self.path().name)

    def do_force(self):
        if path := self.existing():
            self.git("--literal-pathspecs", "add", "-f", path)

    def do_add(self):
        self.git("add", "-A")

    def do_commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "x", "--allow-empty")

    def do_switch(self):
        name = self.random.choice("xyz")
        self.git("add", "-A")
        self.git("commit", "-qm", "x", "--allow-empty")
        self.git("checkout", "-q", "-B", name, f"HEAD~{self.random.randrange(3)}")

    def do_clean(self):
        self.git("checkout", "-q", "--", ".")

    def do_fifo(self):
        path = self.path()
        if path.name == ".gitignore":
            return  # git itself waits for ever
        self.clear(path)
        os.mkfifo(path)

    def do_nested(self):
        path = self.repo / "n"
        if (path / ".git").exists():
            remove_directory(self.random.choice([path, path / ".git"]))
        else:
            path.mkdir(exist_ok=True)
            (path / "f").write_bytes(b"")
            run_git(path, "init", "-q")
            if self.random.random() < 0.5:
                run_git(path, "commit", "-qm", "x", "--allow-empty")

    def do_grow(self):
        if path := self.existing():
            path.write_bytes(self.data() * self.random.choice([1, 100]))


@pytest.mark.parametrize("seed", range(4))
def test_learning_never_shows(repo: Path, seed: int, sealed: Path, monkeypatch):
    monkeypatch.setattr(state, "_FOLD_AT", 8 if seed % 2 else 1_000)
    chaos = Chaos(repo, seed, sealed)
    rules = Rules(300, ("d.tmp",), ("e",)) if seed == 3 else Rules(300)
    done: list[str] = []
    for number in range(45):
        done += [chaos.step() for _ in range(chaos.random.choice([1, 1, 2, 5]))]
        try:
            check(repo, rules)
        except AssertionError as exc:
            raise AssertionError(f"step {number}, {done[-8:]}: {exc}") from exc


@pytest.mark.parametrize("rules", [b"", b"large\n"])
def test_a_smaller_limit_counts_for_what_was_captured_before(repo, rules):
    ok(repo, "config", "include", "large")
    write_files(repo, {".gitignore": rules, "large": b"x" * 9_000})
    assert "large" in names_held(repo)
    ok(repo, "config", "maxFileSize", "5000")
    assert "large" not in names_held(repo)
    ok(repo, "config", "maxFileSize", "10k")
    assert "large" in names_held(repo)


def names_held(repo):
    ok(repo, "save")
    return [one["path"] for one in ok(repo, "files", "last")["files"]]


def test_a_git_that_is_killed_at_the_ignore_rules_ends_the_capture(
    repo: Path, monkeypatch
):
    start = process.start

    def killing(args, **how):
        started = start(args, **how)
        if "check-ignore" in args:
            started.kill()
        return started

    monkeypatch.setattr(process, "start", killing)
    with pytest.raises(GitFailedError, match=r"check-ignore failed: .* by SIGKILL"):
        capture(repo)
