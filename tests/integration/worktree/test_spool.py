"""What a restore has read to prove that it is whole is not read from git once more."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gitcp.errors import CorruptError
from gitcp.git.discover import discover
from gitcp.git.executable import GitObjects
from gitcp.git.libgit import LibgitObjects
from gitcp.git.objects import Objects
from gitcp.worktree import bulk, disks, spool
from gitcp.worktree.files import Root
from gitcp.worktree.spool import Spool
from tests.support.gitrepo import tree_bytes, write_files
from tests.support.inprocess import ok

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the names of open files are in /proc"
)
FILES = {f"d{n % 7}/e{n % 3}/f{n}": b"%d\n" % n * n for n in range(40)}


@pytest.fixture
def gone(repo, monkeypatch) -> tuple[Path, dict]:
    """A project of forty files, saved, of which two directories are gone."""
    monkeypatch.setattr(bulk, "AT_LEAST", 5)
    monkeypatch.setattr(bulk, "WORKERS", 2)
    # Two have the same content, and a link is written in another way.
    write_files(repo, {**FILES, "d1/e1/same": FILES["d1/e1/f1"]})
    (repo / "d1" / "link").symlink_to("f1")
    ok(repo, "save")
    whole = tree_bytes(repo)
    shutil.rmtree(repo / "d1")
    shutil.rmtree(repo / "d2")
    return repo, whole


@pytest.fixture
def asked(monkeypatch) -> list[bytes]:
    """The ids that git was asked for, in bulk."""
    ids: list[bytes] = []

    def note(kind: type[Objects]) -> None:
        streams = kind.streams

        def noting(self, oids):
            def each():
                for oid in oids:
                    ids.append(oid)
                    yield oid

            return streams(self, each())

        monkeypatch.setattr(kind, "streams", noting)

    note(LibgitObjects)
    note(GitObjects)
    return ids


def test_a_restore_reads_each_file_of_the_checkpoint_once(gone, asked):
    repo, whole = gone
    ok(repo, "restore", "-y", "1")
    assert tree_bytes(repo) == whole
    lost = [name for name in whole if name.startswith((b"d1", b"d2"))]
    files = [name for name in lost if whole[name][0] != "dir"]
    assert len(asked) == len(files)


def test_nothing_of_it_is_on_the_disk_when_that_is_synced(gone, monkeypatch):
    repo, _ = gone
    sync, held = disks.sync_whole, []

    def looking(fd: int) -> None:
        held.append(_unnamed(repo))
        sync(fd)

    keep, kept = Spool.keep, []

    def noting(self, places, count):
        keep(self, places, count)
        kept.append(_unnamed(repo))

    monkeypatch.setattr(disks, "sync_whole", looking)
    monkeypatch.setattr(Spool, "keep", noting)
    ok(repo, "restore", "-y", "1")
    assert all(kept)
    assert held
    assert not any(held)


def _unnamed(repo: Path) -> list[str]:
    """The open files below a directory that have no name."""
    names = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/self/fd/{fd}"))
    return [
        name
        for name in names
        if name.startswith(str(repo)) and name.endswith("(deleted)")
    ]


@pytest.mark.parametrize("lack", ["unnamed files", "room", "a disk that takes it"])
def test_where_it_cannot_be_kept_it_is_read_again(gone, asked, monkeypatch, lack):
    repo, whole = gone
    if lack == "unnamed files":
        monkeypatch.setattr(spool, "_UNNAMED", None)
    elif lack == "room":
        monkeypatch.setattr(spool, "_MOST", 100)
    else:
        opened = Spool.open

        def read_only(self):
            file = opened(self)
            assert file is not None
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, file)
            os.close(null)
            return file

        monkeypatch.setattr(Spool, "open", read_only)
    ok(repo, "restore", "-y", "1")
    assert tree_bytes(repo) == whole
    assert len(asked) > len(set(asked))


def test_what_the_disk_lost_of_it_is_read_again(repo, asked):
    write_files(repo, FILES)
    ok(repo, "save")
    objects = discover(repo).objects
    one, two = (objects.form.oid("blob", FILES[f"d{n}/e{n}/f{n}"]) for n in (1, 2))
    with Spool(repo / ".git") as kept:
        part = kept.part()
        part.add(one, b"other bytes")
        part.add(two, FILES["d2/e2/f2"])
        part.end()
        found = [b"".join(content) for content in kept.contents(objects, [one, two])]
        assert found == [FILES["d1/e1/f1"], FILES["d2/e2/f2"]]
        assert asked == []
        # All that was kept has been taken.
        again = [b"".join(content) for content in kept.contents(objects, [one, two])]
        assert again == found
        assert asked == [one, two]


def test_a_damaged_object_that_was_not_kept_is_damage(repo):
    write_files(repo, FILES)
    ok(repo, "save")
    objects = discover(repo).objects
    with Spool(repo / ".git") as kept, pytest.raises(CorruptError):
        for content in kept.contents(objects, [b"\1" * 20]):
            b"".join(content)


def test_what_a_restore_leaves_is_not_read_twice(repo, monkeypatch):
    """Of what it changes nothing has to be remembered before."""
    write_files(repo, FILES)
    ok(repo, "save")
    write_files(repo, dict.fromkeys(("d1/e1/f1", "d2/e2/f2"), b"edited"))
    opened: list[bytes] = []
    original = Root.open

    def noting(self, path):
        opened.append(path)
        return original(self, path)

    monkeypatch.setattr(Root, "open", noting)
    ok(repo, "restore", "-y", "1", "--", "d1/e1/f1")
    assert opened.count(b"d2/e2/f2") == 1
    assert (repo / "d2/e2/f2").read_bytes() == b"edited"
