"""Applying plans: exact, repeatable, reversible, and never outside."""

from __future__ import annotations

import errno
import os
import random
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from gitcp.errors import StorageError
from gitcp.format.oid import SHA1
from gitcp.format.tree import Entry
from gitcp.git.discover import discover
from gitcp.worktree import apply as applying
from gitcp.worktree import plan as plans
from gitcp.worktree import renames
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, FileStep
from gitcp.worktree.snapshot import Snapshot
from tests.support.gitrepo import (
    Executable,
    Symlink,
    make_repo,
    tree_bytes,
    write_files,
)
from tests.support.snapshots import apply, capture, side


def between(repo: Path, present: Snapshot, target: Snapshot) -> FilePlan:
    objects = discover(repo).objects
    for snapshot in (present, target):
        objects.pin(snapshot.state.root)
    return plans.make(side(present), side(target), objects.tree)


def obstacles(repo: Path, plan: FilePlan) -> list[bytes]:
    with Root(repo) as root:
        return [left.path for left in applying.look_ahead(root, plan).obstacles]


def wipe(repo: Path) -> None:
    for child in repo.iterdir():
        if child.name != ".git":
            if child.is_dir() and not child.is_symlink():
                shutil.rmtree(child)
            else:
                child.unlink()


def fill(repo: Path, rng: random.Random) -> None:
    names = ["a", "b", "c", "\udcff", "d\ne"]
    for _ in range(rng.randrange(25)):
        path = Path(repo, *(rng.choice(names) for _ in range(rng.randrange(1, 5))))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = rng.randrange(5)
            if kind == 0:
                path.mkdir()
            elif kind == 1:
                path.symlink_to(rng.choice(["a", "/tmp", "b/c"]))
            else:
                with path.open("xb") as file:
                    file.write(b"%d" % rng.randrange(4))
                path.chmod(rng.choice([0o644, 0o755]))
        except OSError:
            continue


def modes(repo: Path):
    """The tree, and the one exec bit that is kept."""
    return {
        path: (kind, mode & 0o100, content)
        for path, (kind, mode, content) in tree_bytes(repo).items()
    }


@pytest.mark.parametrize("seed", range(12))
def test_any_state_becomes_any_other_and_back(tmp_path: Path, seed: int):
    repo = make_repo(tmp_path / "repo")
    rng = random.Random(seed)
    fill(repo, rng)
    one, one_bytes = capture(repo), modes(repo)
    if seed % 2:
        wipe(repo)
    fill(repo, rng)
    two, two_bytes = capture(repo), modes(repo)
    back = between(repo, two, one)
    for _ in range(2):
        assert apply(repo, back) == []
        assert modes(repo) == one_bytes
    for _ in range(2):
        assert apply(repo, back.reversed()) == []
        assert modes(repo) == two_bytes
    assert capture(repo).tree == two.tree


def test_untouched_files_are_untouched(repo: Path):
    one = capture(repo)
    write_files(repo, {"README.md": b"changed"})
    two = capture(repo)
    paths = [path for path in repo.rglob("*") if ".git" not in path.parts]
    before = {path: path.lstat() for path in paths}
    apply(repo, between(repo, two, one))
    for path in paths:
        if path.name != "README.md":
            now = path.lstat()
            assert (now.st_ino, now.st_mtime_ns, now.st_ctime_ns) == (
                before[path].st_ino,
                before[path].st_mtime_ns,
                before[path].st_ctime_ns,
            )


def test_permissions_beyond_the_exec_bit_stay(repo: Path):
    one = capture(repo)
    write_files(repo, {"README.md": b"changed"})
    (repo / "README.md").chmod(0o600)
    (repo / "bin/run").chmod(0o640)
    apply(repo, between(repo, capture(repo), one))
    assert (repo / "README.md").stat().st_mode & 0o777 == 0o600
    assert (repo / "bin/run").stat().st_mode & 0o777 == 0o750


def test_a_hard_link_leads_nowhere(repo: Path, tmp_path: Path):
    write_files(repo, {"a": b"both", "b": b"other"})
    one = capture(repo)
    outside = tmp_path / "outside"
    outside.write_bytes(b"both")
    for name in ("a", "b"):
        (repo / name).unlink()
        (repo / name).hardlink_to(outside)
    outside.chmod(0o755)
    two = capture(repo)
    assert apply(repo, between(repo, two, one)) == []
    assert capture(repo).tree == one.tree
    assert (outside.read_bytes(), outside.stat().st_mode & 0o777) == (b"both", 0o755)
    apply(repo, between(repo, capture(repo), two))
    assert capture(repo).tree == two.tree


@pytest.mark.parametrize("tracked", [True, False])
def test_a_linked_directory_leads_nowhere(repo: Path, tmp_path: Path, tracked: bool):
    outside = tmp_path / "outside"
    write_files(outside, {"f": b"outside", "g": b"outside"})
    write_files(repo, {"d/f": b"1", "d/g": b"2"})
    one = capture(repo)
    write_files(repo, {"d/f": b"11"})
    (repo / "d/g").unlink()
    write_files(repo, {"d/h": b"3"})
    two = capture(repo)
    wanted = modes(repo)
    apply(repo, between(repo, two, one))
    shutil.rmtree(repo / "d")
    (repo / "d").symlink_to(outside)
    before = tree_bytes(outside)
    if tracked:
        assert apply(repo, between(repo, capture(repo), two)) == []
        assert modes(repo) == wanted
    else:
        made = between(repo, one, two)
        assert b"d" in obstacles(repo, made)
        assert {left.path for left in apply(repo, made)} >= {b"d/f", b"d/h"}
        assert (repo / "d").is_symlink()
    assert tree_bytes(outside) == before


def test_a_directory_swapped_for_a_link_leads_nowhere(repo: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    write_files(outside, {f"f{n}": b"outside" for n in range(4)})
    write_files(repo, {f"d/f{n}": b"one" for n in range(4)})
    one = capture(repo)
    write_files(repo, {f"d/f{n}": b"two" for n in range(3)})
    (repo / "d/f3").unlink()
    two = capture(repo)
    back = between(repo, two, one)
    before = tree_bytes(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (repo / "d").rename(repo / "d.real")
            # Applying may make a directory in between.
            with suppress(OSError):
                (repo / "d").symlink_to(outside)
                (repo / "d").unlink()
            while (repo / "d.real").exists():
                shutil.rmtree(repo / "d", ignore_errors=True)
                with suppress(OSError):
                    (repo / "d.real").rename(repo / "d")

    stream = discover(repo).objects.stream
    racer = threading.Thread(target=swap)
    racer.start()
    try:
        with Root(repo) as root:
            for turn in range(150):
                applying.apply(
                    root, back if turn % 2 else back.reversed(), stream, token="x"
                )
    finally:
        stop.set()
        racer.join()
    assert tree_bytes(outside) == before
    assert not list(outside.glob(".gitcp*"))


@pytest.mark.parametrize("how", ["edit", "delete", "replace", "mode"])
def test_what_changed_meanwhile_is_left(repo: Path, how: str):
    one = capture(repo)
    write_files(repo, {"README.md": b"two", "new": b"two"})
    back = between(repo, capture(repo), one)
    for name in ("README.md", "new"):
        file = repo / name
        if how == "edit":
            file.write_bytes(b"mine")
        elif how == "mode":
            file.chmod(0o755)
        else:
            file.unlink()
            if how == "replace":
                file.mkdir()
    before = modes(repo)
    left = {item.path for item in apply(repo, back)}
    assert left == ({b"README.md"} if how == "delete" else {b"README.md", b"new"})
    assert modes(repo) == before


def test_what_changed_while_a_file_is_written_is_left(repo: Path):
    one = capture(repo)
    write_files(repo, {"README.md": b"two"})
    back = between(repo, capture(repo), one)
    stream = discover(repo).objects.stream

    def slow(oid: bytes):
        (repo / "README.md").write_bytes(b"mine")
        yield from stream(oid)

    with Root(repo) as root:
        left = applying.apply(root, back, slow, token="x")
    assert [item.path for item in left] == [b"README.md"]
    assert (repo / "README.md").read_bytes() == b"mine"
    assert not list(repo.glob(".gitcp*"))


def test_what_no_checkpoint_holds_is_reported(repo: Path):
    write_files(repo, {"x.d": b"", "y": b"", "p/q": b"", "n/f": b"", "s/t": b""})
    one = capture(repo)
    for name in ("x.d", "y", "p/q", "n/f", "s/t"):
        (repo / name).unlink()
    for name in ("p", "n", "s"):
        (repo / name).rmdir()
    write_files(
        repo, {".gitignore": b"*.log\n/x.d\n/p\n/k\n", "y/a": b"", "y/b.log": b""}
    )
    (repo / "y/k.log/empty").mkdir(parents=True)
    write_files(repo, {"x.d": b"ignored", "p": b"ignored"})
    make_repo(repo / "n", {"f": b"inner"})
    two = capture(repo)
    back = between(repo, two, one)
    before = modes(repo)
    found = [b"n", b"n/f", b"p", b"x.d", b"y/b.log", b"y/k.log/empty"]
    assert obstacles(repo, back) == found
    left = {item.path for item in apply(repo, back)}
    assert left >= {b"x.d", b"y", b"p/q"}
    after = modes(repo)
    for path in (b"p", b"x.d", b"y/b.log", b"y/k.log/empty", b"n/.git"):
        assert after[path] == before[path]
    assert obstacles(repo, between(repo, one, one)) == []


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "symlink"])
def test_a_full_disk_leaves_the_old_content(repo: Path, monkeypatch, call: str):
    one = capture(repo)
    write_files(repo, {"README.md": b"two", "latest": Symlink(b"other")})
    write_files(repo, {"bin/run": Executable(b"two")})
    back = between(repo, capture(repo), one)
    before = modes(repo)

    def full(*args: object, **kwargs: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        if call == "rename":
            patch.setattr(renames, "_attempt", full)
        patch.setattr(os, call, full)
        with pytest.raises(StorageError):
            apply(repo, back)
    if call != "symlink":
        assert modes(repo) == before
    assert not list(repo.rglob(".gitcp-tmp*"))
    assert apply(repo, back) == []
    assert capture(repo).tree == one.tree


def test_very_deep_paths(repo: Path):
    path = repo
    for _ in range(240):
        path /= "d"
    one = capture(repo)
    path.mkdir(parents=True)
    (path / "f").write_bytes(b"1")
    (path / "g").symlink_to("f")
    two = capture(repo)
    there = between(repo, one, two)
    wanted = modes(repo)
    assert apply(repo, there.reversed()) == []
    assert not (repo / "d").exists()
    assert apply(repo, there) == []
    assert modes(repo) == wanted


def test_what_appears_at_the_last_moment_is_not_overwritten(repo, monkeypatch):
    """A file that comes to be between the last look and the rename stays."""
    entry = Entry(0o100644, SHA1.oid("blob", b"theirs"))
    steps = FilePlan((FileStep("write", b"late.txt", None, entry),), ())
    stat = os.stat

    def late(path, *args, **kwargs):
        # The last stat of the name is the one for its permissions.
        if path == b"late.txt" and kwargs.get("dir_fd") is not None:
            with suppress(FileExistsError):
                fd = os.open(repo / "late.txt", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                os.write(fd, b"mine")
                os.close(fd)
            raise FileNotFoundError(path)
        return stat(path, *args, **kwargs)

    with Root(repo) as root:
        monkeypatch.setattr(os, "stat", late)
        left = applying.apply(root, steps, lambda _: iter([b"theirs"]), token="t")
    monkeypatch.undo()
    assert (repo / "late.txt").read_bytes() == b"mine"
    assert [item.path for item in left] == [b"late.txt"]
    assert not list(repo.glob(".gitcp-tmp-*"))
