"""Large files, which are stored in chunks: every command sees them whole."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gitcp.checkpoints.save import save as save_draft
from gitcp.format import chunked
from gitcp.format.chunked import ChunkedName
from gitcp.git.discover import discover
from gitcp.project.workspace import open_workspace
from gitcp.store.draft import Draft
from tests.support.gitrepo import git, make_repo, write_files
from tests.support.inprocess import fails, invoke, ok

CHUNKS = ".gitcp/chunks/"


def content(size: int = 300_000, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.fixture
def project(repo: Path) -> Path:
    git(repo, "config", "gitcp.chunkAbove", "8k")
    return repo


def save(repo: Path, **files: bytes) -> dict:
    write_files(repo, files)
    return ok(repo, "save")["checkpoint"]


def paths_in(repo: Path, commit: str) -> list[str]:
    return git(repo, "ls-tree", "-r", "--name-only", commit).decode().split("\n")


def size_of_packs(repo: Path) -> int:
    return sum(one.stat().st_size for one in repo.glob(".git/objects/pack/*.pack"))


def test_a_large_file_comes_back_as_it_was(project):
    first, second = content(), content()[:100_000] + b"put in" + content()[100_000:]
    one = save(project, large=first, small=b"1")
    assert any(path.startswith(CHUNKS) for path in paths_in(project, one["commit"]))
    save(project, large=second)
    assert ok(project, "restore", "-y", "1")["checkpoint"]["number"] == 3
    assert (project / "large").read_bytes() == first
    ok(project, "undo", "-y")
    assert (project / "large").read_bytes() == second
    assert invoke(project, "cat", "1", "large").stdout == first
    assert ok(project, "verify")["problems"] == []


def test_a_change_costs_a_few_chunks(project):
    save(project, large=content())
    before = size_of_packs(project)
    save(project, large=content()[:100_000] + b"put in" + content()[100_000:])
    # The whole of it would be 300,000 bytes.
    assert size_of_packs(project) - before < 100_000


def test_nothing_new_is_saved_where_nothing_changed(project):
    save(project, large=content())
    assert not ok(project, "save")["created"]
    (project / ".git/gitcp/scan/state").unlink(missing_ok=True)
    assert not ok(project, "save")["created"]
    (project / "large").touch()
    assert not ok(project, "save")["created"]


def test_plain_git_puts_a_file_together_as_its_pointer_says(project):
    made = save(project, large=content())
    pointer = git(project, "cat-file", "blob", f"{made['commit']}:large").decode()
    command = pointer.splitlines()[-1].replace("COMMIT", made["commit"])
    done = subprocess.run(
        ["sh", "-c", command], cwd=project, capture_output=True, check=True
    )
    assert done.stdout == content()


def test_a_file_that_git_has_whole_stays_so(project):
    write_files(project, {"large": content()})
    git(project, "add", "large")
    git(project, "commit", "-qm", "large")
    made = save(project, small=b"1")
    assert not any(
        path.startswith(CHUNKS) for path in paths_in(project, made["commit"])
    )
    made = save(project, large=content(seed=2))
    assert any(path.startswith(CHUNKS) for path in paths_in(project, made["commit"]))


def test_a_file_that_goes_takes_its_list_along(project):
    save(project, large=content(), small=b"1")
    (project / "large").unlink()
    made = ok(project, "save")["checkpoint"]
    assert not any(
        path.startswith(CHUNKS) for path in paths_in(project, made["commit"])
    )
    ok(project, "restore", "-y", "1")
    assert (project / "large").read_bytes() == content()


def test_a_mode_and_a_name_may_change(project):
    save(project, large=content())
    (project / "large").chmod(0o755)
    save(project)
    (project / "large").rename(project / "other")
    save(project)
    assert b"rename from large" in invoke(project, "diff", "2", "3").stdout
    ok(project, "restore", "-y", "2")
    assert (project / "large").stat().st_mode & 0o111
    ok(project, "restore", "-y", "1")
    assert not (project / "large").stat().st_mode & 0o111
    assert (project / "large").read_bytes() == content()


def test_a_file_that_reads_like_a_pointer_comes_back_as_it_was(project):
    save(project, large=content())
    commit = ok(project, "show", "1")["checkpoint"]["commit"]
    pointer = git(project, "cat-file", "blob", f"{commit}:large")
    assert pointer.startswith(chunked.MAGIC)
    save(project, twin=pointer)
    (project / "twin").unlink()
    ok(project, "restore", "-y", "2")
    assert (project / "twin").read_bytes() == pointer
    assert ok(project, "verify")["problems"] == []
    assert (project / "large").read_bytes() == content()


def test_without_the_setting_a_file_is_one_blob_from_its_next_change_on(project):
    save(project, large=content())
    git(project, "config", "gitcp.chunkAbove", "0")
    made = save(project, large=content(seed=2))
    assert not any(
        path.startswith(CHUNKS) for path in paths_in(project, made["commit"])
    )
    ok(project, "restore", "-y", "1")
    assert (project / "large").read_bytes() == content()


def test_all_of_it_is_searched_for_secrets(project, tmp_path):
    secret = b"ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    data = content().hex().encode()
    # Over many places: one of them lies on the edge of two chunks.
    for at in range(100_000, 160_000, 4_000):
        data = data[:at] + b"\ntoken = " + secret + b"\n" + data[at:]
    save(project, large=data)
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    git(project, "remote", "add", "origin", str(remote))
    refused = fails(project, 24, "push")
    assert "large" in refused
    ok(project, "purge", "--value-from-stdin", "--yes", input=secret)
    objects = git(project, "cat-file", "--batch-all-objects", "--batch")
    assert secret not in objects
    text = invoke(project, "cat", "1", "large").stdout
    assert secret not in text
    assert text.count(b"[purged:") == 15
    assert ok(project, "verify")["problems"] == []


def test_a_purge_of_a_path_takes_its_chunks_along(project):
    save(project, large=content(), small=b"1")
    (project / "large").unlink()
    ok(project, "purge", "large", "--yes")
    commit = ok(project, "show", "1")["checkpoint"]["commit"]
    assert not any(path.startswith(CHUNKS) for path in paths_in(project, commit))
    assert size_of_packs(project) < 100_000
    assert ok(project, "verify")["problems"] == []


def test_a_fork_a_clone_and_a_session_of_its_own_have_it(project, tmp_path):
    save(project, large=content())
    ok(project, "fork", "1", "beside")
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    git(project, "remote", "add", "origin", str(remote))
    ok(project, "push")
    clone = make_repo(tmp_path / "clone")
    git(clone, "remote", "add", "origin", str(remote))
    ok(clone, "pull")
    ok(clone, "restore", "-y", "--trust", "main:1")
    assert (clone / "large").read_bytes() == content()
    assert ok(clone, "verify")["problems"] == []


def swap_chunks(project: Path, commit: str) -> bytes:
    """Makes the tip a commit like another one, but two chunks are in each other's place."""
    listed = git(project, "ls-tree", "-r", commit, CHUNKS).decode().splitlines()
    first, second = (line.split()[2] for line in listed[:2])
    swapped = [
        line.replace(first, "-").replace(second, first).replace("-\t", second + "\t")
        for line in listed
    ]
    assert swapped != listed
    env = {"GIT_INDEX_FILE": str(project / ".git/other-index")}
    git(project, "read-tree", commit, env=env)
    feed = "\n".join(swapped).encode() + b"\n"
    git(project, "update-index", "--index-info", input=feed, env=env)
    tree = git(project, "write-tree", env=env).strip()
    raw = git(project, "cat-file", "commit", commit).split(b"\n", 1)[1]
    made = b"tree " + tree + b"\n" + raw
    return git(
        project, "hash-object", "-t", "commit", "-w", "--stdin", input=made
    ).strip()


def test_a_save_relies_on_no_list_of_another_checkpoint(project):
    objects = discover(project).objects
    name = ChunkedName(objects.form.oid("blob", content()), len(content()))
    write_files(project, {"large": content()})
    workspace = open_workspace(project)
    # A stranger's list has the name of this content, and other chunks.
    other = git(project, "hash-object", "-w", "--stdin", input=b"other").strip()
    group = git(project, "mktree", input=b"100644 blob %b\t000\n" % other).strip()
    root = git(project, "mktree", input=b"040000 tree %b\t0000\n" % group).strip()
    known = workspace.repository.objects.chunked
    known.add(name, bytes.fromhex(root.decode()))
    save_draft(workspace, Draft())
    (project / "large").unlink()
    ok(project, "restore", "-y", "1")
    assert (project / "large").read_bytes() == content()


def test_damage_is_named(project):
    commit = save(project, large=content())["commit"]
    new = swap_chunks(project, commit)
    git(project, "update-ref", "refs/gitcp/s/main/main", new.decode())
    found = invoke(project, "verify")
    assert (found.returncode, b"chunks" in found.stdout) == (15, True)
    (project / "large").write_bytes(b"now")
    # What the last capture and the list of numbers know would be right.
    (project / ".git/gitcp/scan/state").unlink()
    (project / ".git/gitcp-numbers").unlink()
    fails(project, 15, "restore", "-y", "main:1")
    assert (project / "large").read_bytes() == b"now"


def test_what_pointers_stand_for_counts_towards_the_limit_on_foreign_data(project):
    # Once in the list, three times in the work tree.
    save(project, one=content(), two=content(), three=content())
    git(project, "config", "gitcp.pullMaxSize", "500k")
    (project / "one").unlink()
    assert ok(project, "restore", "-y", "1")["left"] == []
    (project / "one").unlink()
    # Without its key all of it was made elsewhere.
    (project / ".git/gitcp/key").unlink()
    assert "900,0" in fails(project, 21, "restore", "-y", "--trust", "1")
    assert not (project / "one").exists()


def test_a_hook_leaves_a_large_new_file_that_it_has_no_time_for(project):
    write_files(project, {"large": content(), "small": b"1"})
    git(project, "config", "gitcp.chunkAbove", "100k")
    workspace = open_workspace(project)
    workspace.deadline = time.monotonic()
    made = save_draft(workspace, Draft()).checkpoint
    assert [(one.path, one.reason) for one in made.skipped()] == [
        (b"large", "deferred")
    ]
    assert made.entry(b"small") is not None
    # The next one that has time takes it; a file that is known is always taken.
    assert ok(project, "save")["checkpoint"]["skipped"] == 0
    (project / "large").write_bytes(content(seed=2))
    workspace = open_workspace(project)
    workspace.deadline = time.monotonic()
    made = save_draft(workspace, Draft()).checkpoint
    assert made.skipped() == []
    assert invoke(project, "cat", str(made.number), "large").stdout == content(seed=2)


def test_a_file_larger_than_the_disk_has_room_for_is_refused(project, monkeypatch):
    write_files(project, {"large": content()})
    room = SimpleNamespace(f_bavail=200, f_frsize=1000)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    said = fails(project, 20, "save")
    assert "large has 300,000 bytes" in said
    assert ok(project, "log")["checkpoints"] == []


def test_search_and_why_go_through_where_a_file_is_chunked(project):
    lines = [b"line %d\n" % n for n in range(3000)]
    save(project, large=b"".join(lines), small=b"an albatross\n")
    lines[99] = b"another albatross\n"
    save(project, large=b"".join(lines))
    # What a chunked file says is not searched; nor is its pointer.
    found = ok(project, "search", "albatross")["hits"]
    assert [(one["where"], one["path"]) for one in found] == [("files", "small")]
    assert ok(project, "search", "chunks")["hits"] == []
    told = ok(project, "why", "large:99-101")["lines"]
    assert [one["number"] for one in told] == [1, 2, 1]
    numbers = [
        one["number"] for one in ok(project, "log", "--", "large")["checkpoints"]
    ]
    assert numbers == [2, 1]
