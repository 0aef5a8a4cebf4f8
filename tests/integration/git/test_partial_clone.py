"""Partial clones: what lies at the remote only is neither needed by a save nor damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gitcp.git.discover import discover
from tests.support.gitrepo import commit_all, git, git_line, write_files
from tests.support.inprocess import fails, ok


@pytest.fixture(params=["blob:none", "tree:0", "sha256 blob:none"])
def top(request, tmp_path) -> Path:
    """A sparse partial clone: of `d/1` and `d/2` it has the names, as far as it has trees."""
    *form, how = request.param.split()
    server = tmp_path / "server"
    git(
        tmp_path,
        "init",
        "-q",
        "-b",
        "main",
        *(f"--object-format={one}" for one in form),
        server,
    )
    for number in range(3):
        write_files(
            server, {"f": b"%d" % number, "d/1": b"one", "d/2": b"2%d" % number}
        )
        commit_all(server)
    for name in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(server, "config", name, "true")
    git(server, "config", "receive.denyCurrentBranch", "ignore")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--sparse", f"--filter={how}", server.as_uri(), clone)
    return clone


def missing(top: Path) -> set[str]:
    listed = git_line(top, "rev-list", "--objects", "--missing=print", "--all")
    return {line for line in listed.splitlines() if line.startswith("?")}


def test_a_save_fetches_nothing_and_nothing_is_called_damaged(top):
    before = missing(top)
    assert before
    shutil.move(top.parent / "server", top.parent / "away")
    first = ok(top, "save")["checkpoint"]["id"]
    write_files(top, {"f": b"changed", "new": b"n"})
    ok(top, "save")
    ok(top, "restore", "-y", first)
    ok(top, "undo", "-y")
    ok(top, "fork", first, "aside", "-y")
    ok(top, "gc")
    ok(top, "prune", "--keep-last", "1", "-y")
    ok(top, "gc")
    assert ok(top, "verify")["problems"] == []
    assert ok(top, "log")["checkpoints"]
    assert missing(top) == before


def test_a_restore_fetches_what_it_writes_or_says_so_first(top, tmp_path):
    ok(top, "save")
    before = missing(top)
    shutil.move(tmp_path / "server", tmp_path / "away")
    said = fails(top, 21, "restore", "1", "--to", str(tmp_path / "out"), "-y")
    assert "of this partial clone cannot be fetched from origin" in said
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())
    assert missing(top) == before
    shutil.move(tmp_path / "away", tmp_path / "server")
    ok(top, "restore", "1", "--to", str(tmp_path / "out"), "-y")
    assert (tmp_path / "out" / "d" / "2").read_bytes() == b"22"
    assert missing(top) < before


def test_what_is_missing_and_promised_by_no_remote_is_damage(top):
    write_files(top, {"f": b"own"})
    ok(top, "save")
    oid = git_line(top, "rev-parse", "refs/gitcp/s/main/main:f")
    packs = top / ".git" / "objects" / "pack"
    (own,) = (
        path
        for path in packs.glob("*.pack")
        if not path.with_suffix(".promisor").exists()
        and oid.encode()
        in git(top, "show-index", input=path.with_suffix(".idx").read_bytes())
    )
    kept = packs.parent / "kept.pack"
    own.rename(kept)
    own.with_suffix(".idx").unlink()
    with kept.open("rb") as file:
        git(top, "unpack-objects", "-q", input=file.read())
    (packs.parent / oid[:2] / oid[2:]).unlink()
    (problem,) = ok(top, "verify", status=15)["problems"]
    assert problem["path"] == "f"


def test_an_export_fetches_what_the_file_needs_or_says_so(top, tmp_path):
    write_files(top, {"new": b"n"})
    ok(top, "save", "-s", "work")
    server, file = tmp_path / "server", tmp_path / "file"
    shutil.move(server, tmp_path / "away")
    said = fails(top, 21, "export", "work:last", "-o", str(file))
    assert "of this partial clone cannot be fetched from origin" in said
    assert not file.exists()
    shutil.move(tmp_path / "away", server)
    ok(top, "export", "work:last", "-o", str(file))
    other = tmp_path / "other"
    form = git_line(top, "rev-parse", "--show-object-format")
    git(tmp_path, "init", "-q", f"--object-format={form}", other)
    ok(other, "import", str(file))
    ok(other, "restore", "-y", "work:1", "--trust")
    assert (other / "d" / "2").read_bytes() == b"22"
    assert ok(other, "verify")["problems"] == []


def test_a_pull_brings_checkpoints_whole(top, tmp_path):
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", tmp_path / "server", other)
    write_files(other, {"f": b"theirs", "new": b"n"})
    ok(other, "save", "-s", "theirs")
    ok(other, "push")
    ok(top, "pull")
    ok(top, "restore", "-y", "theirs:1")
    assert (top / "f").read_bytes() == b"theirs"
    assert ok(top, "verify")["problems"] == []


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_a_wanted_blob_of_a_wanted_tree_is_fetched_whichever_comes_first(
    form, tmp_path
):
    server, clone = tmp_path / "server", tmp_path / "clone"
    git(tmp_path, "init", "-q", f"--object-format={form}", server)
    write_files(server, {f"d/{number}": b"%d" % number for number in range(64)})
    commit_all(server)
    for name in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(server, "config", name, "true")
    tree, *blobs = git_line(
        server, "rev-parse", "HEAD:d", *(f"HEAD:d/{n}" for n in range(64))
    ).split()
    # git takes them in this order, and leaves out what it met in the tree.
    assert tree < max(blobs)
    git(tmp_path, "clone", "-q", "-n", "--filter=tree:0", server.as_uri(), clone)
    objects = discover(clone).objects
    wanted = {bytes.fromhex(oid) for oid in (tree, *blobs)}
    assert missing(clone)
    objects.bring(wanted)
    assert all(objects.exists(oid) for oid in wanted)
