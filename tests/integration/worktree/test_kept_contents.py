"""What a restore has read to prove that it is whole is not read from git once more."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcp.errors import CorruptError
from gitcp.git.discover import discover
from gitcp.git.executable import GitObjects
from gitcp.git.libgit import LibgitObjects
from gitcp.git.objects import Objects
from gitcp.worktree import bulk, kept_contents
from gitcp.worktree.files import Root
from gitcp.worktree.kept_contents import KeptContents
from tests.support.gitrepo import tree_bytes, write_files
from tests.support.inprocess import ok

FILES = {f"d{n % 7}/e{n % 3}/f{n}": b"%d\n" % n * n for n in range(40)}


@pytest.fixture
def gone(repo, monkeypatch) -> tuple[Path, dict]:
    """A project of forty files, saved, of which those of two directories are gone.

    The directories are there: what is in missing ones git writes.
    """
    monkeypatch.setattr(bulk, "AT_LEAST", 5)
    monkeypatch.setattr(bulk, "WORKERS", 2)
    # Two have the same content, and a link is written in another way.
    write_files(repo, {**FILES, "d1/e1/same": FILES["d1/e1/f1"]})
    (repo / "d1" / "link").symlink_to("f1")
    ok(repo, "save")
    whole = tree_bytes(repo)
    for name in ("d1", "d2"):
        for path in (repo / name).rglob("*"):
            if path.is_symlink() or path.is_file():
                path.unlink()
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


def test_where_there_is_no_room_it_is_read_again(gone, asked, monkeypatch):
    repo, whole = gone
    monkeypatch.setattr(kept_contents, "_MOST", 100)
    ok(repo, "restore", "-y", "1")
    assert tree_bytes(repo) == whole
    assert len(asked) > len(set(asked))


def test_what_was_taken_as_often_as_it_was_added_is_kept_no_more(repo, asked):
    write_files(repo, FILES)
    ok(repo, "save")
    objects = discover(repo).objects
    contents = [FILES["d1/e1/f1"], FILES["d2/e2/f2"]]
    one, two = (objects.form.oid("blob", data) for data in contents)
    kept = KeptContents()
    for data in (*contents, contents[0]):
        kept.add(objects.form.oid("blob", data), data)
    assert _all(kept, objects, [one, two]) == contents
    assert _all(kept, objects, [one]) == contents[:1]
    assert asked == []
    assert _all(kept, objects, [two, one]) == contents[::-1]
    assert asked == [two, one]


def test_room_is_there_again_for_what_was_written(repo, asked, monkeypatch):
    write_files(repo, FILES)
    ok(repo, "save")
    objects = discover(repo).objects
    one, two = FILES["d1/e1/f1"], FILES["d2/e2/f2"]
    ids = [objects.form.oid("blob", data) for data in (one, two)]
    monkeypatch.setattr(kept_contents, "_MOST", len(one) + len(two) - 1)
    kept = KeptContents()
    kept.add(ids[0], one)
    kept.add(ids[1], two)
    assert _all(kept, objects, ids) == [one, two]
    assert asked == ids[1:]
    kept.add(ids[1], two)
    assert _all(kept, objects, ids[1:]) == [two]
    assert asked == ids[1:]


def test_a_container_may_keep_a_share_of_what_it_has(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(kept_contents, "_CONTAINER", limit)
    free = kept_contents.room()
    limit.write_text("16384\n")
    assert kept_contents.room() == 1024 < free
    limit.write_text("max\n")
    assert kept_contents.room() == free


def test_a_damaged_object_that_was_not_kept_is_damage(repo):
    write_files(repo, FILES)
    ok(repo, "save")
    objects = discover(repo).objects
    with pytest.raises(CorruptError):
        _all(KeptContents(), objects, [b"\1" * 20])


def _all(kept: KeptContents, objects: Objects, oids: list[bytes]) -> list[bytes]:
    return [b"".join(content) for content in kept.contents(objects, oids)]


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
