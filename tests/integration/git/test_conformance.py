"""What every implementation of objects and of refs does: those on disk, and in memory."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gitcp.errors import (
    BranchMovedError,
    CorruptError,
    GitFailedError,
    UnsafePathError,
)
from gitcp.format import tree as trees
from gitcp.format.oid import SHA1, SHA256
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.git.discover import discover
from gitcp.git.executable import GitObjects
from gitcp.git.libgit import LibgitObjects
from gitcp.git.objects import BLOB, COMMIT, TREE, Objects
from tests.support.gitrepo import commit_all, git
from tests.support.memory import MemoryObjects, MemoryRefs
from tests.support.needs import needs_reftable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gitcp.git.refs import Refs

WHO = b"a <a@example.com> 1700000000 +0000"


class ObjectStore(NamedTuple):
    """Objects, and how a test puts one in."""

    objects: Objects
    add: Callable[[str, bytes], bytes]


# An object format; what reads; and whether git is as old as to need two processes.
READERS = {
    "libgit": (SHA1, LibgitObjects, False),
    "libgit-few": (SHA1, LibgitObjects, False),
    "git-sha1": (SHA1, GitObjects, False),
    "git-sha256": (SHA256, GitObjects, False),
    "old-git-sha256": (SHA256, GitObjects, True),
}


@pytest.fixture(params=[*READERS, "memory-sha1", "memory-sha256"])
def store(request, tmp_path, monkeypatch):
    if request.param.startswith("memory"):
        objects = MemoryObjects(SHA256 if request.param.endswith("256") else SHA1)
        yield ObjectStore(objects, objects.add)
        return
    form, reader, is_old = READERS[request.param]
    top = tmp_path / "held"
    git(tmp_path, "init", "-q", f"--object-format={form.name}", top)

    def add(kind: str, data: bytes) -> bytes:
        written = git(top, "hash-object", "-w", "--stdin", "-t", kind, input=data)
        return bytes.fromhex(written.decode().strip())

    if is_old:
        without_batch_command(tmp_path / "old", monkeypatch)
    if reader is GitObjects:
        yield ObjectStore(GitObjects(top / ".git", form), add)
        return
    on_disk = LibgitObjects(top / ".git" / "objects")
    if request.param == "libgit-few":
        with on_disk.few_reads():
            yield ObjectStore(on_disk, add)
    else:
        yield ObjectStore(on_disk, add)


def without_batch_command(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a git first on the PATH that knows no `cat-file --batch-command`."""
    directory.mkdir()
    program = directory / "git"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--batch-command*) exit 129;; esac\n'
        f'exec "{shutil.which("git")}" "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


def commit_of(tree: bytes, *parents: bytes) -> bytes:
    lines = [b"tree " + tree.hex().encode()]
    lines += [b"parent " + parent.hex().encode() for parent in parents]
    lines += [b"author " + WHO, b"committer " + WHO]
    return b"\n".join(lines) + b"\n\nsaved\n"


def test_an_object_is_read_as_it_was_added(store):
    oid = store.add(BLOB, b"hello\n")
    assert len(oid) == store.objects.form.size
    assert oid == store.objects.form.oid(BLOB, b"hello\n")
    assert store.objects.exists(oid)
    assert store.objects.header(oid) == (BLOB, 6)
    assert store.objects.read(oid, BLOB) == store.objects.blob(oid) == b"hello\n"
    assert b"".join(store.objects.stream(oid)) == b"hello\n"


def test_an_empty_object_is_an_object(store):
    oid = store.add(BLOB, b"")
    assert store.objects.exists(oid)
    assert store.objects.header(oid) == (BLOB, 0)
    assert b"".join(store.objects.stream(oid)) == b""


def test_trees_and_commits_are_parsed(store):
    blob = store.add(BLOB, b"x")
    inner = {b"f": Entry(FILE, blob)}
    below = store.add(TREE, trees.encode(inner))
    root = store.add(TREE, trees.encode({b"d": Entry(DIRECTORY, below)}))
    assert store.objects.tree(below) == inner
    assert store.objects.tree(root)[b"d"].oid == below
    first = store.add(COMMIT, commit_of(root))
    commit = store.objects.commit(store.add(COMMIT, commit_of(root, first)))
    assert (commit.tree, commit.parents) == (root, (first,))
    assert commit.epoch == 1_700_000_000


def test_what_is_missing_is_called_missing(store):
    gone = b"\1" * store.objects.form.size
    assert not store.objects.exists(gone)
    for read in (store.objects.header, store.objects.blob, store.objects.tree):
        with pytest.raises(CorruptError, match=f"{gone.hex()} is missing"):
            read(gone)
    with pytest.raises(CorruptError, match="missing"):
        list(store.objects.stream(gone))


def test_an_object_of_another_kind_is_refused(store):
    oid = store.add(BLOB, b"x")
    with pytest.raises(CorruptError, match="is a blob, not a tree"):
        store.objects.tree(oid)
    with pytest.raises(CorruptError, match="is a blob, not a commit"):
        store.objects.commit(oid)


def test_a_pinned_tree_is_read_though_it_is_not_stored(store):
    raw = trees.encode({b"f": Entry(FILE, store.add(BLOB, b"x"))})
    oid = store.objects.pin(raw)
    assert store.objects.tree(oid) == trees.parse(raw, store.objects.form.size)
    assert not store.objects.exists(oid)


MAIN, TRY, OTHER = (
    "refs/gitcp/s/main/main",
    "refs/gitcp/s/main/try",
    "refs/gitcp/s/other/main",
)


class RefStore(NamedTuple):
    """Refs, commits of which all are at the last, and how to move a ref."""

    refs: Refs
    one: str
    two: str
    head: str
    staged: Path

    def move(self, name: str, expect: str | None, new: str) -> None:
        self.refs.compare_and_swap(name, expect=expect, new=new, staged=self.staged)


STORES = {
    "files": ("files", "sha1"),
    "packed": ("files", "sha1"),
    "files-sha256": ("files", "sha256"),
    "packed-sha256": ("files", "sha256"),
    "reftable": ("reftable", "sha1"),
    "reftable-sha256": ("reftable", "sha256"),
}


@pytest.fixture(params=[*STORES, "memory"])
def held(request, tmp_path):
    storage, form = STORES.get(request.param, ("files", "sha1"))
    if storage == "reftable":
        needs_reftable()
    top = tmp_path / "held"
    how = [f"--object-format={form}"]
    how += [f"--ref-format={storage}"] if storage != "files" else []
    git(tmp_path, "init", "-q", "-b", "main", *how, top)
    one, two, head = (commit_all(top, f"{number}") for number in range(3))
    given = {MAIN: head, TRY: head, OTHER: head}
    staged = tmp_path / "transactions" / "one" / "ref"
    staged.parent.mkdir(parents=True)
    if request.param == "memory":
        users = {"HEAD": "ref: refs/heads/main", "refs/heads/main": head}
        return RefStore(MemoryRefs(users | given), one, two, head, staged)
    for name, oid in given.items():
        git(top, "update-ref", name, oid)
    if request.param.startswith("packed"):
        git(top, "pack-refs", "--all")
    return RefStore(discover(top).refs, one, two, head, staged)


def test_refs_are_read_and_listed(held):
    assert held.refs.read(MAIN) == held.head
    assert held.refs.read("refs/gitcp/s/none/main") is None
    assert list(held.refs.list("refs/gitcp/s/main/")) == [MAIN, TRY]
    assert held.refs.list("refs/gitcp/s/none/") == {}
    assert held.refs.any("refs/gitcp/")
    assert not held.refs.any("refs/gitcp/s/none/")


def test_a_symbolic_ref_is_followed(held):
    assert held.refs.symbolic("HEAD") == "refs/heads/main"
    assert held.refs.read("HEAD") == held.head
    assert held.refs.symbolic(MAIN) is None


def test_a_ref_moves_from_where_it_is_expected(held):
    before = held.refs.signature("refs/gitcp/s/main/")
    held.move(MAIN, held.head, held.one)
    assert held.refs.read(MAIN) == held.one
    assert held.refs.list("refs/gitcp/s/main/") == {MAIN: held.one, TRY: held.head}
    assert held.refs.signature("refs/gitcp/s/main/") != before


def test_a_ref_is_made_where_none_is_expected(held):
    new = "refs/gitcp/s/new/main"
    held.move(new, None, held.one)
    assert held.refs.read(new) == held.one
    assert held.refs.list("refs/gitcp/s/new/") == {new: held.one}


@pytest.mark.parametrize("is_there", [False, True])
def test_a_ref_elsewhere_than_expected_stays(held, is_there):
    with pytest.raises(BranchMovedError):
        held.move(MAIN, held.two if is_there else None, held.one)
    assert held.refs.read(MAIN) == held.head


def test_refs_are_deleted(held):
    held.refs.delete({MAIN: held.head, OTHER: None})
    assert held.refs.list("refs/gitcp/") == {TRY: held.head}
    held.refs.delete({})
    held.move(MAIN, None, held.head)
    assert held.refs.read(MAIN) == held.head


def test_no_ref_is_deleted_where_one_has_moved(held):
    with pytest.raises(GitFailedError):
        held.refs.delete({MAIN: held.head, OTHER: held.one})
    assert set(held.refs.list("refs/gitcp/")) == {MAIN, TRY, OTHER}


@pytest.mark.parametrize("name", ["refs/heads/main", "refs/gitcp/../heads/main"])
def test_a_ref_of_the_users_is_neither_moved_nor_deleted(held, name):
    with pytest.raises(UnsafePathError):
        held.move(name, held.head, held.one)
    with pytest.raises(UnsafePathError):
        held.refs.delete({name: None})
    assert held.refs.read("refs/heads/main") == held.head


@pytest.mark.parametrize("held", list(STORES), indirect=True)
def test_what_another_process_did_is_seen(held):
    top = held.staged.parents[2] / "held"
    assert held.refs.read(MAIN) == held.head
    git(top, "update-ref", MAIN, held.one)
    git(top, "checkout", "-q", "-b", "other", held.two)
    assert held.refs.read(MAIN) == held.one
    assert held.refs.symbolic("HEAD") == "refs/heads/other"
    assert held.refs.read("HEAD") == held.refs.read("refs/heads/other") == held.two
    git(top, "checkout", "-q", "--detach", held.one)
    assert held.refs.symbolic("HEAD") is None
    assert held.refs.read("HEAD") == held.one
    git(top, "checkout", "-q", "--orphan", "unborn")
    assert held.refs.symbolic("HEAD") == "refs/heads/unborn"
    assert held.refs.read("refs/heads/unborn") is None
