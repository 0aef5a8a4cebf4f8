"""Many objects in one pack are compressed quickly, on other cores where there are any."""

import random
import threading
import zlib
from pathlib import Path

import pytest

from gitcp.format.oid import SHA1
from gitcp.git import deflate
from gitcp.git.discover import discover
from gitcp.git.objects import BLOB
from gitcp.git.pack import PackWriter
from tests.support.gitrepo import git

TEXTS = [
    b"%d " % number + random.Random(number).randbytes(500) * 40 for number in range(300)
]


Threads = set[threading.Thread]


@pytest.fixture
def before() -> Threads:
    """The threads that earlier tests have left, which may end at any time."""
    return set(threading.enumerate())


def added(before: Threads) -> int:
    return len(set(threading.enumerate()) - before)


@pytest.fixture(params=[1, 2, 8])
def cores(request, monkeypatch) -> int:
    monkeypatch.setattr(deflate, "cores", lambda: request.param)
    return request.param


def test_every_object_is_in_the_pack(repo, tmp_path, cores, before):
    form = discover(repo).form
    writer = PackWriter(tmp_path, form)
    oids = [writer.add(BLOB, text) for text in TEXTS]
    assert all(oid in writer for oid in oids)
    assert [writer.add(BLOB, text) for text in TEXTS] == oids
    large = random.Random(0).randbytes(3 << 20)
    assert writer.add_stream(len(large), iter([large])) == form.oid(BLOB, large)
    written = writer.close()
    assert written is not None
    assert set(writer) == {*oids, form.oid(BLOB, large)}
    assert len(writer) == len(TEXTS) + 1
    pack = repo / ".git/objects/pack" / f"{written[2]}.pack"
    written[0].rename(pack)
    written[1].rename(pack.with_suffix(".idx"))
    git(repo, "verify-pack", str(pack))
    for oid, text in zip(oids[::20], TEXTS[::20], strict=True):
        assert git(repo, "cat-file", "blob", oid.hex()) == text
    assert added(before) == 0


def test_what_is_little_is_compressed_well(tmp_path: Path):
    writer = PackWriter(tmp_path, SHA1)
    writer.add(BLOB, TEXTS[0])
    written = writer.close()
    assert written is not None
    assert zlib.compress(TEXTS[0], 6) in written[0].read_bytes()


def test_a_pack_that_is_given_up_leaves_no_thread(tmp_path, monkeypatch, before):
    monkeypatch.setattr(deflate, "cores", lambda: 4)
    writer = PackWriter(tmp_path, SHA1)
    for text in TEXTS:
        writer.add(BLOB, text)
    assert added(before) == 3
    writer.abandon()
    assert added(before) == 0


def test_no_more_waits_than_is_to_be_held_in_memory(monkeypatch):
    monkeypatch.setattr(deflate, "cores", lambda: 2)
    monkeypatch.setattr(deflate, "_WAITING", 50_000)
    taken = deflate.Deflater()
    out = 0
    for number, text in enumerate(TEXTS):
        out += len(list(taken.take(deflate.Deflating(b"%d" % number, b"", text))))
        assert number + 1 - out <= 3
    assert out + len(list(taken.finish())) == len(TEXTS)


def test_what_cannot_be_compressed_is_an_error_of_the_caller(monkeypatch, before):
    def refuse(_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(deflate, "cores", lambda: 2)
    monkeypatch.setattr(deflate, "_deflated", refuse)
    taken = deflate.Deflater()
    list(taken.take(deflate.Deflating(b"1", b"", b"text")))
    with pytest.raises(MemoryError):
        list(taken.finish())
    taken.abandon()
    assert added(before) == 0
