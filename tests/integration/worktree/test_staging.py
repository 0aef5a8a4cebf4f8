"""Missing directories, which git writes beside their places: proven before they are named."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitcp.worktree import bulk, proof, renames
from gitcp.worktree.private import PrivateGit
from gitcp.worktree.scan import Scan
from tests.support import damage
from tests.support.gitrepo import (
    Entry,
    Executable,
    git,
    git_line,
    gitcp_environment,
    run_gitcp,
    tree_bytes,
    write_files,
)
from tests.support.inprocess import fails, invoke, ok

FILES: dict[str, Entry] = {
    **{f"top/d{n % 5}/f{n}": b"%07d\r\n$Id$\n" % n * (n * n + 1) for n in range(30)},
    **{f"there/gone/f{n}": b"%d\n" % n for n in range(9)},
    "top/empty": b"",
    "top/d1/tool": Executable(b"#!/bin/sh\n"),
    "there/kept": b"kept\n",
    "edited": b"edited\n",
}

_whole: dict[Path, dict] = {}


def whole(repo: Path) -> dict:
    """What was there before it was lost."""
    return _whole[repo]


@pytest.fixture
def lost(repo, monkeypatch) -> Path:
    """Two directories are gone, and a file beside one of them."""
    monkeypatch.setattr(bulk, "AT_LEAST", 5)
    write_files(repo, FILES)
    (repo / "top" / "link").symlink_to("d1")
    (repo / "top" / "hollow").mkdir()
    ok(repo, "save")
    _whole[repo] = tree_bytes(repo)
    shutil.rmtree(repo / "top")
    shutil.rmtree(repo / "there" / "gone")
    (repo / "edited").unlink()
    return repo


@pytest.fixture
def by_git(monkeypatch) -> list[bytes]:
    """The places in which git was to write, so that a test is of that."""
    places: list[bytes] = []
    start = PrivateGit.start_writing

    def noting(self, index, directory, lock, workers):
        places.append(os.fsencode(os.readlink(f"/proc/self/fd/{directory}")))
        return start(self, index, directory, lock, workers)

    monkeypatch.setattr(PrivateGit, "start_writing", noting)
    return places


def hidden(repo: Path) -> list[Path]:
    return list(repo.rglob(".gitcp-tmp-*"))


def test_missing_directories_come_back_as_they_were(lost, by_git, monkeypatch):
    ok(lost, "restore", "-y", "1")
    assert tree_bytes(lost) == whole(lost)
    assert sorted(by_git) == [os.fsencode(lost), os.fsencode(lost / "there")]
    assert not hidden(lost)
    assert not ok(lost, "status")["changed"]
    ok(lost, "undo", "-y")
    assert not (lost / "top").exists()
    # The way back to the undone state is a restore as any other.
    ok(lost, "undo", "-y")
    assert tree_bytes(lost) == whole(lost)
    assert len(by_git) == 4


def test_modes_are_those_that_the_user_gives_new_files(lost, by_git):
    before = os.umask(0o077)
    try:
        ok(lost, "restore", "-y", "1")
    finally:
        os.umask(before)
    modes = {
        name: (lost / name).stat().st_mode & 0o777
        for name in ("top", "top/d1/tool", "top/d1/f1")
    }
    assert modes == {"top": 0o700, "top/d1/tool": 0o700, "top/d1/f1": 0o600}
    assert by_git


def test_no_rule_filter_or_setting_changes_a_byte_or_runs_anything(
    repo, monkeypatch, by_git, tmp_path
):
    monkeypatch.setattr(bulk, "AT_LEAST", 5)
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    rules = b"* text eol=crlf ident filter=evil working-tree-encoding=UTF-16\n"
    write_files(repo, {**FILES, ".gitattributes": rules, "top/.gitattributes": rules})
    settings = {
        "core.autocrlf": "true",
        "core.eol": "crlf",
        "core.fsmonitor": str(program),
        "core.hooksPath": str(tmp_path / "hooks"),
        "filter.evil.smudge": str(program),
        "filter.evil.process": str(program),
        "filter.evil.clean": "cat",
        "filter.evil.required": "true",
        "checkout.workers": "0",
    }
    (tmp_path / "hooks").mkdir()
    shutil.copy(program, tmp_path / "hooks" / "post-checkout")
    attributes = tmp_path / "attributes"
    attributes.write_bytes(rules)
    ok(repo, "save")
    was = tree_bytes(repo)
    shutil.rmtree(repo / "top")
    ran.unlink(missing_ok=True)
    for name, value in settings.items():
        git(repo, "config", name, value)
    own = tmp_path / "own-settings"
    for name, value in {**settings, "core.attributesFile": str(attributes)}.items():
        git(repo, "config", "--file", str(own), name, value)
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "attributes").write_bytes(rules)
    env = {
        "GIT_CONFIG_GLOBAL": str(own),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.attributesFile",
        "GIT_CONFIG_VALUE_0": str(attributes),
    }
    done = invoke(repo, "restore", "-y", "1", env=env)
    assert done.returncode == 0, done.stderr
    assert tree_bytes(repo) == was
    assert by_git == [os.fsencode(repo)]
    assert not ran.exists()


def test_what_changes_before_it_is_read_is_not_taken_for_it(lost, by_git, monkeypatch):
    """Git may have written anything: that is written file by file."""
    prove = proof.stats

    def edited(root, directories, *rest):
        (path,) = lost.glob(".gitcp-tmp-*/d2/f7")
        time.sleep(0.05)
        path.write_bytes(b"x" * path.stat().st_size)
        return prove(root, directories, *rest)

    monkeypatch.setattr(proof, "stats", edited)
    done = invoke(lost, "restore", "-y", "1")
    # What another process has put there no checkpoint holds: it stays, beside its place.
    assert done.returncode == 3
    (kept,) = lost.glob("top.kept-*")
    assert set((kept / "d2/f7").read_bytes()) == {ord("x")}
    shutil.rmtree(kept)
    assert tree_bytes(lost) == whole(lost)
    assert by_git
    assert not hidden(lost)


def test_what_changes_after_it_was_read_is_reported(lost, by_git, monkeypatch):
    move = renames.move_directory

    def edited(directory, old, new):
        if new == b"top":
            path = lost / os.fsdecode(old) / "d2/f7"
            time.sleep(0.05)
            path.write_bytes(b"x" * path.stat().st_size)
        return move(directory, old, new)

    monkeypatch.setattr(renames, "move_directory", edited)
    done = invoke(lost, "restore", "-y", "1")
    assert done.returncode == 3
    assert b"top/d2/f7: differs from the checkpoint" in done.stderr
    assert set((lost / "top/d2/f7").read_bytes()) == {ord("x")}
    assert by_git


@pytest.fixture
def quiet(monkeypatch) -> None:
    """What git has written is old enough to be compared for good."""
    prove = proof.stats

    def waiting(*args):
        time.sleep(0.05)
        return prove(*args)

    monkeypatch.setattr(proof, "stats", waiting)


@pytest.fixture
def looked_at(monkeypatch) -> list[set[bytes]]:
    """What each scan found changed, in directories and in files."""
    noted: list[set[bytes]] = []
    run = Scan.run

    def noting(self, differing):
        found = run(self, differing)
        noted.append(found.look | self._listing.walked())
        return found

    monkeypatch.setattr(Scan, "run", noting)
    return noted


def test_what_was_compared_is_known_to_the_scan_after_it(lost, quiet, looked_at):
    ok(lost, "restore", "-y", "1")
    _, after = looked_at
    assert b"edited" in after
    below = {path for path in after if path.startswith((b"top/", b"there/gone/"))}
    # A directory that holds more than files and directories is looked at as any other.
    assert below <= {b"top/link", b"top/hollow", b"top/empty"}
    # To the next one nothing is new, whatever it starts from.
    assert not ok(lost, "save")["created"]
    scan = lost / ".git" / "gitcp" / "scan"
    (scan / "state").unlink()
    assert not ok(lost, "save")["created"]


def edit_unseen(directory: Path) -> None:
    path = directory / "d2" / "f7"
    status = path.stat()
    path.write_bytes(b"x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def add(directory: Path) -> None:
    (directory / "d2" / "mine").write_bytes(b"mine")


def remove(directory: Path) -> None:
    (directory / "d2" / "f7").unlink()


def change_mode(directory: Path) -> None:
    (directory / "d2" / "f7").chmod(0o755)


def replace(directory: Path) -> None:
    shutil.rmtree(directory / "d2")
    (directory / "d2").mkdir()


@pytest.mark.parametrize("change", [edit_unseen, add, remove, change_mode, replace])
def test_a_change_after_the_comparison_is_in_the_checkpoint(
    lost, quiet, by_git, monkeypatch, change
):
    move = renames.move_directory

    def changed(directory, old, new):
        if new == b"top":
            time.sleep(0.05)
            change(lost / os.fsdecode(old))
        return move(directory, old, new)

    monkeypatch.setattr(renames, "move_directory", changed)
    done = invoke(lost, "restore", "-y", "1")
    assert done.returncode == (0 if change is add else 3)
    assert by_git
    there = tree_bytes(lost)
    assert there != whole(lost)
    shutil.rmtree(lost / "top")
    ok(lost, "restore", "-y", "last")
    assert tree_bytes(lost) == there


@pytest.mark.parametrize("path", ["top/d2/.gitignore", "top/d2/x.log", "top/d2/é"])
def test_where_more_than_the_tree_has_a_say_files_are_looked_at(
    repo, monkeypatch, quiet, looked_at, path
):
    monkeypatch.setattr(bulk, "AT_LEAST", 5)
    write_files(repo, {**FILES, path: b"1\n"})
    if path.endswith(".log"):
        write_files(repo, {".gitignore": b"*.log\n"})
        git(repo, "config", "gitcp.include", "x.log")
    ok(repo, "save")
    shutil.rmtree(repo / "top")
    ok(repo, "restore", "-y", "1")
    assert os.fsencode(path) in looked_at[-1]


def test_a_directory_that_appears_meanwhile_is_not_replaced(lost, by_git, monkeypatch):
    move = renames.move_directory

    def taken(directory, old, new):
        if new == b"top":
            write_files(lost, {"top/mine": b"mine", "top/d2/f7": b"mine too"})
        return move(directory, old, new)

    monkeypatch.setattr(renames, "move_directory", taken)
    done = invoke(lost, "restore", "-y", "1")
    assert done.returncode == 3
    assert b"top/d2/f7" in done.stderr
    expected = dict(whole(lost))
    found = tree_bytes(lost)
    assert found.pop(b"top/mine")[2] == b"mine"
    assert found.pop(b"top/d2/f7")[2] == b"mine too"
    del expected[b"top/d2/f7"]
    assert found == expected
    assert by_git
    assert not hidden(lost)


def test_git_does_not_write_through_a_link_that_appears_meanwhile(
    lost, tmp_path, monkeypatch
):
    start, outside = PrivateGit.start_writing, tmp_path / "outside"
    outside.mkdir()
    swapped = []

    def swapping(self, index, directory, lock, workers):
        if os.readlink(f"/proc/self/fd/{directory}").endswith("/there"):
            (lost / "there").rename(lost / "moved")
            (lost / "there").symlink_to(outside)
            for name in os.listdir(lost / "moved"):
                if name.startswith(".gitcp-tmp-"):
                    # Where git would write if it followed the link.
                    (outside / name).mkdir()
                    swapped.append(name)
        return start(self, index, directory, lock, workers)

    monkeypatch.setattr(PrivateGit, "start_writing", swapping)
    assert invoke(lost, "restore", "-y", "1").returncode
    assert swapped
    assert not [path for path in outside.rglob("*") if not path.is_dir()]


@pytest.mark.parametrize("content", [None, b"other bytes"])
def test_of_a_damaged_checkpoint_nothing_has_a_name(repo, monkeypatch, by_git, content):
    monkeypatch.setattr(bulk, "AT_LEAST", 5)
    write_files(repo, FILES)
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "all")
    ok(repo, "save")
    oid = git_line(repo, "rev-parse", "HEAD:top/d2/f7")
    damage.explode(repo)
    if content is None:
        damage.empty(repo, oid)
    else:
        damage.replace_blob(repo, oid, content)
    shutil.rmtree(repo / "top")
    (repo / "edited").write_bytes(b"mine\n")
    before = tree_bytes(repo)
    said = fails(repo, 15, "restore", "-y", "1")
    assert "top/d2/f7" in said
    assert "nothing was changed" in said
    assert "--continue" not in said
    assert tree_bytes(repo) == before
    assert by_git
    # No restore is open.
    (repo / "edited").unlink()
    ok(repo, "save")


def test_where_git_fails_each_file_is_written_by_itself(lost, monkeypatch):
    start = PrivateGit.start_writing

    def broken(self, index, where, lock, workers):
        return start(self, index[1:], where, lock, workers)

    monkeypatch.setattr(PrivateGit, "start_writing", broken)
    ok(lost, "restore", "-y", "1")
    assert tree_bytes(lost) == whole(lost)
    assert not hidden(lost)


_KILLED = """
import os, signal, sys
from gitcp.cli import main
from gitcp.worktree import bulk, proof, renames
bulk.AT_LEAST = 5
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(*{"proof": (proof, "stats"), "name": (renames, "move_directory")}[sys.argv[1]], kill)
main(["restore", "-y", "1"])
"""


@pytest.mark.parametrize("end", ["--continue", "--abort"])
@pytest.mark.parametrize("at", ["proof", "name"])
def test_what_a_kill_leaves_is_cleared_away(lost, at, end):
    gone = tree_bytes(lost)
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, at],
        cwd=lost,
        env=gitcp_environment(),
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert len(hidden(lost)) == 2
    # The beginning of a file, as a kill of git leaves it, and what is not of a checkpoint.
    (one,) = (path for path in hidden(lost) if (path / "d1").exists())
    with (one / "d1" / "f11").open("r+b") as file:
        file.truncate(100)
    (two,) = (path for path in hidden(lost) if path != one)
    write_files(two, {"mine": b"mine"})
    done = run_gitcp(lost, "restore", end)
    assert done.returncode == 3, done.stderr
    assert not hidden(lost)
    (kept,) = (lost / "there").glob("gone.kept-*")
    assert (kept / "mine").read_bytes() == b"mine"
    shutil.rmtree(kept)
    assert tree_bytes(lost) == (whole(lost) if end == "--continue" else gone)


_SLOW = """#!/bin/sh
case "$*" in
*checkout-index*)
    touch "$STARTED"
    while [ ! -e "$GO" ]; do sleep 0.05; done ;;
esac
exec "$REAL" "$@"
"""


def test_git_that_goes_on_after_a_kill_holds_the_lock(lost, tmp_path):
    programs = tmp_path / "programs"
    write_files(programs, {"git": Executable(_SLOW.encode())})
    started, go = tmp_path / "started", tmp_path / "go"
    env = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "STARTED": str(started),
        "GO": str(go),
        "REAL": shutil.which("git"),
    }
    script = _KILLED.replace("main([", "del kill\nmain([")
    process = subprocess.Popen(
        [sys.executable, "-c", script, "name"], cwd=lost, env=gitcp_environment(env)
    )
    try:
        while not started.exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.wait()
        impatient = {"GITCP_LOCK_TIMEOUT": "200ms"}
        refused = run_gitcp(lost, "restore", "--abort", env=impatient)
        assert refused.returncode == 11, refused.stderr
        assert b"in use by another gitcp" in refused.stderr
    finally:
        go.touch()
    done = run_gitcp(lost, "restore", "--continue")
    assert done.returncode == 0, done.stderr
    assert tree_bytes(lost) == whole(lost)
    assert not hidden(lost)
